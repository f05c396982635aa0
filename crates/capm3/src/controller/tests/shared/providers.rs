//! A management cluster with stand-ins for Cluster API and Kamaji, which repeat recorded actions at the recorded times.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use metal3_api::crd::Definition;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_capi::program::Providers;
use metal3_sim_capi::workload::WorkloadClusters;
use metal3_sim_capi::{kamaji, kinds, program};
use metal3_sim_cluster::{Cluster as Server, Options};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::program::standalone;
use super::super::steps;
use crate::data::reconciler::tests::lab::{User, address_management};

const CLUSTER_API: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters";
const CONTROL_PLANES: &str = "/apis/controlplane.cluster.x-k8s.io/v1alpha2/namespaces/default/kamajicontrolplanes";
const METAL3_CLUSTERS: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/metal3clusters";
const BYO_CLUSTERS: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/byoclusters";
const HOSTED: &str = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default/hostedcontrolplanes";

/// The management cluster. Dropping it stops everything in it.
pub(super) struct ProviderFixture {
    pub(super) server: Server,
    user: kube::Client,
    clock: Arc<dyn Clock>,
    _stand_ins: JoinSet<()>,
}

/// Objects of users, all by the name `edge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A Cluster with Metal3 infrastructure and a control plane of Kamaji.
    Cluster,
    /// Its infrastructure, which takes the endpoint of the control plane.
    Primary,
    /// Its control plane.
    Kamaji,
    /// A Cluster with the infrastructure of another provider, and a control plane without machines.
    ForeignCluster,
    /// Its infrastructure.
    Byo,
    /// Its control plane.
    Hosted,
    /// A Metal3Cluster that joins it.
    Secondary,
}

fn all_kinds() -> Vec<Definition> {
    let stand_ins = kinds::definitions();
    let templates = metal3_api::infrastructure::definitions().into_iter();
    let templates = templates
        .filter(|kind| kind.plural == "metal3machinetemplates")
        .map(|mut kind| {
            kind.versions.retain(|version| version.storage);
            kind.conversion = None;
            kind
        });
    let is_stood_in = |kind: &Definition| stand_ins.iter().any(|one| one.kind == kind.kind);
    let ours: Vec<Definition> = steps::kinds().into_iter().filter(|kind| !is_stood_in(kind)).collect();
    ours.into_iter().chain(templates).chain(stand_ins).collect()
}

impl Part {
    fn document(self) -> (&'static str, Value) {
        let infrastructure =
            |kind: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "edge" });
        let control_plane =
            |kind: &str| json!({ "apiGroup": "controlplane.cluster.x-k8s.io", "kind": kind, "name": "edge" });
        let (path, spec) = match self {
            Self::Cluster => (
                CLUSTER_API,
                json!({ "infrastructureRef": infrastructure("Metal3Cluster"), "controlPlaneRef": control_plane("KamajiControlPlane") }),
            ),
            Self::Primary => (
                METAL3_CLUSTERS,
                json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" } }),
            ),
            Self::Kamaji => (CONTROL_PLANES, json!({ "version": "1.33.0", "replicas": 2 })),
            Self::ForeignCluster => (
                CLUSTER_API,
                json!({ "infrastructureRef": infrastructure("ByoCluster"), "controlPlaneRef": control_plane("HostedControlPlane") }),
            ),
            Self::Byo => (
                BYO_CLUSTERS,
                json!({ "controlPlaneEndpoint": { "host": "192.0.2.20" } }),
            ),
            Self::Hosted => (HOSTED, json!({})),
            Self::Secondary => (METAL3_CLUSTERS, json!({ "clusterName": "edge" })),
        };
        let (group, kind) = match self {
            Self::Cluster | Self::ForeignCluster => ("cluster.x-k8s.io/v1beta2", "Cluster"),
            Self::Primary | Self::Secondary => ("infrastructure.cluster.x-k8s.io/v1beta2", "Metal3Cluster"),
            Self::Kamaji => ("controlplane.cluster.x-k8s.io/v1alpha2", "KamajiControlPlane"),
            Self::Byo => ("infrastructure.cluster.x-k8s.io/v1beta1", "ByoCluster"),
            Self::Hosted => ("controlplane.cluster.x-k8s.io/v1beta2", "HostedControlPlane"),
        };
        (
            path,
            json!({ "apiVersion": group, "kind": kind, "metadata": { "name": "edge" }, "spec": spec }),
        )
    }
}

impl ProviderFixture {
    pub(super) fn start() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let server = Server::start(&Options {
            clock: Arc::clone(&clock),
            ..Options::seeded(1)
        });
        server.install(&all_kinds()).unwrap();
        let parts = |name| program::Parts {
            client: server.client(name),
            workloads: Arc::new(WorkloadClusters::new(1, Arc::clone(&clock))),
            clock: Arc::clone(&clock),
        };
        let (copy_endpoint, provider) = (parts("cluster-api"), parts("kamaji"));
        let provider = program::Parts {
            workloads: Arc::clone(&copy_endpoint.workloads),
            ..provider
        };
        let balancer = program::Parts {
            client: server.client("balancer"),
            ..provider.clone()
        };
        let mut stand_ins = JoinSet::new();
        stand_ins.spawn(program::run(copy_endpoint, Providers::All));
        stand_ins.spawn(kamaji::run(provider));
        stand_ins.spawn(kamaji::balance(balancer));
        let collected = server.clone();
        stand_ins.spawn(async move { collected.run_collector().await });
        Self {
            user: server.client("user"),
            server,
            clock,
            _stand_ins: stand_ins,
        }
    }

    pub(super) fn user_client(&self) -> User {
        User(self.user.clone())
    }

    /// The real address management.
    pub(super) fn addresses(&self) -> JoinSet<()> {
        address_management(&self.server.client("addresses"), &self.clock)
    }

    /// Starts the program, with or without touching control planes.
    pub(super) fn program(&self, touches_control_planes: bool) -> JoinSet<()> {
        let mut standalone = standalone(&self.server.client("manager"), &self.clock);
        (standalone.touches_control_planes, standalone.with_data) = (touches_control_planes, true);
        standalone.tasks().into_iter().collect()
    }

    pub(super) async fn make(&self, part: Part) {
        let (path, document) = part.document();
        self.send(Method::POST, path, &document).await.unwrap();
    }

    pub(super) async fn delete(&self, part: Part) {
        let (path, _) = part.document();
        self.send(Method::DELETE, &format!("{path}/edge"), &json!({}))
            .await
            .unwrap();
    }

    /// The object, if it exists.
    pub(super) async fn get(&self, part: Part) -> Option<Value> {
        let (path, _) = part.document();
        match self.send(Method::GET, &format!("{path}/edge"), &Value::Null).await {
            Ok(found) => Some(found),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Annotates the control plane, as its condition recommends.
    pub(super) async fn touch(&self) {
        let touch =
            json!({ "metadata": { "annotations": { "infrastructure.cluster.x-k8s.io/endpoint-taken": "true" } } });
        self.send(Method::PATCH, &format!("{CONTROL_PLANES}/edge"), &touch)
            .await
            .unwrap();
    }

    pub(super) async fn is_available(&self) -> bool {
        holds(&self.get(Part::Cluster).await.unwrap(), "Available")
    }

    /// Reason and message of the endpoint condition.
    pub(super) async fn condition(&self) -> (String, String) {
        let found = self.get(Part::Primary).await.unwrap();
        let all = found["status"]["conditions"].as_array().unwrap().clone();
        let ready = all
            .into_iter()
            .find(|one| one["type"] == "ControlPlaneEndpointReady")
            .unwrap();
        let text = |member: &str| ready[member].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let media = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, media).body(body).unwrap();
        self.user.request(request).await
    }
}

fn holds(object: &Value, aspect: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|one| one["type"] == aspect && one["status"] == "True"))
}

pub(super) async fn seconds(number: u64) {
    tokio::time::sleep(Duration::from_secs(number)).await;
}
