//! Write faults while claiming an address, writing it back, rendering it and releasing it.

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_harness::{State, WriteFault};
use serde_json::json;

use super::super::faults::{Others, Scenario, ScenarioStep, names};
use super::pool::{CLAIM, CORE, SECRET, cluster_with, content_of, pooled, template, vips};
use crate::data::reconciler::tests::lab::{CLUSTER_API, INFRASTRUCTURE, IPAM, User};
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

impl ScenarioStep for Step {
    async fn perform(self, client: &kube::Client) {
        let user = &User(client.clone());
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

    fn kinds(_: Others) -> Vec<String> {
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
    fn violations(state: &State, _: Others) -> Vec<String> {
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
        let is_known = |content: &String| {
            let (text, endpoint) = content.split_once(' ').unwrap_or_default();
            ["one", "two"].contains(&text) && [GRANTED, OTHER].iter().any(|host| endpoint == format!("{host}:8443"))
        };
        let contents = state.of::<Secret>();
        wrong.extend(contents.iter().map(content_of).filter(|content| !is_known(content)));
        wrong
    }

    /// The remaining objects.
    fn end(state: &State) -> Vec<String> {
        let claimed = names::<IPClaim>(state).chain(names::<IPAddress>(state));
        names::<Metal3Cluster>(state)
            .chain(claimed)
            .chain(names::<Secret>(state))
            .collect()
    }
}

/// Runs a scenario with every fault, and asserts the number of writes to claims and Secrets.
async fn assert_writes(
    name: &'static str,
    stages: &'static [&'static [Step]],
    end: &'static [&'static str],
    (writes, why): (usize, &str),
) {
    let report = sweep(Scenario {
        name,
        stages,
        end,
        others: Others::Addresses,
    })
    .await;
    assert_eq!(report.faults, WriteFault::ALL.len());
    let effects = report.effects.iter();
    let found = effects.filter(|effect| effect.contains("ipclaims") || effect.contains("secrets"));
    assert_eq!(found.count(), writes, "{why}: {:#?}", report.effects);
}

const CLAIM_AND_SECRET: (usize, &str) = (3, "a claim and its end, a Secret");
const CLAIM_AND_CHANGED_SECRET: (usize, &str) = (4, "a claim and its end, a Secret and its change");

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_pool_recovers_from_every_write_fault_and_leaves_nothing() {
    assert_writes(
        "an endpoint is claimed, filled in, and given back",
        &[&[Step::Make], &[Step::Fix(GRANTED)], &[Step::Template], &[Step::Delete]],
        &[],
        CLAIM_AND_CHANGED_SECRET,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_recovers_from_every_write_fault_and_keeps_its_address() {
    assert_writes(
        "the claim on an endpoint is deleted, and then its object",
        &[
            &[Step::Make],
            &[Step::Fix(GRANTED)],
            &[Step::DeleteClaim],
            &[Step::Delete],
        ],
        &[],
        CLAIM_AND_SECRET,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unused_claim_recovers_from_every_write_fault_and_is_released() {
    assert_writes(
        "the claim on an endpoint is deleted, and the endpoint becomes another",
        &[
            &[Step::Make],
            &[Step::Fix(GRANTED)],
            &[Step::DeleteClaim],
            &[Step::Fix(OTHER)],
        ],
        &["edge", SECRET],
        CLAIM_AND_CHANGED_SECRET,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn claim_of_a_force_deleted_object_recovers_from_every_write_fault_and_is_released() {
    assert_writes(
        "an object with the claim on its endpoint is forced to go",
        &[&[Step::Make], &[Step::Fix(GRANTED)], &[Step::Pause], &[Step::Force]],
        &[],
        CLAIM_AND_SECRET,
    )
    .await;
}
