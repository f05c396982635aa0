//! The way back to a Go manager that does not remove what this program writes.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use metal3_api::catalog;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_manager::hand_back::{HandBack, parse};
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster};

const BLOCK: &str = "clusterctl.cluster.x-k8s.io/block-move";

fn host(name: &str, consumer: &str) -> Value {
    json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name, "annotations": { BLOCK: "", "kept": "yes" }, "finalizers": ["baremetalhost.metal3.io"] },
        "spec": {
            "online": true, "bmc": { "address": "redfish://192.0.2.7/redfish/v1/Systems/1", "credentialsName": "login" },
            "preprovisioningNetworkDataName": "network",
            "consumerRef": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": consumer, "name": "m0", "namespace": NAMESPACE },
        },
    })
}

fn secret(name: &str) -> Value {
    json!({ "metadata": { "name": name, "finalizers": ["baremetalhost.metal3.io/secret", "other"] } })
}

fn manager(replicas: u32) -> Value {
    json!({
        "metadata": { "name": "capm3-controller-manager" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b", "app.kubernetes.io/part-of": "metal3-rs" } } },
        },
    })
}

async fn world(replicas: u32) -> TestCluster {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    for (name, consumer) in [("of-machine", "Metal3Machine"), ("of-another", "Rack")] {
        world.create::<BareMetalHost>(host(name, consumer)).await;
    }
    for name in ["login", "network"] {
        world.create::<Secret>(secret(name)).await;
    }
    let claim = json!({
        "metadata": { "name": "edge", "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io", "ipclaim.ipam.metal3.io"] },
        "spec": { "pool": { "name": "p" } },
    });
    world.create::<IPClaim>(claim).await;
    world.create::<Deployment>(manager(replicas)).await;
    world
}

async fn states(world: &TestCluster) -> Value {
    let hosts = world.api::<BareMetalHost>();
    let secrets = world.api::<Secret>();
    json!({
        "of-machine": hosts.get("of-machine").await.unwrap().metadata.annotations,
        "of-another": hosts.get("of-another").await.unwrap().metadata.annotations,
        "login": secrets.get("login").await.unwrap().metadata.finalizers,
        "network": secrets.get("network").await.unwrap().metadata.finalizers,
        "claim": world.api::<IPClaim>().get("edge").await.unwrap().metadata.finalizers,
    })
}

#[tokio::test(start_paused = true)]
async fn hand_back_removes_only_what_an_older_go_manager_would_leave() {
    let world = world(0).await;
    let client = world.cluster.client("admin");
    let before = states(&world).await;
    let rehearsal = HandBack {
        dry_run: true,
        ..HandBack::default()
    };
    let lines = rehearsal.run(&client).await.unwrap();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(states(&world).await, before, "a dry run writes nothing");
    assert_eq!(HandBack::default().run(&client).await.unwrap(), lines);
    let after = states(&world).await;
    assert_eq!(after["of-machine"], json!({ "kept": "yes" }));
    assert_eq!(after["network"], json!(["other"]));
    assert_eq!(after["claim"], json!(["ipclaim.ipam.metal3.io"]));
    for kept in ["of-another", "login"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    assert_eq!(
        HandBack::default().run(&client).await.unwrap(),
        [""; 0],
        "nothing is left"
    );
}

#[tokio::test(start_paused = true)]
async fn hand_back_is_refused_while_this_program_runs() {
    let world = world(1).await;
    let before = states(&world).await;
    let error = HandBack::default()
        .run(&world.cluster.client("admin"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("capm3-controller-manager still runs"),
        "{error}"
    );
    assert_eq!(states(&world).await, before);
}

#[test]
fn arguments_of_hand_back_are_checked() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (wanted, kubeconfig) = parse(words("--namespace=metal3 --dry-run --kubeconfig=k")).unwrap();
    assert_eq!((wanted.namespace.as_deref(), wanted.dry_run), (Some("metal3"), true));
    assert_eq!(kubeconfig.as_deref(), Some("k"));
    assert!(
        parse(words("--everything"))
            .unwrap_err()
            .to_string()
            .contains("--dry-run")
    );
}
