//! The way back to a Go manager that does not remove what this program writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::{Method, Request};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client};
use metal3_api::catalog;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::metal3::v1alpha1::{BareMetalHost, PreprovisioningImage};
use metal3_manager::hand_back::{HandBack, parse};
use serde_json::{Value, json};
use tower::ServiceExt as _;

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
    json!({ "metadata": { "name": name, "finalizers": ["baremetalhost.metal3.io/secret", "example.org/other"] } })
}

fn manager(replicas: u32) -> Value {
    json!({
        "metadata": { "name": "capm3-controller-manager" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b", "app.kubernetes.io/part-of": "metal3-rs" } },
                "spec": { "containers": [{ "name": "manager", "image": "example.com/capm3:v1" }] },
            },
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
    let image = json!({
        "metadata": { "name": "of-machine", "finalizers": ["baremetalhost.metal3.io/preprovisioningImage", "preprovisioningimage.metal3.io"] },
        "spec": { "architecture": "x86_64", "acceptFormats": ["iso"] },
    });
    world.create::<PreprovisioningImage>(image).await;
    world.create::<Deployment>(manager(replicas)).await;
    world
}

/// The reported lines, and how it ended.
async fn run(wanted: &HandBack, client: &Client) -> (Vec<String>, anyhow::Result<()>) {
    let mut lines = Vec::new();
    let ended = wanted.run(client, &mut |line| lines.push(line)).await;
    (lines, ended)
}

async fn states(world: &TestCluster) -> Value {
    let hosts = world.api::<BareMetalHost>();
    let secrets = world.api::<Secret>();
    json!({
        "of-machine": hosts.get("of-machine").await.unwrap().metadata.annotations,
        "of-another": hosts.get("of-another").await.unwrap().metadata.annotations,
        "login": secrets.get("login").await.unwrap().metadata.finalizers,
        "network": secrets.get("network").await.unwrap().metadata.finalizers,
        "image": world.api::<PreprovisioningImage>().get("of-machine").await.unwrap().metadata.finalizers,
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
    let (lines, ended) = run(&rehearsal, &client).await;
    ended.unwrap();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert_eq!(states(&world).await, before, "a dry run writes nothing");
    assert_eq!(run(&HandBack::default(), &client).await.0, lines);
    let after = states(&world).await;
    assert_eq!(after["of-machine"], json!({ "kept": "yes" }));
    assert_eq!(after["network"], json!(["example.org/other"]));
    assert_eq!(after["claim"], json!(["ipclaim.ipam.metal3.io"]));
    assert_eq!(after["image"], json!(["preprovisioningimage.metal3.io"]));
    for kept in ["of-another", "login"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let (lines, ended) = run(&HandBack::default(), &client).await;
    ended.unwrap();
    assert_eq!(lines, [""; 0], "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn claim_that_is_being_deleted_is_left_to_the_user() {
    let world = world(0).await;
    let claims = world.api::<IPClaim>();
    claims.delete("edge", &DeleteParams::default()).await.unwrap();
    let (lines, ended) = run(&HandBack::default(), &world.cluster.client("admin")).await;
    let finalizer = "metal3cluster.infrastructure.cluster.x-k8s.io";
    let wanted = format!(
        "IPClaim {NAMESPACE}/edge: is being deleted; remove finalizer {finalizer} once no control plane uses its address"
    );
    assert_eq!(lines.last(), Some(&wanted), "{lines:?}");
    assert_eq!(lines.len(), 4, "the others are changed: {lines:?}");
    assert!(ended.unwrap_err().to_string().starts_with("1 claims are being deleted"));
    let kept = claims.get("edge").await.unwrap().metadata.finalizers.unwrap();
    assert!(kept.iter().any(|kept| kept == finalizer), "{kept:?}");
}

/// A client of the cluster before whose first change of each object another client acts.
fn contended(world: &TestCluster, path: &'static str, act: Act) -> Client {
    let (service, other) = (world.cluster.service("admin"), world.cluster.client("other"));
    let acted = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (service, other, acted) = (service.clone(), other.clone(), Arc::clone(&acted));
        async move {
            let is_met = request.method() == Method::PATCH && request.uri().path().ends_with(path);
            if is_met && acted.fetch_add(1, Ordering::SeqCst) < act.times() {
                act.perform(&other).await;
            }
            service.oneshot(request).await
        }
    });
    Client::new(service, NAMESPACE)
}

#[derive(Clone, Copy)]
enum Act {
    /// Changes the host this many times, once before each request.
    Change(usize),
    /// Deletes it for good.
    Delete,
}

impl Act {
    fn times(self) -> usize {
        match self {
            Self::Change(times) => times,
            Self::Delete => 1,
        }
    }

    async fn perform(self, other: &Client) {
        let hosts: Api<BareMetalHost> = Api::namespaced(other.clone(), NAMESPACE);
        let host = hosts.get("of-machine").await.unwrap();
        let version = host.metadata.resource_version.unwrap();
        let patch = match self {
            Self::Change(_) => json!({ "metadata": { "annotations": { "changed": version } } }),
            Self::Delete => json!({ "metadata": { "finalizers": [] } }),
        };
        let patch = Patch::Merge(patch);
        hosts
            .patch("of-machine", &PatchParams::default(), &patch)
            .await
            .unwrap();
        if matches!(self, Self::Delete) {
            hosts.delete("of-machine", &DeleteParams::default()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn object_that_another_client_changes_is_read_and_changed_again() {
    let world = world(0).await;
    let client = contended(&world, "/of-machine", Act::Change(2));
    let (lines, ended) = run(&HandBack::default(), &client).await;
    ended.unwrap();
    assert_eq!(lines.len(), 4, "{lines:?}");
    let host = states(&world).await["of-machine"].clone();
    assert!(host.get(BLOCK).is_none() && host.get("changed").is_some(), "{host}");
}

#[tokio::test(start_paused = true)]
async fn object_that_another_client_deletes_needs_nothing() {
    let world = world(0).await;
    let client = contended(&world, "/of-machine", Act::Delete);
    let (lines, ended) = run(&HandBack::default(), &client).await;
    ended.unwrap();
    assert_eq!(lines.len(), 3, "the Secret, the image and the claim: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn lines_before_a_failure_are_reported() {
    let world = world(0).await;
    world.create::<BareMetalHost>(host("a-first", "Metal3Machine")).await;
    let client = contended(&world, "/of-machine", Act::Change(usize::MAX));
    let (lines, ended) = run(&HandBack::default(), &client).await;
    let error = ended.unwrap_err().to_string();
    assert!(
        error.contains("of-machine") && error.contains("run this again"),
        "{error}"
    );
    assert_eq!(lines, [format!("BareMetalHost {NAMESPACE}/a-first")]);
}

#[tokio::test(start_paused = true)]
async fn hand_back_is_refused_while_this_program_runs() {
    let world = world(1).await;
    let before = states(&world).await;
    let (lines, ended) = run(&HandBack::default(), &world.cluster.client("admin")).await;
    let error = ended.unwrap_err();
    assert_eq!(lines, [""; 0]);
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

/// Others may serve other namespaces.
#[tokio::test(start_paused = true)]
async fn program_that_serves_another_namespace_only_stops_no_hand_back_of_this_one() {
    let wanted = |namespace: &str| HandBack {
        namespace: Some(namespace.to_owned()),
        dry_run: true,
    };
    for (argument, variable, stops) in [
        ("--controllers=capm3 --namespace=elsewhere", "", false),
        ("--controllers=capm3 --namespace elsewhere", "", false),
        ("--controllers=hosts", "elsewhere", false),
        ("--controllers=capm3", "elsewhere", true),
        ("--controllers=ipam,capm3,hosts", "elsewhere", true),
        ("--controllers=capm3 --namespace=$(WATCH)", "", true),
        ("--controllers=capm3", "", true),
        ("--no-such-flag", "elsewhere", true),
    ] {
        let world = world(1).await;
        let container = json!({ "name": "manager", "image": "x", "args": argument.split(' ').collect::<Vec<_>>(),
            "env": [{ "name": "WATCH_NAMESPACE", "value": variable }] });
        let patch = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        let deployments = world.api::<Deployment>();
        let patch = Patch::Merge(patch);
        deployments
            .patch("capm3-controller-manager", &PatchParams::default(), &patch)
            .await
            .unwrap();
        let client = world.cluster.client("admin");
        let (_, ended) = run(&wanted(NAMESPACE), &client).await;
        assert_eq!(ended.is_err(), stops, "{argument:?} {variable:?}: {ended:?}");
        let (_, ended) = run(
            &HandBack {
                namespace: None,
                ..wanted("")
            },
            &client,
        )
        .await;
        ended.unwrap_err();
    }
}
