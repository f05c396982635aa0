//! Write faults: every fault is injected into every write of the scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_harness::{Instance, Report, State, TestEnv, WriteFault, prove};
use metal3_sim_cluster::Cluster;
use serde_json::{Value, json};

use super::api_server::POOL;
use super::program::{claim_document, create_claim, delete_claim, kinds, start};
use super::record::{holds, unfinished_work};
use crate::address::AddressObject;
use crate::claim::ClaimKind::{self, ClusterApi, Metal3};
use crate::claim::{Claim, ObjectId};

/// A user action.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Creates the pool, with addresses from 10.0.0.1 to this one.
    CreatePool(&'static str),
    /// Moves the end of its range.
    Grow(&'static str),
    DeletePool,
    Claim(ClaimKind, &'static str),
    Request(ClaimKind, &'static str, &'static str),
    Release(ClaimKind, &'static str),
}

/// Stages of steps, and their final state. The pools are so small that each claim gets the same address in any order.
struct Scenario {
    name: &'static str,
    stages: &'static [&'static [Step]],
    /// Each claim that exists at the end, with its address if it has one.
    end: &'static [(ClaimKind, &'static str, Option<&'static str>)],
    has_pool: bool,
    /// Number of programs started: each has its own identity.
    starts: AtomicU64,
}

impl Step {
    async fn take(self, user: kube::Client) {
        let pools = |end| json!([{ "start": "10.0.0.1", "end": end }]);
        let api: Api<IPPool> = Api::default_namespaced(user.clone());
        match self {
            Self::CreatePool(end) => {
                let spec = json!({ "namePrefix": "p", "pools": pools(end) });
                let pool = serde_json::from_value(json!({ "metadata": { "name": POOL }, "spec": spec })).unwrap();
                api.create(&PostParams::default(), &pool).await.unwrap();
            }
            Self::Grow(end) => {
                let change = Patch::Merge(json!({ "spec": { "pools": pools(end) } }));
                api.patch(POOL, &PatchParams::default(), &change).await.unwrap();
            }
            Self::DeletePool => drop(api.delete(POOL, &DeleteParams::default()).await.unwrap()),
            Self::Claim(kind, name) => claim(&user, kind, json!({ "name": name })).await,
            Self::Request(kind, name, address) => {
                let meta = json!({ "name": name, "annotations": { "ipAddress": address } });
                claim(&user, kind, meta).await;
            }
            Self::Release(kind, name) => {
                delete_claim((&user, user.default_namespace()), kind, name)
                    .await
                    .unwrap();
            }
        }
    }
}

async fn claim(user: &kube::Client, kind: ClaimKind, metadata: Value) {
    let document = claim_document(kind, POOL, metadata);
    let api = (user, user.default_namespace());
    create_claim(api, kind, document).await.unwrap();
}

/// Claims and address objects of both kinds.
fn facts(state: &State) -> (BTreeMap<ObjectId, Claim>, BTreeMap<ObjectId, AddressObject>) {
    let own = state.of::<IPClaim>();
    let own = own.iter().filter_map(|claim| Some(Claim::of_metal3(claim)?.1));
    let cluster_api = state.of::<IPAddressClaim>();
    let cluster_api = cluster_api
        .iter()
        .filter_map(|claim| Some(Claim::of_cluster_api(claim)?.1));
    let claims = own.chain(cluster_api).map(|claim| (claim.id.clone(), claim)).collect();
    let own = state.of::<IPAddress>();
    let own = own
        .iter()
        .filter_map(|address| Some(AddressObject::of_metal3(address)?.1));
    let cluster_api = state.of::<cluster::IPAddress>();
    let cluster_api = cluster_api
        .iter()
        .filter_map(|address| Some(AddressObject::of_cluster_api(address)?.1));
    let addresses = own
        .chain(cluster_api)
        .map(|object| (object.id.clone(), object))
        .collect();
    (claims, addresses)
}

impl TestEnv for Scenario {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, cluster: &Cluster) {
        cluster.install(&kinds()).unwrap();
    }

    fn stages(&self) -> usize {
        self.stages.len()
    }

    async fn stage(&self, stage: usize, user: kube::Client) {
        for step in self.stages[stage] {
            step.take(user.clone()).await;
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let identity = format!("program-{}", self.starts.fetch_add(1, Ordering::Relaxed));
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock, &identity, 2);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        vec![
            State::path::<IPPool>(),
            State::path::<IPClaim>(),
            State::path::<IPAddress>(),
            State::path::<IPAddressClaim>(),
            State::path::<cluster::IPAddress>(),
        ]
    }

    fn violations(&self, state: &State) -> Vec<String> {
        let (claims, addresses) = facts(state);
        holds(&claims, &addresses, &BTreeSet::new()).err().into_iter().collect()
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let (claims, addresses) = facts(state);
        let pools = state.of::<IPPool>();
        let mut problems = unfinished_work(pools.first(), &claims, &addresses);
        if pools.len() != usize::from(self.has_pool) {
            problems.push(format!("{} pools", pools.len()));
        }
        let granted = |claim: &Claim| {
            let object = addresses.get(&ObjectId::new(claim.id.kind, claim.address_name.as_ref()?))?;
            Some(object.address?.to_string())
        };
        let found: BTreeMap<_, _> = claims
            .values()
            .map(|claim| (claim.id.clone(), granted(claim)))
            .collect();
        let end = self.end.iter().map(|(kind, name, address)| {
            let id = ObjectId::new(*kind, name);
            (id, address.map(str::to_owned))
        });
        if found != end.collect() {
            problems.push(format!("ends with {found:?}"));
        }
        problems
    }

    fn comparable_state(&self, end: &State) -> Value {
        let mut comparable_state = end.lasting();
        for pool in comparable_state[State::path::<IPPool>()].as_array_mut().unwrap() {
            // Every start of a program has its own identity.
            pool["status"]["allocator"].as_object_mut().unwrap().remove("writer");
        }
        comparable_state
    }
}

/// Injects every fault into each write of the scenario.
async fn recovers(trace: Scenario) -> Report {
    let report = prove(trace).await;
    assert_eq!(report.cases, report.effects.len() * WriteFault::ALL.len());
    report
}

#[tokio::test(start_paused = true)]
async fn allocations_and_releases_recover_from_every_fault_in_every_write() {
    let report = recovers(Scenario {
        name: "allocations and releases",
        stages: &[
            &[
                Step::CreatePool("10.0.0.2"),
                Step::Claim(Metal3, "a"),
                Step::Request(ClusterApi, "a", "10.0.0.2"),
            ],
            &[Step::Release(Metal3, "a"), Step::Claim(Metal3, "b")],
            &[Step::Release(ClusterApi, "a")],
            &[Step::Claim(ClusterApi, "a")],
        ],
        end: &[(Metal3, "b", Some("10.0.0.1")), (ClusterApi, "a", Some("10.0.0.2"))],
        has_pool: true,
        starts: AtomicU64::new(0),
    })
    .await;
    // By stage. An allocation costs three writes and so does a release; the pool is written when it is created (twice),
    // before a batch of allocations, after it, and after a release.
    let writes = [2 + 1 + 2 * 3 + 1, (3 + 1) + (1 + 3 + 1), 3 + 1, 1 + 3 + 1];
    assert_eq!(report.effects.len(), writes.iter().sum::<usize>());
    assert_eq!(report.cases, 28 * 8);
}

#[tokio::test(start_paused = true)]
async fn pool_that_grows_and_is_deleted_recovers_from_every_fault_in_every_write() {
    let report = recovers(Scenario {
        name: "a pool that grows and goes",
        stages: &[
            &[Step::CreatePool("10.0.0.1"), Step::Claim(Metal3, "a")],
            &[Step::Claim(ClusterApi, "b")],
            &[Step::Grow("10.0.0.2")],
            &[Step::DeletePool, Step::Release(Metal3, "a")],
            &[Step::Claim(Metal3, "late")],
            &[Step::Release(ClusterApi, "b")],
        ],
        end: &[(Metal3, "late", None)],
        has_pool: false,
        starts: AtomicU64::new(0),
    })
    .await;
    // By stage. A refusal costs two writes, and one when the claim has the finalizer; then the pool reports its
    // deletion, is deleted, and the remaining claim gets a condition.
    let writes = [2 + 1 + 3 + 1, 2, 1 + 2 + 1, 1 + 3 + 1, 1, 3 + 1 + 1 + 1];
    assert_eq!(report.effects.len(), writes.iter().sum::<usize>());
    assert_eq!(report.cases, 25 * 8);
}
