//! The demo on trial.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::meta::ConditionStatus;
use metal3_harness::{Blow, Instance, State, Trial, World, prove};
use metal3_sim_cluster::Cluster;

use crate::controller::{Flaw, start};
use crate::plan::{FINALIZER, is_of};

/// Two claims come; one of them goes, and comes back under its old name.
struct Claims(Flaw);

pub(crate) fn install(cluster: &Cluster) {
    let mut definitions = metal3_api::catalog::definitions();
    definitions.retain(|definition| definition.kind == "IPClaim");
    cluster.install(&definitions).unwrap();
}

pub(crate) fn claim(name: &str) -> IPClaim {
    let mut claim = IPClaim::default();
    claim.metadata.name = Some(name.to_owned());
    claim.metadata.namespace = Some("default".to_owned());
    claim.spec.pool.name = Some("pool".to_owned());
    claim
}

impl World for Claims {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn install(&self, cluster: &Cluster) {
        install(cluster);
    }

    fn acts(&self) -> usize {
        3
    }

    async fn act(&self, act: usize, client: kube::Client) {
        let claims: Api<IPClaim> = Api::namespaced(client, "default");
        if act == 0 {
            claims.create(&PostParams::default(), &claim("a")).await.unwrap();
            claims.create(&PostParams::default(), &claim("b")).await.unwrap();
        } else if act == 1 {
            claims.delete("a", &DeleteParams::default()).await.unwrap();
        } else {
            claims.create(&PostParams::default(), &claim("a")).await.unwrap();
            claims.delete("b", &DeleteParams::default()).await.unwrap();
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let flaw = self.0;
        Box::pin(async move {
            let _running = start(&instance, flaw);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        vec![State::path::<IPClaim>(), State::path::<ConfigMap>()]
    }

    fn violations(&self, state: &State) -> Vec<String> {
        let claims: BTreeMap<String, IPClaim> = state
            .of::<IPClaim>()
            .into_iter()
            .map(|claim| (claim.uid().unwrap(), claim))
            .collect();
        let children = state.of::<ConfigMap>();
        let mut found = Vec::new();
        for child in &children {
            let owners = child.owner_references();
            let Some(claim) = claims.values().find(|claim| is_of(child, &claim.uid().unwrap())) else {
                if owners.is_empty() {
                    found.push(format!("nobody will ever remove {}", child.name_any()));
                }
                continue;
            };
            if !claim.finalizers().iter().any(|name| name == FINALIZER) {
                found.push(format!("{} may go before its child", claim.name_any()));
            }
            let named = claim.status.address.as_ref().and_then(|address| address.uid.clone());
            if named.is_some() && named != child.uid() && claim.metadata.deletion_timestamp.is_none() {
                found.push(format!("{} names a child it does not have", claim.name_any()));
            }
        }
        found
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let claims = state.of::<IPClaim>();
        let children = state.of::<ConfigMap>();
        let mut lacks = Vec::new();
        for claim in &claims {
            let ready = claim
                .status
                .conditions
                .iter()
                .any(|c| c.type_ == "Ready" && c.status == ConditionStatus::True);
            let child = children
                .iter()
                .filter(|child| is_of(child, &claim.uid().unwrap()))
                .count();
            if !ready || child != 1 {
                lacks.push(format!("{}: ready {ready}, children {child}", claim.name_any()));
            }
        }
        if (claims.len(), children.len()) != (1, 1) {
            lacks.push(format!("{} claims, {} children", claims.len(), children.len()));
        }
        lacks
    }
}

#[tokio::test(start_paused = true)]
async fn the_demo_survives_every_blow_to_every_write() {
    let report = prove(Claims(Flaw::None)).await;
    // For each of three claims a finalizer, a child and a status; for two of them the child and the finalizer go.
    assert_eq!(report.effects.len(), 3 * 3 + 2 * 2);
    assert_eq!(report.cases, 13 * 8);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a may go before its child")]
async fn a_broken_order_of_actions_is_found_after_the_write_that_shows_it() {
    prove(Claims(Flaw::Unprotected)).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "struck by CrashAfter")]
async fn state_that_a_crash_loses_is_found_by_the_crash() {
    Trial::of(Claims(Flaw::Remembers))
        .blows(&[Blow::CrashAfter])
        .run()
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "two programs interleaved by seed")]
async fn children_made_twice_are_found_by_two_programs() {
    Trial::of(Claims(Flaw::OwnNames)).blows(&[]).run().await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "left alone for a day")]
async fn a_controller_that_never_comes_to_rest_is_found() {
    prove(Claims(Flaw::Restless)).await;
}
