//! Every version of every object of a history, in the order in which the server wrote them, and what must hold after
//! each.

use std::collections::BTreeMap;
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

#[derive(Debug, Clone)]
enum Seen {
    Claim(Claim),
    Held(Held),
    Gone(&'static str, Named),
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

    /// Checks every state of the history, then the last; says how many versions and how many grants there were.
    pub(super) async fn check(&self, seed: u64, lab: &Lab) -> (usize, usize) {
        let seen = self.seen.lock().unwrap().clone();
        let (mut claims, mut addresses) = (BTreeMap::new(), BTreeMap::new());
        let mut grants = 0;
        for (version, seen) in &seen {
            match seen.clone() {
                Seen::Claim(claim) => drop(claims.insert(claim.id.clone(), claim)),
                Seen::Held(held) => grants += usize::from(addresses.insert(held.id.clone(), held).is_none()),
                Seen::Gone("claim", id) => drop(claims.remove(&id)),
                Seen::Gone(_, id) => drop(addresses.remove(&id)),
            }
            if let Err(why) = holds(&claims, &addresses) {
                panic!("seed {seed}, version {version}: {why}\n{claims:#?}\n{addresses:#?}");
            }
        }
        let pool: IPPool = lab.api().get(POOL).await.unwrap();
        let lacks = unrested(Some(&pool), &claims, &addresses);
        assert!(lacks.is_empty(), "seed {seed}: at rest {lacks:#?}");
        (seen.len(), grants)
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
                    (Seen::Held(held), true) => Seen::Gone("address", held.id),
                    (state, _) => state,
                };
                seen.lock().unwrap().insert(version, state);
            }
        }
    }
}
