//! Write faults while claiming an address, writing it back, rendering it and releasing it.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_domain::clock::Clock;
use metal3_harness::{Instance, Report, State, TestEnv, WriteFault};
use metal3_sim_cluster::Cluster as Server;
use serde_json::json;
use tokio::task::JoinSet;

use super::super::program::start;
use super::super::steps::kinds;
use super::pool::{CLAIM, CORE, SECRET, cluster_with, content_of, pooled, template, vips};
use crate::data::reconciler::tests::lab::{CLUSTER_API, INFRASTRUCTURE, IPAM, User, address_management};
use crate::tests::sweep;

/// The address that the pool grants.
const GRANTED: &str = "192.0.2.50";
/// An unrelated address.
const OTHER: &str = "203.0.113.9";

/// A step of a user or another program.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Creates a pool, a template, and a cluster that uses both.
    Make,
    /// The Cluster gets this endpoint.
    Fix(&'static str),
    Template,
    DeleteClaim,
    /// The Metal3Cluster is paused.
    Pause,
    /// Its finalizers are removed, and it is deleted.
    Force,
    Delete,
}

impl Step {
    async fn take(self, user: &User) {
        match self {
            Self::Make => {
                vips(user, 2).await;
                template(user, "one ${HOST}:${PORT}").await;
                cluster_with(user, pooled()).await;
            }
            Self::Fix(host) => {
                let endpoint = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": 8443 } } });
                drop(user.change(CLUSTER_API, "clusters/edge", endpoint).await);
            }
            Self::Template => {
                let text = json!({ "data": { "vip.yaml": "two ${HOST}:${PORT}" } });
                drop(user.change(CORE, "configmaps/vip", text).await);
            }
            Self::DeleteClaim => user.delete(IPAM, &format!("ipclaims/{CLAIM}")).await,
            Self::Pause => {
                let pause = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } });
                user.change(INFRASTRUCTURE, "metal3clusters/edge", pause).await;
            }
            Self::Force => {
                let force = json!({ "metadata": { "finalizers": null } });
                user.change(INFRASTRUCTURE, "metal3clusters/edge", force).await;
                user.delete(INFRASTRUCTURE, "metal3clusters/edge").await;
            }
            Self::Delete => user.delete(INFRASTRUCTURE, "metal3clusters/edge").await,
        }
    }
}

/// The life cycle of an endpoint, which ends without claim and address.
struct Scenario {
    name: &'static str,
    stages: &'static [Step],
    /// Other remaining objects.
    leftover: &'static [&'static str],
}

impl TestEnv for Scenario {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, server: &Server) {
        server.install(&kinds()).unwrap();
    }

    fn background(&self, server: &Server, clock: &Arc<dyn Clock>) -> JoinSet<()> {
        address_management(&server.client("addresses"), clock)
    }

    fn stages(&self) -> usize {
        self.stages.len()
    }

    async fn stage(&self, stage: usize, user: kube::Client) {
        self.stages[stage].take(&User(user)).await;
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock, false);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        vec![
            State::path::<Metal3Cluster>(),
            State::path::<Cluster>(),
            State::path::<IPClaim>(),
            State::path::<IPAddress>(),
            State::path::<Secret>(),
        ]
    }

    /// Invariants: at most one address, which is not free while it is the endpoint of a live object; no other endpoint
    /// than this one or that of the Cluster, in the spec and in the Secret.
    fn violations(&self, state: &State) -> Vec<String> {
        let mut wrong = Vec::new();
        let addresses = state.of::<IPAddress>();
        if addresses.len() > 1 || state.of::<IPClaim>().len() > 1 {
            wrong.push(format!("{} addresses", addresses.len()));
        }
        for object in state.of::<Metal3Cluster>() {
            let lives = object.metadata.deletion_timestamp.is_none();
            let host = object.spec.control_plane_endpoint.and_then(|one| one.host);
            if lives && host.as_deref() == Some(GRANTED) && addresses.is_empty() {
                wrong.push(format!("{GRANTED} is in use and free"));
            }
            wrong.extend(host.filter(|host| ![GRANTED, OTHER].contains(&host.as_str())));
        }
        let is_known = |condition: &String| {
            let (text, endpoint) = condition.split_once(' ').unwrap_or_default();
            ["one", "two"].contains(&text) && [GRANTED, OTHER].iter().any(|host| endpoint == format!("{host}:8443"))
        };
        wrong.extend(
            state
                .of::<Secret>()
                .iter()
                .map(content_of)
                .filter(|condition| !is_known(condition)),
        );
        wrong
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let mut leftover: Vec<String> = Vec::new();
        let names = |metadata: ObjectMeta| metadata.name;
        leftover.extend(
            state
                .of::<Metal3Cluster>()
                .into_iter()
                .filter_map(|one| names(one.metadata)),
        );
        leftover.extend(state.of::<IPClaim>().into_iter().filter_map(|one| names(one.metadata)));
        leftover.extend(
            state
                .of::<IPAddress>()
                .into_iter()
                .filter_map(|one| names(one.metadata)),
        );
        leftover.extend(state.of::<Secret>().into_iter().filter_map(|one| names(one.metadata)));
        if leftover == self.leftover {
            Vec::new()
        } else {
            leftover
        }
    }
}

/// Number of writes to claims and Secrets.
fn document(report: &Report) -> usize {
    let effects = report.effects.iter();
    effects
        .filter(|effect| effect.contains("ipclaims") || effect.contains("secrets"))
        .count()
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_pool_recovers_from_every_write_fault_and_leaves_nothing() {
    let report = sweep(Scenario {
        name: "an endpoint is claimed, filled in, and given back",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::Template, Step::Delete],
        leftover: &[],
    })
    .await;
    assert_eq!(report.faults, WriteFault::ALL.len());
    let why = "a claim and its end, a Secret and its change";
    assert_eq!(document(&report), 4, "{why}: {:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_recovers_from_every_write_fault_and_keeps_its_address() {
    let report = sweep(Scenario {
        name: "the claim on an endpoint is deleted, and then its object",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::DeleteClaim, Step::Delete],
        leftover: &[],
    })
    .await;
    assert_eq!(
        document(&report),
        3,
        "a claim and its end, a Secret: {:#?}",
        report.effects
    );
}

#[tokio::test(start_paused = true)]
async fn unused_claim_recovers_from_every_write_fault_and_is_released() {
    let report = sweep(Scenario {
        name: "the claim on an endpoint is deleted, and the endpoint becomes another",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::DeleteClaim, Step::Fix(OTHER)],
        leftover: &["edge", SECRET],
    })
    .await;
    let why = "a claim and its end, a Secret and its change";
    assert_eq!(document(&report), 4, "{why}: {:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn claim_of_a_force_deleted_object_recovers_from_every_write_fault_and_is_released() {
    let report = sweep(Scenario {
        name: "an object with the claim on its endpoint is forced to go",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::Pause, Step::Force],
        leftover: &[],
    })
    .await;
    assert_eq!(
        document(&report),
        3,
        "a claim and its end, a Secret: {:#?}",
        report.effects
    );
}
