//! The caches, the index they update, and the pools that a change concerns.
//!
//! The index is updated inside the critical section of each cache, before any key is queued: it is never behind the
//! change that triggered a reconcile.

use std::sync::Arc;

use metal3_api::cluster::{self, Cluster, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::watch::{WatchConfig, WatchSet};
use parking_lot::{Mutex, MutexGuard};

use crate::address::AddressObject;
use crate::claim::{Claim, ClaimKind, ObjectId};
use crate::index::{ClusterState, PoolIndex, key};
use crate::needs::Ipam;
use crate::ranges::Ranges;

/// The caches of IP address management. Clones share them.
#[derive(Clone, Default)]
pub struct Caches {
    /// Pools.
    pub pools: SharedCache<IPPool>,
    /// IPClaims.
    pub claims: SharedCache<IPClaim>,
    /// IPAddresses of `ipam.metal3.io`.
    pub addresses: SharedCache<IPAddress>,
    /// IPAddressClaims.
    pub cluster_claims: SharedCache<IPAddressClaim>,
    /// IPAddresses of Cluster API.
    pub cluster_addresses: SharedCache<cluster::IPAddress>,
    /// Clusters.
    pub clusters: SharedCache<Cluster>,
}

/// The index, shared between tasks. It is locked while a plan is computed, never across an await.
#[derive(Clone, Default)]
pub struct SharedPoolIndex(Arc<Mutex<PoolIndex>>);

impl SharedPoolIndex {
    /// Locks the index.
    pub fn lock(&self) -> MutexGuard<'_, PoolIndex> {
        // A panic in a plan leaves the index unchanged: plans only read it.
        self.0.lock()
    }
}

impl Caches {
    /// The watches of all kinds that IP address management reads. They run next to the controller.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Ipam> {
        WatchSet::new(config)
            .whole(&self.pools)
            .whole(&self.claims)
            .whole(&self.addresses)
            .whole(&self.cluster_claims)
            .whole(&self.cluster_addresses)
            .whole(&self.clusters)
    }

    /// An index of these caches. Call this before any of them is filled.
    #[must_use]
    pub fn index(&self) -> SharedPoolIndex {
        let index = SharedPoolIndex::default();
        self.index_claims(&index);
        self.index_addresses(&index);
        let shared = index.clone();
        self.pools.subscribe(move |change| {
            let mut index = shared.lock();
            index_readability(&mut index, "IPPool", change);
            match change {
                Change::Applied { new, .. } => {
                    index.put_pool(Key::of(*new), Ranges::of(&new.spec).covered().clone());
                }
                Change::Deleted { key, old, .. } => {
                    index.drop_pool(key, old.and_then(|pool| pool.metadata.uid.clone()))
                }
                Change::Unreadable { .. } | Change::Synced => {}
            }
        });
        let shared = index.clone();
        self.clusters.subscribe(move |change| match change {
            Change::Applied { new, .. } => shared.lock().put_cluster(Key::of(*new), Observed::Present(state(new))),
            Change::Deleted { key, .. } => shared.lock().put_cluster((*key).clone(), Observed::Absent),
            Change::Unreadable { key, .. } => {
                let why = UnknownReason::Unreadable("it cannot be read".to_owned());
                shared.lock().put_cluster((*key).clone(), Observed::Unknown(why));
            }
            Change::Synced => shared.lock().set_clusters_synced(),
        });
        index
    }

    fn index_claims(&self, index: &SharedPoolIndex) {
        let shared = index.clone();
        self.claims
            .subscribe(move |change| put_claim(&mut shared.lock(), ClaimKind::Metal3, change, Claim::of_metal3));
        let shared = index.clone();
        self.cluster_claims.subscribe(move |change| {
            put_claim(&mut shared.lock(), ClaimKind::ClusterApi, change, Claim::of_cluster_api)
        });
    }

    fn index_addresses(&self, index: &SharedPoolIndex) {
        let shared = index.clone();
        self.addresses.subscribe(move |change| {
            put_address(&mut shared.lock(), ClaimKind::Metal3, change, AddressObject::of_metal3)
        });
        let shared = index.clone();
        self.cluster_addresses.subscribe(move |change| {
            put_address(
                &mut shared.lock(),
                ClaimKind::ClusterApi,
                change,
                AddressObject::of_cluster_api,
            )
        });
    }
}

/// State of an existing Cluster.
pub(super) fn state(cluster: &Cluster) -> ClusterState {
    ClusterState {
        uid: cluster.metadata.uid.clone().unwrap_or_default(),
        paused: cluster.spec.paused.unwrap_or_default(),
    }
}

fn put_claim<K: kube_core::Resource>(
    index: &mut PoolIndex,
    kind: ClaimKind,
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, Claim)>,
) {
    let Some(object) = change.key() else { return };
    match change {
        Change::Applied { new, .. } => match read(new) {
            Some((pool, claim)) => index.put_claim(&object.namespace, &pool, claim),
            None => index.drop_claim(&object.namespace, &ObjectId::new(kind, &object.name)),
        },
        Change::Deleted { .. } => index.drop_claim(&object.namespace, &ObjectId::new(kind, &object.name)),
        // The last readable state is kept: its allocations still count.
        Change::Unreadable { .. } | Change::Synced => {}
    }
}

fn put_address<K: kube_core::Resource>(
    index: &mut PoolIndex,
    kind: ClaimKind,
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, AddressObject)>,
) {
    let Some(object) = change.key() else { return };
    let kind_name = match kind {
        ClaimKind::Metal3 => "IPAddress",
        ClaimKind::ClusterApi => "IPAddress of Cluster API",
    };
    index_readability(index, kind_name, change);
    match change {
        Change::Applied { new, .. } => match read(new) {
            Some((pool, address)) => index.put_address(&object.namespace, &pool, address),
            None => index.drop_address(&object.namespace, &ObjectId::new(kind, &object.name)),
        },
        Change::Deleted { .. } => index.drop_address(&object.namespace, &ObjectId::new(kind, &object.name)),
        Change::Unreadable { .. } | Change::Synced => {}
    }
}

fn index_readability<K: kube_core::Resource>(index: &mut PoolIndex, kind: &'static str, change: &Change<'_, K>) {
    if let Some(object) = change.key() {
        let readable = !matches!(change, Change::Unreadable { .. });
        index.set_readable(kind, &object, readable);
    }
}

/// The pools that a change of an address object concerns. A deletion may free a name for another pool, and an
/// unreadable address blocks every pool of the namespace.
pub(super) fn pools_of_address<K: kube_core::Resource>(
    index: &SharedPoolIndex,
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, AddressObject)>,
) -> Vec<Key> {
    let in_namespace = || {
        change
            .key()
            .map(|object| index.lock().pools_in_namespace(&object.namespace))
    };
    match change {
        Change::Applied {
            was_unreadable: true, ..
        }
        | Change::Deleted {
            was_unreadable: true, ..
        }
        | Change::Unreadable { .. } => in_namespace().unwrap_or_default(),
        Change::Applied { .. } => pools_of(change, read),
        Change::Deleted { old, key: object, .. } => {
            let mut keys = pools_of(change, read);
            let address = old.and_then(read).and_then(|(_, address)| address.address);
            keys.extend(
                address
                    .into_iter()
                    .flat_map(|address| index.lock().pools_with(&object.namespace, address)),
            );
            keys
        }
        Change::Synced => Vec::new(),
    }
}

/// The pools that an object names, before and after a change.
pub(super) fn pools_of<K: kube_core::Resource, T>(
    change: &Change<'_, K>,
    read: fn(&K) -> Option<(String, T)>,
) -> Vec<Key> {
    let Some(object) = change.key() else { return Vec::new() };
    let (old, new) = match change {
        Change::Applied { old, new, .. } => (*old, Some(*new)),
        Change::Deleted { old, .. } | Change::Unreadable { old, .. } => (*old, None),
        Change::Synced => (None, None),
    };
    let named = [old.and_then(read), new.and_then(read)];
    let mut keys: Vec<Key> = named
        .into_iter()
        .flatten()
        .map(|(pool, _)| key(&object.namespace, &pool))
        .collect();
    keys.dedup();
    keys
}

/// The pools that a change of a pool concerns: itself, and those of the namespace when its ranges change.
pub(super) fn pools_of_pool(index: &SharedPoolIndex, change: &Change<'_, IPPool>) -> Vec<Key> {
    let Some(object) = change.key() else { return Vec::new() };
    if change.is_same(|old, new| old.spec.pools == new.spec.pools) {
        vec![object]
    } else {
        index
            .lock()
            .pools_in_namespace(&object.namespace)
            .into_iter()
            .chain([object])
            .collect()
    }
}

/// The pools that a change of a Cluster concerns: those of the namespace, if it is created, deleted, paused or
/// unpaused.
pub(super) fn pools_of_cluster(index: &SharedPoolIndex, change: &Change<'_, Cluster>) -> Vec<Key> {
    match change {
        _ if change.is_same(|old, new| state(old) == state(new)) => Vec::new(),
        Change::Applied { .. } | Change::Deleted { .. } | Change::Unreadable { .. } => {
            let in_namespace = change
                .key()
                .map(|cluster| index.lock().pools_in_namespace(&cluster.namespace));
            in_namespace.unwrap_or_default()
        }
        Change::Synced => index.lock().all_pools(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unreadable_address_triggers_every_pool_of_its_namespace_when_it_appears_and_disappears() {
        let index = SharedPoolIndex::default();
        for pool in ["a", "b"] {
            index
                .lock()
                .put_pool(key("metal", pool), Ranges::of(&Default::default()).covered().clone());
        }
        let address: IPAddress = serde_json::from_value(json!({
            "metadata": { "namespace": "metal", "name": "one", "uid": "u-one", "resourceVersion": "1" },
            "spec": { "address": "192.0.2.1", "pool": { "name": "a" }, "claim": { "name": "c" } },
        }))
        .unwrap();
        let concerned =
            |change: &Change<'_, IPAddress>| pools_of_address(&index, change, AddressObject::of_metal3).len();
        let (old, new, object) = (Some(&address), &address, Key::of(&address));
        let key = &object;
        assert_eq!(
            concerned(&Change::Applied {
                old,
                new,
                was_unreadable: false
            }),
            1
        );
        assert_eq!(
            concerned(&Change::Applied {
                old,
                new,
                was_unreadable: true
            }),
            2
        );
        assert_eq!(
            concerned(&Change::Deleted {
                key,
                old: None,
                was_unreadable: true
            }),
            2
        );
        assert_eq!(concerned(&Change::Unreadable { key, old }), 2);
    }
}
