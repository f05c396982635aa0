//! A management cluster with stand-ins for Cluster API and Kamaji, which repeat recorded actions at the recorded times.

use std::sync::Arc;
use std::time::Duration;

use metal3_api::crd::Definition;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_capi::program::Providers;
use metal3_sim_capi::workload::WorkloadClusters;
use metal3_sim_capi::{kamaji, kinds, program};
use metal3_sim_cluster::{Cluster as Server, Options};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::clusterctl::Place;
use super::super::program::standalone;
use super::super::steps;
use super::fixture::{CONTROL_PLANES, MANAGER, cluster_spec, condition};
use crate::data::reconciler::tests::lab::{CLUSTER_API, INFRASTRUCTURE, User, address_management};

/// The version that the BYOH provider serves.
pub(super) const BROUGHT: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default";
/// The version of the control planes without machines.
pub(super) const HOSTED: &str = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default";

/// The management cluster. Dropping it stops everything in it.
pub(super) struct ProviderFixture {
    pub(super) server: Server,
    pub(super) user: User,
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
    let is_stood_in = |kind: &Definition| stand_ins.iter().any(|one| one.kind == kind.kind);
    let ours: Vec<Definition> = steps::kinds().into_iter().filter(|kind| !is_stood_in(kind)).collect();
    ours.into_iter().chain(stand_ins).collect()
}

/// The parts of a cluster of two providers.
pub(super) const TWO_PROVIDERS: [Part; 4] = [Part::ForeignCluster, Part::Byo, Part::Hosted, Part::Secondary];

impl Part {
    const fn path(self) -> Place {
        match self {
            Self::Cluster | Self::ForeignCluster => (CLUSTER_API, "clusters"),
            Self::Primary | Self::Secondary => (INFRASTRUCTURE, "metal3clusters"),
            Self::Kamaji => (CONTROL_PLANES, "kamajicontrolplanes"),
            Self::Byo => (BROUGHT, "byoclusters"),
            Self::Hosted => (HOSTED, "hostedcontrolplanes"),
        }
    }

    fn document(self) -> Value {
        let (group, kind) = match self {
            Self::Cluster | Self::ForeignCluster => ("cluster.x-k8s.io/v1beta2", "Cluster"),
            Self::Primary | Self::Secondary => ("infrastructure.cluster.x-k8s.io/v1beta2", "Metal3Cluster"),
            Self::Kamaji => ("controlplane.cluster.x-k8s.io/v1alpha2", "KamajiControlPlane"),
            Self::Byo => ("infrastructure.cluster.x-k8s.io/v1beta1", "ByoCluster"),
            Self::Hosted => ("controlplane.cluster.x-k8s.io/v1beta2", "HostedControlPlane"),
        };
        let spec = match self {
            Self::Cluster => cluster_spec("Metal3Cluster"),
            Self::Primary => json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" } }),
            Self::Kamaji => json!({ "version": "1.33.0", "replicas": 2 }),
            Self::ForeignCluster => {
                let mut spec = cluster_spec("ByoCluster");
                spec["controlPlaneRef"]["kind"] = json!("HostedControlPlane");
                spec
            }
            Self::Byo => json!({ "controlPlaneEndpoint": { "host": "192.0.2.20" } }),
            Self::Hosted => json!({}),
            Self::Secondary => json!({ "clusterName": "edge" }),
        };
        json!({ "apiVersion": group, "kind": kind, "metadata": { "name": "edge" }, "spec": spec })
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
            user: User(server.client("user")),
            server,
            clock,
            _stand_ins: stand_ins,
        }
    }

    /// The real address management.
    pub(super) fn addresses(&self) -> JoinSet<()> {
        address_management(&self.server.client("addresses"), &self.clock)
    }

    /// Starts the program, with or without touching control planes.
    pub(super) fn program(&self, touches_control_planes: bool) -> JoinSet<()> {
        let mut standalone = standalone(&self.server.client(MANAGER), &self.clock);
        (standalone.touches_control_planes, standalone.with_data) = (touches_control_planes, true);
        standalone.tasks().into_iter().collect()
    }

    pub(super) async fn make(&self, part: Part) {
        let (place, plural) = part.path();
        self.user.make(place, plural, part.document()).await;
    }

    /// Creates a cluster of two providers.
    pub(super) async fn make_two_providers(&self) {
        for part in TWO_PROVIDERS {
            self.make(part).await;
        }
    }

    pub(super) async fn delete(&self, part: Part) {
        let (place, plural) = part.path();
        self.user.delete(place, &format!("{plural}/edge")).await;
    }

    /// The object, if it exists.
    pub(super) async fn get(&self, part: Part) -> Option<Value> {
        let (place, plural) = part.path();
        self.user.list(place, plural).await.pop()
    }

    /// Annotates the control plane, as its condition recommends.
    pub(super) async fn touch(&self) {
        let touch =
            json!({ "metadata": { "annotations": { "infrastructure.cluster.x-k8s.io/endpoint-taken": "true" } } });
        self.user
            .change(CONTROL_PLANES, "kamajicontrolplanes/edge", touch)
            .await;
    }

    pub(super) async fn is_available(&self) -> bool {
        let cluster = self.get(Part::Cluster).await.unwrap();
        let all = cluster["status"]["conditions"].as_array();
        all.is_some_and(|all| {
            all.iter()
                .any(|one| one["type"] == "Available" && one["status"] == "True")
        })
    }

    /// Reason and message of the endpoint condition.
    pub(super) async fn condition(&self) -> (String, String) {
        let primary = self.get(Part::Primary).await.unwrap();
        let (_, reason, message) = condition(&primary, "ControlPlaneEndpointReady");
        (reason, message)
    }
}

pub(super) async fn seconds(number: u64) {
    tokio::time::sleep(Duration::from_secs(number)).await;
}
