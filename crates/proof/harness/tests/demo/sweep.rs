//! Crash sweep of the demo.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::meta::ConditionStatus;
use metal3_harness::{CrashSweep, Instance, State, TestEnv, WriteFault, prove};
use metal3_sim_cluster::{Cluster, Options};

use crate::controller::{Defect, Running, start};
use crate::plan::{FINALIZER, is_of};

/// Two claims are created; one is deleted and created again under its old name.
struct Claims(Defect);

fn install(cluster: &Cluster) {
    let mut definitions = metal3_api::catalog::definitions();
    definitions.retain(|definition| definition.kind == "IPClaim");
    cluster.install(&definitions).unwrap();
}

fn claim(name: &str) -> IPClaim {
    let mut claim = IPClaim::default();
    claim.metadata.name = Some(name.to_owned());
    claim.metadata.namespace = Some("default".to_owned());
    claim.spec.pool.name = Some("pool".to_owned());
    claim
}

/// A server with this number of claims. Its history holds all writes of a run, or watches expire.
pub(crate) async fn server_with_claims(objects: u64) -> (Cluster, Options) {
    let options = Options {
        history: 100_000,
        ..Options::seeded(1)
    };
    let cluster = Cluster::start(&options);
    install(&cluster);
    let claims: Api<IPClaim> = Api::namespaced(cluster.client("user"), "default");
    for number in 0..objects {
        let claim = claim(&format!("c{number}"));
        claims.create(&PostParams::default(), &claim).await.unwrap();
    }
    (cluster, options)
}

/// Starts the program without a defect.
pub(crate) fn program(cluster: &Cluster, options: &Options) -> Running {
    let instance = Instance {
        client: cluster.client("program"),
        clock: Arc::clone(&options.clock),
        seed: 1,
    };
    start(&instance, Defect::None)
}

impl TestEnv for Claims {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn install(&self, cluster: &Cluster) {
        install(cluster);
    }

    fn stages(&self) -> usize {
        3
    }

    async fn stage(&self, stage: usize, client: kube::Client) {
        let claims: Api<IPClaim> = Api::namespaced(client, "default");
        if stage == 0 {
            claims.create(&PostParams::default(), &claim("a")).await.unwrap();
            claims.create(&PostParams::default(), &claim("b")).await.unwrap();
        } else if stage == 1 {
            claims.delete("a", &DeleteParams::default()).await.unwrap();
        } else {
            claims.create(&PostParams::default(), &claim("a")).await.unwrap();
            claims.delete("b", &DeleteParams::default()).await.unwrap();
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let defect = self.0;
        Box::pin(async move {
            let _running = start(&instance, defect);
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
                    found.push(format!("{} has no owner", child.name_any()));
                }
                continue;
            };
            if !claim.finalizers().iter().any(|name| name == FINALIZER) {
                found.push(format!("{} can be deleted before its child", claim.name_any()));
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
async fn the_demo_passes_every_fault_at_every_write() {
    let report = prove(Claims(Defect::None)).await;
    // Three claims get a finalizer, a child and a status; two of them lose the child and the finalizer.
    assert_eq!(report.effects.len(), 3 * 3 + 2 * 2);
    assert_eq!(report.cases, 13 * 8);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a can be deleted before its child")]
async fn a_wrong_order_of_actions_is_found_after_the_violating_write() {
    prove(Claims(Defect::NoFinalizer)).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "with fault CrashAfter")]
async fn state_that_a_crash_loses_is_found_by_the_crash() {
    CrashSweep::of(Claims(Defect::InMemoryState))
        .faults(&[WriteFault::CrashAfter])
        .run()
        .await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "two programs interleaved by seed")]
async fn duplicate_children_are_found_by_two_interleaved_programs() {
    CrashSweep::of(Claims(Defect::OwnNames)).faults(&[]).run().await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "idle for a day")]
async fn a_controller_that_never_settles_is_found() {
    prove(Claims(Defect::NeverSettles)).await;
}
