//! Every write of claiming an address, writing it back, filling it in and giving it back, struck by every fault there is.

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
use super::super::site::kinds;
use super::pool::{CLAIM, CORE, SECRET, cluster_with, pooled, said_by, template, vips};
use crate::controller::data::tests::lab::{CLUSTER_API, INFRASTRUCTURE, IPAM, User, address_management};
use crate::tests::survives;

/// The address that the pool grants.
const GRANTED: &str = "192.0.2.50";
/// An address of nobody's.
const OTHER: &str = "203.0.113.9";

/// A step of somebody.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A pool, a template, and a cluster that asks for both.
    Make,
    /// The Cluster has this endpoint.
    Fix(&'static str),
    /// The template says something else.
    Template,
    /// The claim is deleted.
    DeleteClaim,
    /// The Metal3Cluster is left alone.
    Pause,
    /// It goes, and nobody is asked.
    Force,
    /// It is deleted.
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

/// A life of an endpoint, at whose end there is neither claim nor address.
struct Life {
    name: &'static str,
    stages: &'static [Step],
    /// What else is left.
    left: &'static [&'static str],
}

impl TestEnv for Life {
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

    /// There is never a second address, nor one that is free while the endpoint of an object that lives is it, nor an
    /// endpoint but the one that was granted or that the Cluster has, nor a Secret that says another.
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
        let is_known = |said: &String| {
            let (text, endpoint) = said.split_once(' ').unwrap_or_default();
            ["one", "two"].contains(&text) && [GRANTED, OTHER].iter().any(|host| endpoint == format!("{host}:8443"))
        };
        wrong.extend(state.of::<Secret>().iter().map(said_by).filter(|said| !is_known(said)));
        wrong
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        let names = |metadata: ObjectMeta| metadata.name;
        left.extend(
            state
                .of::<Metal3Cluster>()
                .into_iter()
                .filter_map(|one| names(one.metadata)),
        );
        left.extend(state.of::<IPClaim>().into_iter().filter_map(|one| names(one.metadata)));
        left.extend(
            state
                .of::<IPAddress>()
                .into_iter()
                .filter_map(|one| names(one.metadata)),
        );
        left.extend(state.of::<Secret>().into_iter().filter_map(|one| names(one.metadata)));
        if left == self.left { Vec::new() } else { left }
    }
}

/// The writes to claims and Secrets.
fn made(report: &Report) -> usize {
    let effects = report.effects.iter();
    effects
        .filter(|effect| effect.contains("ipclaims") || effect.contains("secrets"))
        .count()
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_pool_survives_every_blow_to_every_write_and_leaves_nothing() {
    let report = survives(Life {
        name: "an endpoint is claimed, filled in, and given back",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::Template, Step::Delete],
        left: &[],
    })
    .await;
    assert_eq!(report.faults, WriteFault::ALL.len());
    let why = "a claim and its end, a Secret and its change";
    assert_eq!(made(&report), 4, "{why}: {:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn claim_that_is_deleted_survives_every_blow_to_every_write_and_keeps_its_address() {
    let report = survives(Life {
        name: "the claim on an endpoint is deleted, and then its object",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::DeleteClaim, Step::Delete],
        left: &[],
    })
    .await;
    assert_eq!(made(&report), 3, "a claim and its end, a Secret: {:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn claim_that_nobody_needs_any_more_survives_every_blow_to_every_write_and_goes() {
    let report = survives(Life {
        name: "the claim on an endpoint is deleted, and the endpoint becomes another",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::DeleteClaim, Step::Fix(OTHER)],
        left: &["edge", SECRET],
    })
    .await;
    let why = "a claim and its end, a Secret and its change";
    assert_eq!(made(&report), 4, "{why}: {:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn claim_of_an_object_that_was_forced_to_go_survives_every_blow_to_every_write_and_goes() {
    let report = survives(Life {
        name: "an object with the claim on its endpoint is forced to go",
        stages: &[Step::Make, Step::Fix(GRANTED), Step::Pause, Step::Force],
        left: &[],
    })
    .await;
    assert_eq!(made(&report), 3, "a claim and its end, a Secret: {:#?}", report.effects);
}
