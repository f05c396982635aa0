//! The controller on trial: every write of its stories is struck by every fault there is.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_harness::{Blow, Instance, Report, State, World, prove};
use metal3_sim_cluster::Cluster;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::kinds::kinds;
use super::lab::start;
use super::record::{holds, unrested};
use super::world::POOL;
use crate::claim::ClaimKind::{self, ClusterApi, Metal3};
use crate::claim::{Claim, Named};
use crate::held::Held;

/// What a user does.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Makes the pool, with addresses from 10.0.0.1 to this one.
    Pool(&'static str),
    /// Moves the end of its range.
    Grow(&'static str),
    /// Deletes it.
    Drop,
    Claim(ClaimKind, &'static str),
    /// The same, with this address in mind.
    Wish(ClaimKind, &'static str, &'static str),
    Free(ClaimKind, &'static str),
}

/// Acts of steps, and how they end. Pools are so small, and wishes such, that each claim gets the same address whoever
/// comes first.
struct Story {
    name: &'static str,
    acts: &'static [&'static [Step]],
    /// Each claim that is there at the end, with its address if it has one.
    end: &'static [(ClaimKind, &'static str, Option<&'static str>)],
    has_pool: bool,
    /// Programs started so far: each has a name of its own.
    starts: AtomicU64,
}

impl Step {
    async fn take(self, user: kube::Client) {
        let pools = |end| json!([{ "start": "10.0.0.1", "end": end }]);
        match self {
            Self::Pool(end) => {
                let spec = json!({ "namePrefix": "p", "pools": pools(end) });
                make::<IPPool>(user, json!({ "name": POOL }), spec).await;
            }
            Self::Grow(end) => {
                let change = Patch::Merge(json!({ "spec": { "pools": pools(end) } }));
                let api: Api<IPPool> = Api::default_namespaced(user);
                api.patch(POOL, &PatchParams::default(), &change).await.unwrap();
            }
            Self::Drop => delete::<IPPool>(user, POOL).await,
            Self::Claim(kind, name) => claim(user, kind, json!({ "name": name })).await,
            Self::Wish(kind, name, address) => {
                let meta = json!({ "name": name, "annotations": { "ipAddress": address } });
                claim(user, kind, meta).await;
            }
            Self::Free(Metal3, name) => delete::<IPClaim>(user, name).await,
            Self::Free(ClusterApi, name) => delete::<IPAddressClaim>(user, name).await,
        }
    }
}

async fn claim(user: kube::Client, kind: ClaimKind, meta: Value) {
    match kind {
        Metal3 => make::<IPClaim>(user, meta, json!({ "pool": { "name": POOL } })).await,
        ClusterApi => {
            let pool = json!({ "name": POOL, "kind": "IPPool", "apiGroup": "ipam.metal3.io" });
            make::<IPAddressClaim>(user, meta, json!({ "poolRef": pool })).await;
        }
    }
}

async fn make<K>(user: kube::Client, meta: Value, spec: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    let object: K = serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap();
    let api: Api<K> = Api::default_namespaced(user);
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn delete<K>(user: kube::Client, name: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::default_namespaced(user);
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

/// Claims and address objects of both kinds.
fn facts(state: &State) -> (BTreeMap<Named, Claim>, BTreeMap<Named, Held>) {
    let own = state.of::<IPClaim>();
    let own = own.iter().filter_map(|claim| Some(Claim::of_metal3(claim)?.1));
    let theirs = state.of::<IPAddressClaim>();
    let theirs = theirs.iter().filter_map(|claim| Some(Claim::of_cluster_api(claim)?.1));
    let claims = own.chain(theirs).map(|claim| (claim.id.clone(), claim)).collect();
    let own = state.of::<IPAddress>();
    let own = own.iter().filter_map(|address| Some(Held::of_metal3(address)?.1));
    let theirs = state.of::<cluster::IPAddress>();
    let theirs = theirs
        .iter()
        .filter_map(|address| Some(Held::of_cluster_api(address)?.1));
    let addresses = own.chain(theirs).map(|held| (held.id.clone(), held)).collect();
    (claims, addresses)
}

impl World for Story {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, cluster: &Cluster) {
        cluster.install(&kinds()).unwrap();
    }

    fn acts(&self) -> usize {
        self.acts.len()
    }

    async fn act(&self, act: usize, user: kube::Client) {
        for step in self.acts[act] {
            step.take(user.clone()).await;
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let identity = format!("program-{}", self.starts.fetch_add(1, Ordering::Relaxed));
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock, &identity);
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
        holds(&claims, &addresses).err().into_iter().collect()
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let (claims, addresses) = facts(state);
        let pools = state.of::<IPPool>();
        let mut lacks = unrested(pools.first(), &claims, &addresses);
        if pools.len() != usize::from(self.has_pool) {
            lacks.push(format!("{} pools", pools.len()));
        }
        let granted = |claim: &Claim| {
            let held = addresses.get(&Named::new(claim.id.kind, claim.names.as_ref()?))?;
            Some(held.address?.to_string())
        };
        let found: BTreeMap<_, _> = claims
            .values()
            .map(|claim| (claim.id.clone(), granted(claim)))
            .collect();
        let end = self.end.iter().map(|(kind, name, address)| {
            let id = Named::new(*kind, name);
            (id, address.map(str::to_owned))
        });
        if found != end.collect() {
            lacks.push(format!("ends with {found:?}"));
        }
        lacks
    }

    fn essence(&self, end: &State) -> Value {
        let mut essence = end.lasting();
        for pool in essence[State::path::<IPPool>()].as_array_mut().unwrap() {
            // Every start of a program signs with a name of its own.
            pool["status"]["allocator"].as_object_mut().unwrap().remove("writer");
        }
        essence
    }
}

/// Each write of the story with each fault, counted.
async fn survives(story: Story) -> Report {
    let report = prove(story).await;
    assert_eq!(report.cases, report.effects.len() * Blow::ALL.len());
    report
}

#[tokio::test(start_paused = true)]
async fn grants_and_releases_survive_every_blow_to_every_write() {
    let report = survives(Story {
        name: "grants and releases",
        acts: &[
            &[
                Step::Pool("10.0.0.2"),
                Step::Claim(Metal3, "a"),
                Step::Wish(ClusterApi, "a", "10.0.0.2"),
            ],
            &[Step::Free(Metal3, "a"), Step::Claim(Metal3, "b")],
            &[Step::Free(ClusterApi, "a")],
            &[Step::Claim(ClusterApi, "a")],
        ],
        end: &[(Metal3, "b", Some("10.0.0.1")), (ClusterApi, "a", Some("10.0.0.2"))],
        has_pool: true,
        starts: AtomicU64::new(0),
    })
    .await;
    // By act. A grant costs three writes and so does a release; the pool is written when it comes (twice), before a batch
    // of grants, after it, and after a release.
    let writes = [2 + 1 + 2 * 3 + 1, (3 + 1) + (1 + 3 + 1), 3 + 1, 1 + 3 + 1];
    assert_eq!(report.effects.len(), writes.iter().sum::<usize>());
    assert_eq!(report.cases, 28 * 8);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_grows_and_goes_survives_every_blow_to_every_write() {
    let report = survives(Story {
        name: "a pool that grows and goes",
        acts: &[
            &[Step::Pool("10.0.0.1"), Step::Claim(Metal3, "a")],
            &[Step::Claim(ClusterApi, "b")],
            &[Step::Grow("10.0.0.2")],
            &[Step::Drop, Step::Free(Metal3, "a")],
            &[Step::Claim(Metal3, "late")],
            &[Step::Free(ClusterApi, "b")],
        ],
        end: &[(Metal3, "late", None)],
        has_pool: false,
        starts: AtomicU64::new(0),
    })
    .await;
    // By act. A refusal costs two writes, and one where nothing needs protection any more; then the pool says that it
    // goes, goes, and the claim that is left learns of it.
    let writes = [2 + 1 + 3 + 1, 2, 1 + 2 + 1, 1 + 3 + 1, 1, 3 + 1 + 1 + 1];
    assert_eq!(report.effects.len(), writes.iter().sum::<usize>());
    assert_eq!(report.cases, 25 * 8);
}
