//! Every version of every object of a history, in the order of the writes, and the invariants after each.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Add;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::Api;
use kube::api::WatchParams;
use kube_core::{NamespaceResourceScope, Resource, ResourceExt as _, WatchEvent};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::api_server::POOL;
use super::fixture::Fixture;
use crate::address::AddressObject;
use crate::claim::{Claim, ObjectId};
use crate::ranges::Ranges;

#[derive(Debug, Clone)]
enum Version {
    Claim(Claim),
    AddressObject(AddressObject),
    Gone(&'static str, ObjectId),
    Pool,
    PoolGone,
}

/// Totals of histories, to assert that enough happened in them.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) versions: u64,
    pub(super) allocations: u64,
    pub(super) deleted_pools: u64,
    /// Objects deleted by the garbage collector.
    pub(super) collected: u64,
}

impl Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            versions: self.versions + other.versions,
            allocations: self.allocations + other.allocations,
            deleted_pools: self.deleted_pools + other.deleted_pools,
            collected: self.collected + other.collected,
        }
    }
}

/// Observed objects by version.
pub(super) struct Record {
    versions: Arc<Mutex<BTreeMap<u64, Version>>>,
    _tasks: JoinSet<()>,
}

impl Record {
    pub(super) fn start(fixture: &Fixture) -> Self {
        let versions = Arc::new(Mutex::new(BTreeMap::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(follow::<IPPool>(fixture, &versions, |_| Version::Pool));
        tasks.spawn(follow::<IPClaim>(fixture, &versions, |object| {
            Version::Claim(Claim::of_metal3(object).unwrap().1)
        }));
        tasks.spawn(follow::<IPAddressClaim>(fixture, &versions, |object| {
            Version::Claim(Claim::of_cluster_api(object).unwrap().1)
        }));
        tasks.spawn(follow::<IPAddress>(fixture, &versions, |object| {
            Version::AddressObject(AddressObject::of_metal3(object).unwrap().1)
        }));
        tasks.spawn(follow::<cluster::IPAddress>(fixture, &versions, |object| {
            Version::AddressObject(AddressObject::of_cluster_api(object).unwrap().1)
        }));
        Self {
            versions,
            _tasks: tasks,
        }
    }

    /// Checks every state of the history, then the final one; returns totals.
    pub(super) async fn check(&self, seed: u64, fixture: &Fixture) -> Totals {
        let versions = self.versions.lock().clone();
        let (mut claims, mut addresses) = (BTreeMap::new(), BTreeMap::new());
        let mut totals = Totals::default();
        for (version, versions) in &versions {
            totals.versions += 1;
            match versions.clone() {
                Version::Claim(claim) => drop(claims.insert(claim.id.clone(), claim)),
                Version::AddressObject(object) => {
                    totals.allocations += u64::from(addresses.insert(object.id.clone(), object).is_none())
                }
                Version::Pool => {}
                Version::PoolGone => totals.deleted_pools += 1,
                Version::Gone("claim", id) => drop(claims.remove(&id)),
                Version::Gone(_, id) => drop(addresses.remove(&id)),
            }
            if let Err(why) = holds(&claims, &addresses, &fixture.lost.lock()) {
                panic!("seed {seed}, version {version}: {why}\n{claims:#?}\n{addresses:#?}");
            }
        }
        let pool: Option<IPPool> = fixture.api().get_opt(POOL).await.unwrap();
        let mut problems = unfinished_work(pool.as_ref(), &claims, &addresses);
        match &pool {
            Some(pool) => problems.extend(claims_without_free_address(pool, &claims, &addresses)),
            None => problems.extend(addresses.keys().map(|id| format!("{id} is of no pool"))),
        }
        assert!(problems.is_empty(), "seed {seed}: at rest {problems:#?}");
        totals
    }
}

/// Problems of a final state.
pub(super) fn unfinished_work<C: Borrow<Claim>, A: Borrow<AddressObject>>(
    pool: Option<&IPPool>,
    claims: &BTreeMap<ObjectId, C>,
    addresses: &BTreeMap<ObjectId, A>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for object in addresses.values().map(Borrow::borrow) {
        let claim = claims.get(&object.claim()).map(Borrow::borrow);
        let named = claim.is_some_and(|claim| {
            object.owner.as_ref() == Some(&claim.uid) && claim.address_name.as_ref() == Some(&object.id.name)
        });
        if !named {
            problems.push(format!("{} has no claim", object.id));
        }
    }
    for claim in claims.values().map(Borrow::borrow) {
        let is_reported = claim
            .conditions
            .iter()
            .any(|c| c.type_ == "Ready" && !c.reason.is_empty());
        if !is_reported || claim.deleting {
            problems.push(format!("{} waits without a condition", claim.id));
        }
    }
    let allocator = pool.and_then(|pool| pool.status.allocator.clone());
    let pending = allocator.unwrap_or_default().pending;
    problems.extend(pending.iter().map(|entry| format!("{entry:?} is pending")));
    problems
}

/// Claims that wait although the pool has a free address: no claim of a history requests a specific one.
fn claims_without_free_address(
    pool: &IPPool,
    claims: &BTreeMap<ObjectId, Claim>,
    addresses: &BTreeMap<ObjectId, AddressObject>,
) -> Vec<String> {
    let ranges = Ranges::of(&pool.spec);
    let object: BTreeSet<Option<IpAddr>> = addresses.values().map(|object| object.address).collect();
    let mut all = (1..=u8::MAX).map(|last| IpAddr::from([10, 0, 0, last]));
    let is_free = all.any(|address| ranges.contains(address) && !object.contains(&Some(address)));
    let waiting = claims
        .values()
        .filter(|claim| claim.address_name.is_none() && !claim.deleting);
    waiting
        .filter(|_| is_free && pool.metadata.deletion_timestamp.is_none())
        .map(|claim| format!("{} waits while an address is free", claim.id))
        .collect()
}

/// Invariants after every write: no address has two claims, every such claim has the finalizer, and every claim names
/// its own address, or one whose object a user removed.
pub(super) fn holds<C: Borrow<Claim>, A: Borrow<AddressObject>>(
    claims: &BTreeMap<ObjectId, C>,
    addresses: &BTreeMap<ObjectId, A>,
    lost: &BTreeSet<ObjectId>,
) -> Result<(), String> {
    let mut holders = BTreeMap::new();
    for object in addresses.values().map(Borrow::borrow) {
        let claim: Option<&Claim> = claims.get(&object.claim()).map(Borrow::borrow);
        let Some(claim) = claim.filter(|claim| object.owner.as_ref() == Some(&claim.uid)) else {
            continue;
        };
        if claim
            .address_name
            .as_ref()
            .is_some_and(|named| *named != object.id.name)
        {
            continue;
        }
        if let Some(other) = holders.insert(object.address, &claim.id) {
            return Err(format!("{} and {other} both hold {:?}", claim.id, object.address));
        }
        if !claim.has_finalizer() {
            return Err(format!("{} holds an address without the finalizer", claim.id));
        }
    }
    for claim in claims.values().map(Borrow::borrow).filter(|claim| !claim.deleting) {
        let Some(named) = &claim.address_name else { continue };
        let id = ObjectId::new(claim.id.kind, named);
        let object = addresses.get(&id).map(Borrow::borrow);
        if object.is_none() && lost.contains(&id) {
            // A user removed it. The name shows the address; claims of both kinds share the pool.
            let of_name = holders.values().find(|other| {
                let other: Option<&Claim> = claims.get(**other).map(Borrow::borrow);
                other.is_some_and(|other| other.address_name.as_ref() == Some(named))
            });
            if let Some(other) = of_name {
                return Err(format!("{other} holds the address {named}, which {} names", claim.id));
            }
            continue;
        }
        if object.is_none_or(|object| object.owner.as_ref() != Some(&claim.uid)) {
            return Err(format!("{} names an address of another claim", claim.id));
        }
    }
    Ok(())
}

fn follow<K>(
    fixture: &Fixture,
    versions: &Arc<Mutex<BTreeMap<u64, Version>>>,
    read: fn(&K) -> Version,
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
    let (api, versions): (Api<K>, _) = (fixture.api(), Arc::clone(versions));
    async move {
        let mut from = "0".to_owned();
        loop {
            let mut events = Box::pin(api.watch(&WatchParams::default(), &from).await.unwrap());
            while let Some(event) = events.next().await {
                let (object, is_deleted) = match event.unwrap() {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(status) => panic!("{status:?}"),
                };
                from = object.resource_version().unwrap();
                let version = from.parse().unwrap();
                let state = match (read(&object), is_deleted) {
                    (Version::Claim(claim), true) => Version::Gone("claim", claim.id),
                    (Version::Pool, true) => Version::PoolGone,
                    (Version::AddressObject(object), true) => Version::Gone("address", object.id),
                    (state, _) => state,
                };
                versions.lock().insert(version, state);
            }
        }
    }
}
