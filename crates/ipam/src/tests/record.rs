//! Every version of every object of a history, in the order in which the server wrote them, and what must hold after
//! each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Add;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use kube::Api;
use kube::api::WatchParams;
use kube_core::{NamespaceResourceScope, Resource, ResourceExt as _, WatchEvent};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::lab::Lab;
use super::world::POOL;
use crate::claim::{Claim, Named};
use crate::held::Held;
use crate::ranges::Ranges;

#[derive(Debug, Clone)]
enum Seen {
    Claim(Claim),
    Held(Held),
    Gone(&'static str, Named),
    Pool,
    PoolGone,
}

/// What there was in histories: a proof needs something to be about.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Met {
    pub(super) versions: u64,
    pub(super) grants: u64,
    pub(super) pools_gone: u64,
    /// Objects that the garbage collector deleted.
    pub(super) collected: u64,
}

impl Add for Met {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            versions: self.versions + other.versions,
            grants: self.grants + other.grants,
            pools_gone: self.pools_gone + other.pools_gone,
            collected: self.collected + other.collected,
        }
    }
}

/// What was seen, by version.
pub(super) struct Record {
    seen: Arc<Mutex<BTreeMap<u64, Seen>>>,
    _tasks: JoinSet<()>,
}

impl Record {
    pub(super) fn start(lab: &Lab) -> Self {
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(follow::<IPPool>(lab, &seen, |_| Seen::Pool));
        tasks.spawn(follow::<IPClaim>(lab, &seen, |object| {
            Seen::Claim(Claim::of_metal3(object).unwrap().1)
        }));
        tasks.spawn(follow::<IPAddressClaim>(lab, &seen, |object| {
            Seen::Claim(Claim::of_cluster_api(object).unwrap().1)
        }));
        tasks.spawn(follow::<IPAddress>(lab, &seen, |object| {
            Seen::Held(Held::of_metal3(object).unwrap().1)
        }));
        tasks.spawn(follow::<cluster::IPAddress>(lab, &seen, |object| {
            Seen::Held(Held::of_cluster_api(object).unwrap().1)
        }));
        Self { seen, _tasks: tasks }
    }

    /// Checks every state of the history, then the last; says what there was.
    pub(super) async fn check(&self, seed: u64, lab: &Lab) -> Met {
        let seen = self.seen.lock().unwrap().clone();
        let (mut claims, mut addresses) = (BTreeMap::new(), BTreeMap::new());
        let mut met = Met::default();
        for (version, seen) in &seen {
            met.versions += 1;
            match seen.clone() {
                Seen::Claim(claim) => drop(claims.insert(claim.id.clone(), claim)),
                Seen::Held(held) => met.grants += u64::from(addresses.insert(held.id.clone(), held).is_none()),
                Seen::Pool => {}
                Seen::PoolGone => met.pools_gone += 1,
                Seen::Gone("claim", id) => drop(claims.remove(&id)),
                Seen::Gone(_, id) => drop(addresses.remove(&id)),
            }
            if let Err(why) = holds(&claims, &addresses) {
                panic!("seed {seed}, version {version}: {why}\n{claims:#?}\n{addresses:#?}");
            }
        }
        let pool: Option<IPPool> = lab.api().get_opt(POOL).await.unwrap();
        let mut lacks = unrested(pool.as_ref(), &claims, &addresses);
        match &pool {
            Some(pool) => lacks.extend(passed_over(pool, &claims, &addresses)),
            None => lacks.extend(addresses.keys().map(|id| format!("{id} is of no pool"))),
        }
        assert!(lacks.is_empty(), "seed {seed}: at rest {lacks:#?}");
        met
    }
}

/// What must not be left when nothing is written any more.
pub(super) fn unrested(
    pool: Option<&IPPool>,
    claims: &BTreeMap<Named, Claim>,
    addresses: &BTreeMap<Named, Held>,
) -> Vec<String> {
    let mut lacks = Vec::new();
    for held in addresses.values() {
        let claim: Option<&Claim> = claims.get(&held.claim());
        let named = claim.is_some_and(|claim| {
            held.owner.as_ref() == Some(&claim.uid) && claim.names.as_ref() == Some(&held.id.name)
        });
        if !named {
            lacks.push(format!("{} is nobody's", held.id));
        }
    }
    for claim in claims.values() {
        let told = claim
            .conditions
            .iter()
            .any(|c| c.type_ == "Ready" && !c.reason.is_empty());
        if !told || claim.deleting {
            lacks.push(format!("{} waits and nobody says why", claim.id));
        }
    }
    let allocator = pool.and_then(|pool| pool.status.allocator.clone());
    let pending = allocator.unwrap_or_default().pending;
    lacks.extend(pending.iter().map(|entry| format!("{entry:?} is pending")));
    lacks
}

/// Claims that wait although the pool has an address for them: in a history no claim asks for a certain one.
fn passed_over(pool: &IPPool, claims: &BTreeMap<Named, Claim>, addresses: &BTreeMap<Named, Held>) -> Vec<String> {
    let ranges = Ranges::of(&pool.spec);
    let held: BTreeSet<Option<IpAddr>> = addresses.values().map(|held| held.address).collect();
    let mut all = (1..=u8::MAX).map(|last| IpAddr::from([10, 0, 0, last]));
    let is_free = all.any(|address| ranges.contains(address) && !held.contains(&Some(address)));
    let waiting = claims.values().filter(|claim| claim.names.is_none() && !claim.deleting);
    waiting
        .filter(|_| is_free && pool.metadata.deletion_timestamp.is_none())
        .map(|claim| format!("{} waits while an address is free", claim.id))
        .collect()
}

/// What must hold after every write: no address has two holders, every holder is protected, and what a claim names is
/// its own.
pub(super) fn holds(claims: &BTreeMap<Named, Claim>, addresses: &BTreeMap<Named, Held>) -> Result<(), String> {
    let mut holders = BTreeMap::new();
    for held in addresses.values() {
        let Some(claim) = claims
            .get(&held.claim())
            .filter(|claim| held.owner.as_ref() == Some(&claim.uid))
        else {
            continue;
        };
        if claim.names.as_ref().is_some_and(|named| *named != held.id.name) {
            continue;
        }
        if let Some(other) = holders.insert(held.address, &claim.id) {
            return Err(format!("{} and {other} both hold {:?}", claim.id, held.address));
        }
        if !claim.is_protected() {
            return Err(format!("{} holds an address without being protected", claim.id));
        }
    }
    for claim in claims.values().filter(|claim| !claim.deleting) {
        let Some(named) = &claim.names else { continue };
        let held = addresses.get(&Named::new(claim.id.kind, named));
        if held.is_none_or(|held| held.owner.as_ref() != Some(&claim.uid)) {
            return Err(format!("{} names an address that is not its own", claim.id));
        }
    }
    Ok(())
}

fn follow<K>(
    lab: &Lab,
    seen: &Arc<Mutex<BTreeMap<u64, Seen>>>,
    read: fn(&K) -> Seen,
) -> impl Future<Output = ()> + Send + 'static
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let (api, seen): (Api<K>, _) = (lab.api(), Arc::clone(seen));
    async move {
        let mut from = "0".to_owned();
        loop {
            let mut events = Box::pin(api.watch(&WatchParams::default(), &from).await.unwrap());
            while let Some(event) = events.next().await {
                let (object, gone) = match event.unwrap() {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(status) => panic!("{status:?}"),
                };
                from = object.resource_version().unwrap();
                let version = from.parse().unwrap();
                let state = match (read(&object), gone) {
                    (Seen::Claim(claim), true) => Seen::Gone("claim", claim.id),
                    (Seen::Pool, true) => Seen::PoolGone,
                    (Seen::Held(held), true) => Seen::Gone("address", held.id),
                    (state, _) => state,
                };
                seen.lock().unwrap().insert(version, state);
            }
        }
    }
}
