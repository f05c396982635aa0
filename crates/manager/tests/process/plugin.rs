//! The words of `kubectl metal3`, as users run them.

use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use metal3_api::catalog;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::GROUP;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_explain::State;
use metal3_manager::plugin::{Ask, Scope, candidates, completion, help, help_of, parse};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

async fn answer(world: &TestCluster, line: &str) -> (String, State) {
    let mut arguments = words(line);
    let (wanted, _) = parse(&arguments.remove(0), arguments).unwrap();
    let mut shown = String::new();
    let state = wanted
        .run(
            &world.cluster.client("user"),
            NAMESPACE,
            Time::default,
            &mut |text: &str| shown.push_str(text),
        )
        .await
        .unwrap();
    (shown, state)
}

async fn world() -> TestCluster {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    world
}

async fn create_host(world: &TestCluster, name: &str, change: Value) {
    let mut host = json!({ "metadata": { "name": name, "labels": { "rack": "a" } }, "spec": { "online": true,
        "bmc": { "address": format!("redfish://192.0.2.1/{name}"), "credentialsName": name } } });
    metal3_runtime::patch::apply(&change, &mut host);
    world.create::<BareMetalHost>(host).await;
    set_state(world, name, "available").await;
}

async fn set_state(world: &TestCluster, name: &str, state: &str) {
    let status = json!({ "status": { "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": true,
        "provisioning": { "state": state, "ID": "", "image": { "url": "" } } } });
    let (api, params) = (world.api::<BareMetalHost>(), PatchParams::default());
    api.patch_status(name, &params, &Patch::Merge(status)).await.unwrap();
}

/// The reads of the viewer since the last count, by verb and resource.
fn reads(world: &TestCluster) -> Vec<String> {
    let audit = world.cluster.audit();
    let own = audit.counts().filter(|((user, ..), _)| user == "user");
    let reads = own.map(|((_, verb, resource), count)| format!("{count} {verb} {resource}"));
    let reads = reads.collect();
    world.cluster.reset_audit();
    reads
}

#[tokio::test(start_paused = true)]
async fn hosts_are_listed_in_pages_and_filtered_by_the_server() {
    let world = world().await;
    for number in 0..1001 {
        let rack = if number == 7 { "b" } else { "a" };
        create_host(
            &world,
            &format!("h{number:04}"),
            json!({ "metadata": { "labels": { "rack": rack } } }),
        )
        .await;
    }
    world.cluster.reset_audit();
    let (text, state) = answer(&world, "hosts").await;
    assert_eq!((text.lines().count(), state), (1002, State::Ready));
    assert_eq!(reads(&world), ["3 list baremetalhosts"]);
    let (text, _) = answer(&world, "hosts -l rack=b -A -o json").await;
    let output: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (
            output["hosts"][0]["name"].as_str(),
            output["hosts"].as_array().map(Vec::len)
        ),
        (Some("h0007"), Some(1))
    );
    assert_eq!(output["hosts"][0]["namespace"], NAMESPACE);
    assert_eq!(reads(&world), ["1 list baremetalhosts"]);
}

#[tokio::test(start_paused = true)]
async fn watched_hosts_are_printed_when_they_change() {
    let world = world().await;
    for name in ["h0", "h1"] {
        create_host(&world, name, json!({})).await;
    }
    let (wanted, _) = parse("hosts", words("-w --state available")).unwrap();
    let (client, mut shown) = (world.cluster.client("user"), Vec::new());
    let mut print = |text: &str| shown.push(text.to_owned());
    let changes = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        set_state(&world, "h0", "provisioning").await;
        set_state(&world, "h1", "available").await;
        create_host(&world, "h2", json!({})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        ended = wanted.run(&client, NAMESPACE, Time::default, &mut print) => unreachable!("ended: {ended:?}"),
        () = changes => {}
    }
    let first = |text: &String| {
        text.split_whitespace()
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(shown[0].lines().count(), 3, "{shown:?}");
    let changed: Vec<String> = shown[1..].iter().map(first).collect();
    assert_eq!(changed, ["h0 gone", "h2 available"]);
}

#[tokio::test(start_paused = true)]
async fn missing_right_is_named_and_what_is_known_is_shown() {
    let world = world().await;
    let consumer = json!({ "kind": "Metal3Machine", "name": "m0", "namespace": NAMESPACE });
    create_host(&world, "h0", json!({ "spec": { "consumerRef": consumer } })).await;
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).resource("metal3machines"));
    world.cluster.inject_for(&["user"], forbidden);
    let (text, state) = answer(&world, "consumers").await;
    assert_eq!(state.exit_code(), 5);
    assert!(
        text.contains("h0    Metal3Machine/m0") && !text.contains("does not exist"),
        "{text}"
    );
    let check = format!("kubectl auth can-i list metal3machines.infrastructure.cluster.x-k8s.io -n {NAMESPACE}");
    assert!(text.contains(&check), "{text}");
    let (text, state) = answer(&world, "timeline absent -o yaml").await;
    assert_eq!(
        (state.exit_code(), text.starts_with("notRead: []")),
        (6, true),
        "{text}"
    );
}

async fn cluster_of(world: &TestCluster, machines: usize) {
    let reference =
        |kind: &str, name: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name });
    let spec = json!({ "infrastructureRef": reference("Metal3Cluster", "edge") });
    world
        .create::<Cluster>(json!({ "metadata": { "name": "edge" }, "spec": spec }))
        .await;
    let ready = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
    let (clusters, params) = (world.api::<Cluster>(), PatchParams::default());
    clusters
        .patch_status("edge", &params, &Patch::Merge(ready))
        .await
        .unwrap();
    for number in 0..machines {
        let name = format!("m{number}");
        let labels = json!({ "cluster.x-k8s.io/cluster-name": "edge" });
        let spec = json!({ "clusterName": "edge", "bootstrap": { "dataSecretName": "b" }, "infrastructureRef": reference("Metal3Machine", &name) });
        world
            .create::<Machine>(json!({ "metadata": { "name": name, "labels": labels }, "spec": spec }))
            .await;
        let annotations = json!({ "metal3.io/BareMetalHost": format!("{NAMESPACE}/h{number}") });
        let spec = json!({ "image": { "url": "http://192.0.2.1/i", "checksum": "c", "format": "raw" } });
        let meta = json!({ "name": name, "labels": labels, "annotations": annotations });
        world
            .create::<Metal3Machine>(json!({ "metadata": meta, "spec": spec }))
            .await;
        create_host(world, &format!("h{number}"), json!({})).await;
        set_state(world, &format!("h{number}"), "provisioning").await;
    }
}

#[tokio::test(start_paused = true)]
async fn tree_costs_the_same_requests_for_any_number_of_machines() {
    let mut costs = Vec::new();
    for machines in [1, 40] {
        let world = world().await;
        cluster_of(&world, machines).await;
        world.cluster.reset_audit();
        let (text, state) = answer(&world, "tree edge").await;
        assert_eq!(state, State::Waiting, "{text}");
        assert!(
            text.contains(
                "      - BareMetalHost/h0: The image is deployed (Provisioning) [bmc: redfish://192.0.2.1/h0"
            ),
            "{text}"
        );
        costs.push(reads(&world));
    }
    assert_eq!(costs[0], costs[1]);
    let lists = [
        "baremetalhosts",
        "ipaddresses",
        "ipclaims",
        "machinedeployments",
        "machines",
        "metal3dataclaims",
        "metal3datas",
        "metal3machines",
    ];
    for list in lists {
        assert!(costs[0].contains(&format!("1 list {list}")), "{list}: {costs:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bundle_is_an_archive_without_canaries_that_its_owner_can_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world().await;
    create_host(
        &world,
        "h0",
        json!({ "spec": { "bmc": { "address": "redfish://root:canary@192.0.2.1/x" } } }),
    )
    .await;
    let secret = json!({ "metadata": { "name": "h0", "annotations": { "x": "canary" } }, "stringData": { "password": "canary" } });
    world.create::<k8s_openapi::api::core::v1::Secret>(secret).await;
    let folder = std::env::temp_dir().join(format!("metal3-bundle-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("b.tar");
    let line = format!("support-bundle -f {}", file.display());
    let (text, state) = answer(&world, &line).await;
    assert_eq!(state, State::Ready, "{text}");
    let listed = std::process::Command::new("tar")
        .arg("-tf")
        .arg(&file)
        .output()
        .unwrap();
    let (listed, failure) = (
        String::from_utf8(listed.stdout).unwrap(),
        String::from_utf8(listed.stderr).unwrap(),
    );
    assert!(failure.is_empty(), "{failure}");
    for name in [
        format!("secrets/{NAMESPACE}/h0.yaml"),
        format!("objects/{NAMESPACE}/BareMetalHost/h0.yaml"),
    ] {
        assert!(listed.lines().any(|one| one == name), "{name}: {listed}");
    }
    let bytes = std::fs::read(&file).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("canary"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = parse("support-bundle", words(&line).split_off(1)).unwrap().0;
    let again = again
        .run(
            &world.cluster.client("user"),
            NAMESPACE,
            Time::default,
            &mut |_: &str| {},
        )
        .await;
    assert!(format!("{:#}", again.unwrap_err()).contains("create"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn arguments_of_the_words_are_checked() {
    let line = "-A --error --bmc=192 -l rack=a --kubeconfig k --context=c";
    let (command, chosen) = parse("hosts", words(line)).unwrap();
    let named = (chosen.kubeconfig.as_deref(), chosen.context.as_deref());
    assert_eq!((command.scope, named), (Scope::All, (Some("k"), Some("c"))));
    let Ask::View(metal3_explain::view::View::Hosts(filter)) = command.ask else {
        unreachable!("hosts")
    };
    assert_eq!(
        (filter.error.as_deref(), filter.bmc.as_deref(), filter.labels.as_str()),
        (Some(""), Some("192"), "rack=a")
    );
    for (word, wrong, part) in [
        ("tree", "", "use tree CLUSTER"),
        ("tree", "a b", "use tree CLUSTER"),
        ("hosts", "-n x -A", "exclude each other"),
        ("hosts", "-l", "has no value"),
        ("hosts", "-l a=b=c", "-l"),
        ("hosts", "-o xml", "xml"),
        ("hosts", "-w=x", "takes no value"),
        ("hosts", "--bmc a --bmc b", "given twice"),
        ("top", "--bmc a", "use top"),
        ("pools", "a b", "[NAME]"),
    ] {
        let error = format!("{:#}", parse(word, words(wrong)).unwrap_err());
        assert!(error.contains(part), "{word} {wrong}: {error}");
    }
}

#[test]
fn each_command_has_a_help_of_its_own() {
    let tree = help_of("tree").unwrap();
    assert!(
        tree.starts_with("use tree CLUSTER") && tree.contains("-n, --namespace"),
        "{tree}"
    );
    assert!(help_of("why").unwrap().starts_with("use why KIND/NAME"));
    assert_eq!(help_of("--controllers=ipam"), None);
}

#[test]
fn words_and_flags_are_completed_and_documented() {
    let page = include_str!("../../../../docs/kubectl-metal3.md");
    let complete = |line: &str| candidates(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(complete("t"), ["tree", "timeline", "top"]);
    assert_eq!(complete("hosts --s"), ["--selector", "--state"]);
    assert_eq!(complete("hosts -o y"), ["yaml"]);
    assert_eq!(complete("why ipp"), ["ippool/"]);
    for word in complete("") {
        assert!(
            help().contains(&format!("  {word} ")) && page.contains(&format!("| `{word}")),
            "{word}"
        );
        for flag in complete(&format!("{word} --")) {
            assert!(page.contains(&format!("`{flag}`")), "{flag}");
        }
    }
    for (wrong, part) in [
        ("-n -A", "no value"),
        ("--namespace=", "names no namespace"),
        ("--state Provisioned", "--state"),
    ] {
        let error = format!("{:#}", parse("hosts", words(wrong)).unwrap_err());
        assert!(error.contains(part), "{wrong}: {error}");
    }
    assert!(completion("tcsh").is_none());
    for shell in ["zsh", "fish", "kubectl"] {
        assert!(
            completion(shell).is_some_and(|script| script.contains("kubectl-metal3 __complete")),
            "{shell}"
        );
    }
}

#[test]
fn script_for_bash_completes_what_the_program_prints() {
    let script = completion("bash").unwrap();
    let stub = "kubectl-metal3() { printf 'tree\\ntop\\n'; }\nCOMP_WORDS=(kubectl-metal3 t); COMP_CWORD=1\n";
    let run = format!("{script}\n{stub}_kubectl_metal3; echo \"${{COMPREPLY[*]}}\"");
    let output = std::process::Command::new("bash").arg("-c").arg(run).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "tree top");
}

/// With the directive 4 kubectl completes no names of files, with 2 it adds no blank.
#[test]
fn script_for_kubectl_adds_no_blank_behind_a_kind() {
    let script = completion("kubectl").unwrap();
    for (printed, directive) in [("cluster/", ":6"), ("tree\\ntop", ":4"), ("", ":4")] {
        let stub = format!("kubectl-metal3() {{ printf '{printed}\\n'; }}\n");
        let run = format!("{stub}{script}");
        let output = std::process::Command::new("bash").arg("-c").arg(run).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        assert_eq!(lines.lines().last(), Some(directive), "{printed}: {lines}");
    }
    let candidates_of = |words: &[&str]| candidates(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let states = candidates_of(&["hosts", "--state", ""]);
    assert!(states.contains(&"available".to_owned()) && states.iter().all(|state| !state.starts_with('-')));
    for state in states {
        assert!(parse("hosts", words(&format!("--state {state}"))).is_ok(), "{state}");
    }
    assert!(candidates_of(&["hosts", "--bmc", ""]).is_empty());
    assert!(candidates_of(&["hosts", "--st"]).contains(&"--state".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn history_of_ironic_comes_from_a_file_and_no_login_is_shown() {
    let world = world().await;
    create_host(&world, "h0", json!({})).await;
    let file = std::env::temp_dir().join(format!("metal3-history-{}.json", std::process::id()));
    let history = r#"{"history": [{"created_at": "2026-01-01T00:00:00+00:00", "severity": "ERROR", "event_type": "power",
        "event": "get https://u:canary@192.0.2.1/x failed", "conductor": "c1"}]}"#;
    std::fs::write(&file, history).unwrap();
    let (text, state) = answer(&world, &format!("timeline h0 --ironic-history {}", file.display())).await;
    assert_eq!(state, State::Ready, "{text}");
    assert!(
        text.contains("failed in Ironic") && text.contains("Ironic, c1"),
        "{text}"
    );
    assert!(!text.contains("canary"), "{text}");
    std::fs::write(&file, "<html>").unwrap();
    let (wanted, _) = parse("timeline", words(&format!("h0 --ironic-history={}", file.display()))).unwrap();
    let client = world.cluster.client("user");
    let ended = wanted.run(&client, NAMESPACE, Time::default, &mut |_: &str| {}).await;
    assert!(format!("{:#}", ended.unwrap_err()).contains("not JSON"));
    std::fs::remove_file(&file).unwrap();
}

/// A Go manager up to 1.12 serves `v1beta1` only.
#[tokio::test(start_paused = true)]
async fn objects_that_are_served_in_an_older_version_only_are_read_in_it() {
    let world = older(GROUP).await;
    let consumer = json!({ "kind": "Metal3Machine", "name": "m0", "namespace": NAMESPACE });
    create_host(&world, "h0", json!({ "spec": { "consumerRef": consumer } })).await;
    let (text, state) = answer(&world, "consumers").await;
    assert_eq!(state.exit_code(), 0, "{text}");
    assert!(text.contains("the consumer does not exist"), "{text}");
    let machine = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "metadata": { "name": "m0" } });
    create(&world, "metal3machines", machine).await;
    let (text, state) = answer(&world, "consumers").await;
    assert_eq!(state.exit_code(), 0, "{text}");
    assert!(!text.contains("does not exist"), "{text}");
}

/// Cluster API up to 1.10 serves `v1beta1` only.
#[tokio::test(start_paused = true)]
async fn cluster_api_of_an_older_version_is_followed_to_the_cause() {
    let world = older("cluster.x-k8s.io").await;
    let version = "cluster.x-k8s.io/v1beta1";
    let reference = |kind: &str| json!({ "apiVersion": format!("{GROUP}/v1beta2"), "kind": kind, "name": "edge" });
    let cluster = json!({ "apiVersion": version, "kind": "Cluster", "metadata": { "name": "edge" },
        "spec": { "infrastructureRef": reference("Metal3Cluster") } });
    create(&world, "clusters", cluster).await;
    let (text, state) = answer(&world, "tree edge").await;
    assert!(text.contains("- Cluster/edge: waits for its infrastructure"), "{text}");
    assert!(text.contains("Metal3Cluster/edge: does not exist"), "{text}");
    assert_eq!(state.exit_code(), 4, "{text}");
}

/// A server on which this group has no version after `v1beta1`.
async fn older(group: &str) -> TestCluster {
    let world = TestCluster::empty().await;
    let mut all = [catalog::definitions(), metal3_sim_cluster::cluster_api()].concat();
    for kind in all.iter_mut().filter(|kind| kind.group == group) {
        kind.versions.truncate(1);
        for version in &mut kind.versions {
            (version.name, version.storage) = ("v1beta1", true);
        }
    }
    world.cluster.install(&all).unwrap();
    world
}

/// Creates an object of any version.
async fn create(world: &TestCluster, plural: &str, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let types = object.types.clone().unwrap();
    let kind = GroupVersionKind::try_from(&types).unwrap();
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = Api::namespaced_with(world.cluster.client("admin"), NAMESPACE, &resource);
    api.create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn hosts_that_may_not_be_watched_are_shown_with_the_missing_right() {
    let world = world().await;
    create_host(&world, "h0", json!({})).await;
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).verb("watch"));
    world.cluster.inject_for(&["user"], forbidden);
    let (text, state) = answer(&world, "hosts -w").await;
    assert_eq!(state.exit_code(), 5, "{text}");
    assert!(text.contains("h0 "), "{text}");
    let check = format!("kubectl auth can-i watch baremetalhosts.metal3.io -n {NAMESPACE}");
    assert!(text.contains(&check), "{text}");
}
