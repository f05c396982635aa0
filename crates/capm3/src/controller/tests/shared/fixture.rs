//! A control plane of another provider, and a Metal3Cluster that takes its endpoint. The test performs the steps of all
//! other programs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::{Cluster as Server, Options};
use metal3_sim_faults::{Fault, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::program::standalone;
use super::super::steps::{edit, kinds, make};
use crate::data::reconciler::tests::lab::{CLUSTER_API, INFRASTRUCTURE, User};

pub(super) const HOST: &str = "192.0.2.153";
pub(super) const MANAGER: &str = "manager";
/// The only version that the provider of the control plane serves.
pub(super) const CONTROL_PLANES: &str = "/apis/controlplane.cluster.x-k8s.io/v1alpha2/namespaces/default";

pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) user: User,
    metrics: Metrics,
}

/// A spec or patch with an endpoint.
pub(super) fn endpoint(host: &str) -> Value {
    json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": 6443 } } })
}

/// The spec of a Cluster with infrastructure of this kind and a control plane of another provider.
pub(super) fn cluster_spec(infrastructure: &str) -> Value {
    json!({
        "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": infrastructure, "name": "edge" },
        "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KamajiControlPlane", "name": "edge" },
    })
}

pub(super) async fn make_control_plane(user: &User) {
    let plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha2", "kind": "KamajiControlPlane",
        "metadata": { "name": "edge" }, "spec": { "version": "1.33.0" },
    });
    user.make(CONTROL_PLANES, "kamajicontrolplanes", plane).await;
}

/// The control plane gets this endpoint.
pub(super) async fn set_endpoint(user: &User, host: &str) {
    user.change(CONTROL_PLANES, "kamajicontrolplanes/edge", endpoint(host))
        .await;
}

/// The reference of an object to the Cluster as its owner.
pub(super) async fn cluster_owner(user: &User) -> Value {
    let cluster = user.get(CLUSTER_API, "clusters/edge").await;
    let uid = &cluster["metadata"]["uid"];
    json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "edge", "uid": uid })
}

/// Rejects each request for a resource with this status code.
pub(super) fn rejecting(code: u16, resource: &'static str) -> Rule {
    let refused = Fault::Refused {
        code,
        retry_after: None,
    };
    Rule::random(1000, refused).resource(resource)
}

/// Status, reason and message of a condition.
pub(super) fn condition(object: &Value, aspect: &str) -> (String, String, String) {
    let all = object["status"]["conditions"].as_array().unwrap();
    let found = all.iter().find(|one| one["type"] == aspect).unwrap();
    let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

/// The requests of the program since the last reset, by verb and resource.
pub(super) fn requests(server: &Server) -> BTreeMap<String, u64> {
    let audit = server.audit();
    let own = audit.counts().filter(|((user, ..), _)| user == MANAGER);
    own.map(|((_, verb, resource), count)| (format!("{verb} {resource}"), count))
        .collect()
}

impl Fixture {
    pub(super) fn start() -> Self {
        let server = Server::start(&Options::seeded(1));
        server.install(&kinds()).unwrap();
        Self {
            user: User(server.client("user")),
            server,
            metrics: Metrics::new(),
        }
    }

    /// The program, and all objects after the control plane published its endpoint.
    pub(super) async fn published() -> (Self, JoinSet<()>) {
        let fixture = Self::start();
        let program = fixture.program();
        fixture.make_all().await;
        fixture.publish(HOST).await;
        wait().await;
        (fixture, program)
    }

    /// Creates the first, second or third of the objects: the Cluster, the Metal3Cluster, the control plane.
    pub(super) async fn make(&self, number: usize) {
        match number {
            0 => self.cluster(json!({ "spec": cluster_spec("Metal3Cluster") })).await,
            1 => self.metal3_cluster(json!({ "type": "ControlPlane" })).await,
            _ => make_control_plane(&self.user).await,
        }
    }

    pub(super) async fn make_all(&self) {
        for number in 0..3 {
            self.make(number).await;
        }
    }

    pub(super) async fn cluster(&self, cluster: Value) {
        make::<Cluster>(&self.user.0, "edge", cluster).await;
    }

    /// Creates a Metal3Cluster with this source of its endpoint.
    pub(super) async fn metal3_cluster(&self, source: Value) {
        let spec = json!({ "clusterName": "edge", "controlPlaneEndpointSource": source });
        make::<Metal3Cluster>(&self.user.0, "edge", json!({ "spec": spec })).await;
    }

    pub(super) async fn metal3(&self) -> Metal3Cluster {
        let all: Api<Metal3Cluster> = Api::default_namespaced(self.user.0.clone());
        all.get("edge").await.unwrap()
    }

    /// The host of the Metal3Cluster's endpoint.
    pub(super) async fn host(&self) -> Option<String> {
        self.metal3().await.spec.control_plane_endpoint?.host
    }

    /// The control plane gets its address, and its provider reports that the infrastructure has no endpoint.
    pub(super) async fn publish(&self, host: &str) {
        set_endpoint(&self.user, host).await;
        self.set_check("False").await;
    }

    pub(super) async fn set_check(&self, passed: &str) {
        let condition = json!({ "type": "InfrastructureClusterPatched", "status": passed, "reason": "Pending" });
        let status = json!({ "status": { "conditions": [condition] } });
        let path = "kamajicontrolplanes/edge/status";
        self.user.change(CONTROL_PLANES, path, status).await;
    }

    /// Cluster API copies the endpoint of the infrastructure.
    pub(super) async fn copy_endpoint(&self) {
        let metal3 = self.metal3().await;
        assert_eq!(metal3.status.initialization.unwrap().provisioned, Some(true));
        let spec = json!({ "spec": { "controlPlaneEndpoint": metal3.spec.control_plane_endpoint } });
        edit::<Cluster>(&self.user.0, "edge", spec).await;
    }

    pub(super) fn requests(&self) -> BTreeMap<String, u64> {
        requests(&self.server)
    }

    /// The write requests of the program since the last reset.
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

    /// Status, reason and message of the endpoint condition.
    pub(super) async fn ready(&self) -> (String, String, String) {
        let metal3 = self.user.get(INFRASTRUCTURE, "metal3clusters/edge").await;
        condition(&metal3, "ControlPlaneEndpointReady")
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
