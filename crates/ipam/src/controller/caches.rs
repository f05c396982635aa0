//! The caches, the accounts they feed, and which pools a change concerns.
//!
//! The accounts are fed inside the critical section of each cache, before any key is queued: a pass never plans with
//! accounts that are behind what woke it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metal3_api::cluster::{self, Cluster, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_runtime::cache::{Change, Key, SharedCache};

use crate::accounts::{Accounts, ClusterFact, key};
use crate::claim::{Claim, ClaimKind, Named};
use crate::held::Held;
use crate::ranges::Ranges;

/// What IP address management watches. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Caches {
    /// Pools.
    pub pools: SharedCache<IPPool>,
    /// Claims of our own kind.
    pub claims: SharedCache<IPClaim>,
    /// Their addresses.
    pub addresses: SharedCache<IPAddress>,
    /// Claims of Cluster API.
    pub cluster_claims: SharedCache<IPAddressClaim>,
    /// Their addresses.
    pub cluster_addresses: SharedCache<cluster::IPAddress>,
    /// Clusters.
    pub clusters: SharedCache<Cluster>,
}

/// The accounts between tasks. They are held for as long as a plan takes, never across an await.
#[derive(Debug, Clone, Default)]
pub struct SharedAccounts(Arc<Mutex<Accounts>>);

impl SharedAccounts {
    /// Looks at it, or changes it.
    pub fn lock(&self) -> MutexGuard<'_, Accounts> {
        // A panic in a plan leaves the accounts as they were: plans only read them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caches {
    /// Accounts that follow these caches. To be called before any of them is filled.
    #[must_use]
    pub fn accounts(&self) -> SharedAccounts {
        let accounts = SharedAccounts::default();
        self.feed_claims(&accounts);
        self.feed_addresses(&accounts);
        let shared = accounts.clone();
        self.pools.subscribe(move |change| {
            let mut accounts = shared.lock();
            note(&mut accounts, "IPPool", change);
            match change {
                Change::Applied { new, .. } => {
                    accounts.put_pool(Key::of(*new), Ranges::of(&new.spec).covered().clone());
                }
                Change::Deleted { key, old, .. } => {
                    accounts.drop_pool(key, old.and_then(|pool| pool.metadata.uid.clone()))
                }
                Change::Unreadable { .. } | Change::Synced => {}
            }
        });
        let shared = accounts.clone();
        self.clusters.subscribe(move |change| match change {
            Change::Applied { new, .. } => shared.lock().put_cluster(Key::of(*new), Some(fact(new))),
            Change::Deleted { key, .. } => shared.lock().put_cluster((*key).clone(), None),
            Change::Unreadable { key, .. } => shared.lock().put_cluster((*key).clone(), Some(ClusterFact::Unknown)),
            Change::Synced => shared.lock().clusters_are_known(),
        });
        accounts
    }

    fn feed_claims(&self, accounts: &SharedAccounts) {
        let shared = accounts.clone();
        self.claims
            .subscribe(move |change| put_claim(&mut shared.lock(), ClaimKind::Metal3, change, Claim::of_metal3));
        let shared = accounts.clone();
        self.cluster_claims.subscribe(move |change| {
            put_claim(&mut shared.lock(), ClaimKind::ClusterApi, change, Claim::of_cluster_api)
        });
    }

    fn feed_addresses(&self, accounts: &SharedAccounts) {
        let shared = accounts.clone();
        self.addresses
            .subscribe(move |change| put_address(&mut shared.lock(), ClaimKind::Metal3, change, Held::of_metal3));
        let shared = accounts.clone();
        self.cluster_addresses.subscribe(move |change| {
            put_address(&mut shared.lock(), ClaimKind::ClusterApi, change, Held::of_cluster_api)
        });
    }
}

/// What is known of a Cluster that exists.
pub(super) fn fact(cluster: &Cluster) -> ClusterFact {
    ClusterFact::Found {
        uid: cluster.metadata.uid.clone().unwrap_or_default(),
        paused: cluster.spec.paused.unwrap_or_default(),
    }
}

fn put_claim<K: kube_core::Resource>(
    accounts: &mut Accounts,
    kind: ClaimKind,
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, Claim)>,
) {
    let Some(object) = change.key() else { return };
    match change {
        Change::Applied { new, .. } => match read(new) {
            Some((pool, claim)) => accounts.put_claim(&object.namespace, &pool, claim),
            None => accounts.drop_claim(&object.namespace, &Named::new(kind, &object.name)),
        },
        Change::Deleted { .. } => accounts.drop_claim(&object.namespace, &Named::new(kind, &object.name)),
        // It stays as it was: what it promises still counts.
        Change::Unreadable { .. } | Change::Synced => {}
    }
}

fn put_address<K: kube_core::Resource>(
    accounts: &mut Accounts,
    kind: ClaimKind,
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, Held)>,
) {
    let Some(object) = change.key() else { return };
    let what = match kind {
        ClaimKind::Metal3 => "IPAddress",
        ClaimKind::ClusterApi => "IPAddress of Cluster API",
    };
    note(accounts, what, change);
    match change {
        Change::Applied { new, .. } => match read(new) {
            Some((pool, held)) => accounts.put_address(&object.namespace, &pool, held),
            None => accounts.drop_address(&object.namespace, &Named::new(kind, &object.name)),
        },
        Change::Deleted { .. } => accounts.drop_address(&object.namespace, &Named::new(kind, &object.name)),
        Change::Unreadable { .. } | Change::Synced => {}
    }
}

fn note<K: kube_core::Resource>(accounts: &mut Accounts, kind: &'static str, change: &Change<'_, K>) {
    if let Some(object) = change.key() {
        let readable = !matches!(change, Change::Unreadable { .. });
        accounts.note_readable(kind, &object, readable);
    }
}

/// The pools that a change of a claim concerns: the one it names, and the one it named.
pub(super) fn pools_of_claim<K: kube_core::Resource>(
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, Claim)>,
) -> Vec<Key> {
    pools_of(change, |object| read(object).map(|(pool, _)| pool))
}

/// The same for an address object. One that goes may free a name that another pool waits for, and while one cannot be
/// read every pool near it waits.
pub(super) fn pools_of_address<K: kube_core::Resource>(
    accounts: &SharedAccounts,
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, Held)>,
) -> Vec<Key> {
    let near = || change.key().map(|object| accounts.lock().pools_near(&object.namespace));
    match change {
        Change::Applied {
            was_unreadable: true, ..
        }
        | Change::Deleted {
            was_unreadable: true, ..
        }
        | Change::Unreadable { .. } => near().unwrap_or_default(),
        Change::Applied { .. } => pools_of(change, |object| read(object).map(|(pool, _)| pool)),
        Change::Deleted { old, key: object, .. } => {
            let mut keys = pools_of(change, |object| read(object).map(|(pool, _)| pool));
            let place = old.and_then(read).and_then(|(_, held)| held.address);
            keys.extend(
                place
                    .into_iter()
                    .flat_map(|place| accounts.lock().pools_with(&object.namespace, place)),
            );
            keys
        }
        Change::Synced => Vec::new(),
    }
}

fn pools_of<K: kube_core::Resource>(change: &Change<'_, K>, pool: impl Fn(&K) -> Option<String>) -> Vec<Key> {
    let Some(object) = change.key() else { return Vec::new() };
    let (old, new) = match change {
        Change::Applied { old, new, .. } => (*old, Some(*new)),
        Change::Deleted { old, .. } | Change::Unreadable { old, .. } => (*old, None),
        Change::Synced => (None, None),
    };
    let named = [old.and_then(&pool), new.and_then(&pool)];
    let mut keys: Vec<Key> = named
        .into_iter()
        .flatten()
        .map(|pool| key(&object.namespace, &pool))
        .collect();
    keys.dedup();
    keys
}

/// The pools that a change of a pool concerns: itself, and those near it when its ranges may overlap others now.
pub(super) fn pools_of_pool(accounts: &SharedAccounts, change: &Change<'_, IPPool>) -> Vec<Key> {
    let Some(object) = change.key() else { return Vec::new() };
    if change.is_same(|old, new| old.spec.pools == new.spec.pools) {
        vec![object]
    } else {
        accounts
            .lock()
            .pools_near(&object.namespace)
            .into_iter()
            .chain([object])
            .collect()
    }
}

/// The pools that a change of a Cluster concerns: those near it, if it comes, goes, pauses or goes on.
pub(super) fn pools_of_cluster(accounts: &SharedAccounts, change: &Change<'_, Cluster>) -> Vec<Key> {
    match change {
        _ if change.is_same(|old, new| fact(old) == fact(new)) => Vec::new(),
        Change::Applied { .. } | Change::Deleted { .. } | Change::Unreadable { .. } => {
            let near = change
                .key()
                .map(|cluster| accounts.lock().pools_near(&cluster.namespace));
            near.unwrap_or_default()
        }
        Change::Synced => accounts.lock().all_pools(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_pool_near_an_address_that_cannot_be_read_hears_when_it_comes_up_or_ends() {
        let accounts = SharedAccounts::default();
        for pool in ["a", "b"] {
            accounts
                .lock()
                .put_pool(key("metal", pool), Ranges::of(&Default::default()).covered().clone());
        }
        let address: IPAddress = serde_json::from_value(json!({
            "metadata": { "namespace": "metal", "name": "one", "uid": "u-one", "resourceVersion": "1" },
            "spec": { "address": "192.0.2.1", "pool": { "name": "a" }, "claim": { "name": "c" } },
        }))
        .unwrap();
        let told = |change: &Change<'_, IPAddress>| pools_of_address(&accounts, change, Held::of_metal3).len();
        let (old, new, object) = (Some(&address), &address, Key::of(&address));
        let key = &object;
        assert_eq!(
            told(&Change::Applied {
                old,
                new,
                was_unreadable: false
            }),
            1
        );
        assert_eq!(
            told(&Change::Applied {
                old,
                new,
                was_unreadable: true
            }),
            2
        );
        assert_eq!(
            told(&Change::Deleted {
                key,
                old: None,
                was_unreadable: true
            }),
            2
        );
        assert_eq!(told(&Change::Unreadable { key, old }), 2);
    }
}
