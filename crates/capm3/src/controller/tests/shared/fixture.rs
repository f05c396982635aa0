//! A control plane of another provider, and a Metal3Cluster that takes its endpoint. The test performs the steps of all
//! other programs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube_core::ApiResource;
use metal3_api::cluster::Cluster;
use metal3_api::crd::Definition;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::{Cluster as Server, Options};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::program::standalone;
use super::super::steps::kinds;

pub(super) const HOST: &str = "192.0.2.153";
pub(super) const MANAGER: &str = "manager";

/// The kind of the control plane, in the only version that its provider serves, and the infrastructure of another
/// provider.
pub(super) fn foreign_kinds() -> Vec<Definition> {
    let wanted = ["KamajiControlPlane", "ByoCluster"];
    let all = metal3_sim_capi::kinds::definitions().into_iter();
    all.filter(|kind| wanted.contains(&kind.kind)).collect()
}

pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) user: kube::Client,
    pub(super) metrics: Metrics,
}

impl Fixture {
    pub(super) fn start() -> Self {
        let server = Server::start(&Options::seeded(1));
        server.install(&kinds()).unwrap();
        server.install(&foreign_kinds()).unwrap();
        let user = server.client("user");
        Self {
            server,
            user,
            metrics: Metrics::new(),
        }
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

    pub(super) fn control_planes(&self) -> Api<DynamicObject> {
        self.api(
            "controlplane.cluster.x-k8s.io",
            "v1alpha2",
            "KamajiControlPlane",
            "kamajicontrolplanes",
        )
    }

    /// Creates the first, second or third of the objects: the Cluster, the Metal3Cluster, the control plane.
    pub(super) async fn make(&self, number: usize) {
        let post = PostParams::default();
        match number {
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

    pub(super) fn metal3_clusters(&self) -> Api<Metal3Cluster> {
        Api::default_namespaced(self.user.clone())
    }

    /// The control plane gets its address, and its provider reports that the infrastructure has no endpoint.
    pub(super) async fn publish(&self, host: &str) {
        let (planes, params) = (self.control_planes(), PatchParams::default());
        let spec = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": 6443 } } });
        planes.patch("edge", &params, &Patch::Merge(spec)).await.unwrap();
        self.set_check("False").await;
    }

    pub(super) async fn set_check(&self, passed: &str) {
        let condition = json!({ "type": "InfrastructureClusterPatched", "status": passed, "reason": "Pending" });
        let status = json!({ "status": { "conditions": [condition] } });
        let params = PatchParams::default();
        self.control_planes()
            .patch_status("edge", &params, &Patch::Merge(status))
            .await
            .unwrap();
    }

    /// Cluster API copies the endpoint of the infrastructure.
    pub(super) async fn copy_endpoint(&self) {
        let metal3 = self.metal3_clusters().get("edge").await.unwrap();
        assert_eq!(metal3.status.initialization.unwrap().provisioned, Some(true));
        let spec = json!({ "spec": { "controlPlaneEndpoint": metal3.spec.control_plane_endpoint } });
        let clusters: Api<Cluster> = Api::default_namespaced(self.user.clone());
        clusters
            .patch("edge", &PatchParams::default(), &Patch::Merge(spec))
            .await
            .unwrap();
    }

    /// The requests of this program since the last reset, by verb and resource.
    pub(super) fn requests(&self) -> BTreeMap<String, u64> {
        let audit = self.server.audit();
        let own = audit.counts().filter(|((user, ..), _)| user == MANAGER);
        own.map(|((_, verb, resource), count)| (format!("{verb} {resource}"), count))
            .collect()
    }

    /// The write requests among them.
    pub(super) fn writes(&self) -> BTreeMap<String, u64> {
        let mut requests = self.requests();
        requests.retain(|what, _| {
            !["get ", "list ", "watch "].iter().any(|verb| what.starts_with(verb)) && what != "other nonresource"
        });
        requests
    }

    /// Number of reconciles of Metal3Clusters.
    pub(super) fn reconciles(&self) -> u64 {
        let text = self.metrics.render();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("controller_runtime_reconcile_total"));
        let lines = lines.filter(|line| line.contains("controller=\"metal3cluster\""));
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }

    pub(super) async fn ready(&self) -> (String, String, String) {
        let metal3 = self.metal3_clusters().get("edge").await.unwrap();
        let ready = metal3
            .status
            .conditions
            .into_iter()
            .find(|one| one.type_ == "ControlPlaneEndpointReady");
        let ready = ready.unwrap();
        (format!("{:?}", ready.status), ready.reason, ready.message)
    }

    pub(super) fn program(&self) -> JoinSet<()> {
        self.program_with(false)
    }

    /// Starts the program, with or without touching control planes.
    pub(super) fn program_with(&self, touches_control_planes: bool) -> JoinSet<()> {
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let mut standalone = standalone(&self.server.client(MANAGER), &clock);
        standalone.touches_control_planes = touches_control_planes;
        standalone.metrics = self.metrics.clone();
        standalone.tasks().into_iter().collect()
    }
}

pub(super) async fn wait() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}

pub(super) fn host(metal3: &Metal3Cluster) -> Option<Value> {
    let endpoint = metal3.spec.control_plane_endpoint.as_ref();
    endpoint.map(|endpoint| json!(endpoint.host))
}
