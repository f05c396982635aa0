//! A control plane that somebody else runs, as Kamaji does: it publishes its endpoint, and goes on only when the
//! infrastructure of the Cluster has taken it. No address is typed anywhere.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube_core::ApiResource;
use metal3_api::cluster::Cluster;
use metal3_api::crd::{Definition, Version};
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_runtime::clock::TimerClock;
use metal3_simcluster::{Cluster as Server, Options};
use serde_json::{Value, json};

use super::program::start;
use super::site::kinds;

const HOST: &str = "192.0.2.153";
const MANAGER: &str = "manager";

/// The control plane's kind, in the only version that its provider serves.
fn control_planes() -> Definition {
    Definition {
        group: "controlplane.cluster.x-k8s.io",
        kind: "KamajiControlPlane",
        plural: "kamajicontrolplanes",
        singular: "kamajicontrolplane",
        short_names: &[],
        categories: &[],
        labels: &[],
        annotations: &[],
        conversion: None,
        versions: vec![Version {
            name: "v1alpha2",
            storage: true,
            deprecated: false,
            status_subresource: true,
            columns: &[],
            schema: || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            reencode: |value| Ok(value.clone()),
        }],
    }
}

struct World {
    server: Server,
    user: kube::Client,
}

impl World {
    fn start() -> Self {
        let server = Server::start(&Options::seeded(1));
        server.install(&kinds()).unwrap();
        server.install(&[control_planes()]).unwrap();
        let user = server.client("user");
        Self { server, user }
    }

    fn api(&self, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::default_namespaced_with(self.user.clone(), &resource)
    }

    fn control_planes(&self) -> Api<DynamicObject> {
        self.api(
            "controlplane.cluster.x-k8s.io",
            "v1alpha2",
            "KamajiControlPlane",
            "kamajicontrolplanes",
        )
    }

    /// Makes the first, second or third of the objects: the Cluster, the Metal3Cluster, the control plane.
    async fn make(&self, which: usize) {
        let post = PostParams::default();
        match which {
            0 => {
                let cluster = json!({ "metadata": { "name": "edge" }, "spec": {
                    "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "edge" },
                    "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KamajiControlPlane", "name": "edge" },
                } });
                let clusters: Api<Cluster> = Api::default_namespaced(self.user.clone());
                clusters
                    .create(&post, &serde_json::from_value(cluster).unwrap())
                    .await
                    .unwrap();
            }
            1 => {
                let spec = json!({ "clusterName": "edge", "controlPlaneEndpointSource": { "type": "ControlPlane" } });
                let object = json!({ "metadata": { "name": "edge" }, "spec": spec });
                self.metal3_clusters()
                    .create(&post, &serde_json::from_value(object).unwrap())
                    .await
                    .unwrap();
            }
            _ => {
                let object = json!({
                    "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha2", "kind": "KamajiControlPlane",
                    "metadata": { "name": "edge" }, "spec": { "version": "1.33.0" },
                });
                self.control_planes()
                    .create(&post, &serde_json::from_value(object).unwrap())
                    .await
                    .unwrap();
            }
        }
    }

    fn metal3_clusters(&self) -> Api<Metal3Cluster> {
        Api::default_namespaced(self.user.clone())
    }

    /// The control plane has its address, and finds that nobody has taken it.
    async fn publish(&self, host: &str) {
        let (planes, params) = (self.control_planes(), PatchParams::default());
        let spec = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": 6443 } } });
        planes.patch("edge", &params, &Patch::Merge(spec)).await.unwrap();
        self.check("False").await;
    }

    async fn check(&self, passed: &str) {
        let condition = json!({ "type": "InfrastructureClusterPatched", "status": passed, "reason": "Pending" });
        let status = json!({ "status": { "conditions": [condition] } });
        let params = PatchParams::default();
        self.control_planes()
            .patch_status("edge", &params, &Patch::Merge(status))
            .await
            .unwrap();
    }

    /// Cluster API copies what the infrastructure says.
    async fn core(&self) {
        let metal3 = self.metal3_clusters().get("edge").await.unwrap();
        assert_eq!(metal3.status.initialization.unwrap().provisioned, Some(true));
        let spec = json!({ "spec": { "controlPlaneEndpoint": metal3.spec.control_plane_endpoint } });
        let clusters: Api<Cluster> = Api::default_namespaced(self.user.clone());
        clusters
            .patch("edge", &PatchParams::default(), &Patch::Merge(spec))
            .await
            .unwrap();
    }

    fn writes(&self) -> u64 {
        let audit = self.server.audit();
        let is_write = |verb: &str| matches!(verb, "create" | "update" | "patch" | "delete");
        let ours = audit
            .counts()
            .filter(|((user, verb, _), _)| user == MANAGER && is_write(verb));
        ours.map(|(_, count)| count).sum()
    }

    async fn ready(&self) -> (String, String, String) {
        let metal3 = self.metal3_clusters().get("edge").await.unwrap();
        let ready = metal3
            .status
            .conditions
            .into_iter()
            .find(|one| one.type_ == "ControlPlaneEndpointReady");
        let ready = ready.unwrap();
        (format!("{:?}", ready.status), ready.reason, ready.message)
    }

    fn program(&self) -> tokio::task::JoinSet<()> {
        let clock: Arc<dyn metal3_domain::clock::Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        start(&self.server.client(MANAGER), &clock, false)
    }
}

async fn settle() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}

fn host(metal3: &Metal3Cluster) -> Option<Value> {
    metal3
        .spec
        .control_plane_endpoint
        .as_ref()
        .map(|endpoint| json!(endpoint.host))
}

#[tokio::test(start_paused = true)]
async fn no_address_is_typed_and_objects_come_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let world = World::start();
        let _program = world.program();
        for which in order {
            world.make(which).await;
            settle().await;
        }
        assert_eq!(world.ready().await.1, "WaitingForControlPlane", "{order:?}");
        let before = world.writes();
        world.publish(HOST).await;
        settle().await;
        assert_eq!(world.writes() - before, 2, "{order:?}: the endpoint, and the status");
        let metal3 = world.metal3_clusters().get("edge").await.unwrap();
        assert_eq!(host(&metal3), Some(json!(HOST)));
        let marker = &metal3.metadata.annotations.unwrap()["infrastructure.cluster.x-k8s.io/derived-endpoint"];
        assert_eq!(marker, "ControlPlane;192.0.2.153:6443");
        world.check("True").await;
        world.core().await;
        settle().await;
        assert_eq!(world.ready().await.1, "EndpointFromControlPlane");
        let at_rest = world.writes();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(world.writes(), at_rest, "{order:?}: a quiet hour");
    }
}

#[tokio::test(start_paused = true)]
async fn control_plane_that_published_while_nobody_looked_is_said_to_sleep_with_the_cure() {
    let world = World::start();
    for which in 0..3 {
        world.make(which).await;
    }
    world.publish(HOST).await;
    let _program = world.program();
    settle().await;
    assert_eq!(
        world.ready().await,
        ("True".to_owned(), "EndpointFromControlPlane".to_owned(), String::new())
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, _, message) = world.ready().await;
    assert_eq!(status, "True");
    assert!(message.contains("annotate kamajicontrolplane edge"), "{message}");
    world.check("True").await;
    settle().await;
    assert_eq!(world.ready().await.2, "");
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_is_fixed_stays_when_its_source_changes_or_goes() {
    let world = World::start();
    let _program = world.program();
    for which in 0..3 {
        world.make(which).await;
    }
    world.publish(HOST).await;
    settle().await;
    world.check("True").await;
    world.core().await;
    settle().await;
    let drifted = async || {
        let metal3 = world.metal3_clusters().get("edge").await.unwrap();
        let all = metal3.status.conditions.clone();
        let drifted = all
            .into_iter()
            .find(|one| one.type_ == "ControlPlaneEndpointDrifted")
            .unwrap();
        (host(&metal3), format!("{:?} {}", drifted.status, drifted.reason))
    };
    world.publish("192.0.2.9").await;
    settle().await;
    assert_eq!(drifted().await, (Some(json!(HOST)), "True SourceChanged".to_owned()));
    world
        .control_planes()
        .delete("edge", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    settle().await;
    assert_eq!(
        drifted().await,
        (Some(json!(HOST)), "Unknown SourceNotFound".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn kind_that_nobody_serves_is_a_source_that_does_not_exist() {
    let world = World::start();
    let _program = world.program();
    world.make(0).await;
    let source =
        json!({ "type": "ControlPlane", "objectRef": { "apiGroup": "odd.example.io", "kind": "Odd", "name": "odd" } });
    let object = json!({ "metadata": { "name": "edge" }, "spec": { "clusterName": "edge", "controlPlaneEndpointSource": source } });
    let object = serde_json::from_value(object).unwrap();
    world
        .metal3_clusters()
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    settle().await;
    let (status, reason, message) = world.ready().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SourceNotFound"));
    assert!(message.starts_with("Odd odd does not exist"), "{message}");
}
