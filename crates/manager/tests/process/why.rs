//! Why an object waits, as users ask for it.

use kube::api::{Patch, PatchParams};
use metal3_api::catalog;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_explain::State;
use metal3_manager::why::{Output, Why, parse};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

async fn answer(world: &TestCluster, line: &str) -> (String, State) {
    let (wanted, _) = parse(words(line)).unwrap();
    wanted
        .run(&world.cluster.client("user"), NAMESPACE, Time::default())
        .await
        .unwrap()
}

/// A cluster with a host that Ironic could not register.
async fn broken_host() -> TestCluster {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let host = json!({ "metadata": { "name": "h0" },
        "spec": { "online": false, "bmc": { "address": "redfish://192.0.2.1/x", "credentialsName": "bmc" } } });
    world.create::<BareMetalHost>(host).await;
    let status = json!({ "status": { "operationalStatus": "error", "errorType": "registration error",
        "errorMessage": "the BMC says no", "errorCount": 1, "poweredOn": false,
        "provisioning": { "state": "registering", "ID": "", "image": { "url": "" } } } });
    let (api, params) = (world.api::<BareMetalHost>(), PatchParams::default());
    api.patch_status("h0", &params, &Patch::Merge(status)).await.unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn missing_secret_of_a_host_is_the_last_link() {
    let world = broken_host().await;
    let (text, state) = answer(&world, "bmh/h0").await;
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            &format!("BareMetalHost/h0 in namespace {NAMESPACE}: someone has to act"),
            "- BareMetalHost/h0: Registration failed (RegistrationError)",
            "    the BMC says no",
            "  - Secret/bmc: does not exist",
            "Who acts: user",
            "What to do: Create Secret/bmc, or correct the reference to it.",
        ]
    );
    assert_eq!(state.exit_code(), 4);
    // Another Secret of the namespace is no business of the viewer.
    assert_eq!(world.cluster.audit().of("user", "list", "secrets"), 0);
    let (_, state) = answer(&world, "bmh/absent").await;
    assert_eq!(state.exit_code(), 6);
}

#[tokio::test(start_paused = true)]
async fn missing_right_is_named_and_secrets_are_not_needed() {
    let world = broken_host().await;
    let forbidden = |resource: &str| Plan::none().with(Rule::random(1000, Fault::refused(403)).resource(resource));
    world.cluster.inject_for(&["user"], forbidden("secrets"));
    let (text, state) = answer(&world, "bmh/h0").await;
    assert_eq!(state, State::Blocked);
    let right = format!("because you may not get secrets in the namespace {NAMESPACE}. Ask for the right to get them");
    assert!(text.contains(&right), "{text}");
    world.cluster.inject_for(&["user"], forbidden("baremetalhosts"));
    let (text, state) = answer(&world, "bmh/h0").await;
    assert_eq!(state.exit_code(), 5);
    assert!(text.contains("may not get baremetalhosts.metal3.io"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn output_for_programs_has_the_chain() {
    let world = broken_host().await;
    let (text, _) = answer(&world, "bmh h0 -o json").await;
    let output: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(output["state"], "blocked");
    assert_eq!(output["chain"][0]["reason"], "RegistrationError");
    assert_eq!(
        output["chain"][0]["runbook"],
        "docs/runbooks/hosts.md#registrationerror"
    );
    assert_eq!(output["chain"][1]["whoActs"], "user");
    let (text, _) = answer(&world, "bmh h0 -o yaml").await;
    assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), output);
}

#[test]
fn arguments_of_why_are_checked() {
    let line = "ipclaims/c0 -n lab --kubeconfig=k --context c -o yaml --ironic-history f";
    let (wanted, chosen) = parse(words(line)).unwrap();
    let Why {
        object,
        namespace,
        output,
        ironic_history,
    } = wanted;
    assert_eq!(ironic_history.as_deref(), Some("f"));
    assert_eq!(
        (object.to_string().as_str(), namespace.as_deref()),
        ("IPClaim/c0", Some("lab"))
    );
    assert_eq!(output, Output::Yaml);
    let named = (chosen.kubeconfig.as_deref(), chosen.context.as_deref());
    assert_eq!(named, (Some("k"), Some("c")));
    for (wrong, part) in [
        ("", "name one object"),
        ("host", "is not KIND/NAME"),
        ("pod/x", "BareMetalHost"),
        ("firmwareschema/x", "waits for nothing"),
        ("bmh/", "without a name"),
        ("bmh/x -o xml", "text|json|yaml"),
        ("bmh/x -n", "has no value"),
        ("bmh/x --host=y", "--kubeconfig FILE"),
    ] {
        let error = format!("{:#}", parse(words(wrong)).unwrap_err());
        assert!(error.contains(part), "{wrong}: {error}");
    }
}

/// Pages, tables and alert rules say `kubectl metal3 why KIND/NAME`: each must work when it is typed.
#[test]
fn each_command_that_a_page_or_a_rule_names_is_understood() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("docs"), root.join("manifests")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for command in text.split("metal3 why ").skip(1) {
                let Some((kind, _)) = command.split_whitespace().next().and_then(|word| word.split_once('/')) else {
                    continue;
                };
                seen += 1;
                let is_known = kind == "KIND" || metal3_explain::kind_named(kind).is_some();
                assert!(is_known, "{}: kubectl metal3 why {kind}/", path.display());
            }
        }
    }
    assert!(seen > 5, "{seen} commands");
}
