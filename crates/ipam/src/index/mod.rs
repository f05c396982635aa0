//! Index of all cached objects by pool, updated with each cache change.
//!
//! A plan must not iterate over all allocations of a pool. The index therefore keeps, per pool, the addresses in use as
//! intervals, the claims that need work, and the address objects that their claims do not confirm. It derives from
//! cache changes alone and can be rebuilt. It reflects the caches: only a live read proves that an object does not
//! exist.

mod entry;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use metal3_domain::ip::IntervalSet;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};

use crate::address::AddressObject;
use crate::claim::{Claim, ObjectId};
use crate::ranges::position;

pub use entry::IndexEntry;

/// The number of deleted pools whose UID is kept. Users choose the names, so that all would be too many; an address
/// object that outlives its pool appears within seconds.
const MAX_DELETED_POOLS: usize = 1_000;

/// The fields of a Cluster that a plan uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterState {
    /// UID.
    pub uid: String,
    /// Whether it is paused.
    pub paused: bool,
}

/// Index of all pools.
#[derive(Debug, Default)]
pub struct PoolIndex {
    pools: BTreeMap<Key, IndexEntry>,
    claims: BTreeMap<(String, ObjectId), String>,
    addresses: BTreeMap<(String, ObjectId), String>,
    spans: BTreeMap<Key, IntervalSet<Ipv6Addr>>,
    clusters: BTreeMap<Key, Observed<ClusterState>>,
    clusters_synced: bool,
    unreadable: BTreeMap<String, BTreeSet<(&'static str, String)>>,
    /// UIDs of deleted pools, the oldest first.
    deleted_pools: VecDeque<(Key, String)>,
}

impl PoolIndex {
    /// The entry of a pool; `None` when no claim and no address object names it.
    #[must_use]
    pub fn pool(&self, key: &Key) -> Option<&IndexEntry> {
        self.pools.get(key)
    }

    /// Inserts or replaces a claim.
    pub fn put_claim(&mut self, namespace: &str, pool: &str, claim: Claim) {
        let object = (namespace.to_owned(), claim.id.clone());
        if self.claims.get(&object).is_some_and(|old| old != pool) {
            self.drop_claim(namespace, &claim.id);
        }
        self.claims.insert(object, pool.to_owned());
        self.pools.entry(key(namespace, pool)).or_default().put_claim(claim);
    }

    /// Removes a claim.
    pub fn drop_claim(&mut self, namespace: &str, id: &ObjectId) {
        if let Some(pool) = self.claims.remove(&(namespace.to_owned(), id.clone())) {
            self.change(namespace, &pool, |entry| entry.drop_claim(id));
        }
    }

    /// Inserts or replaces an address object.
    pub fn put_address(&mut self, namespace: &str, pool: &str, address: AddressObject) {
        let object = (namespace.to_owned(), address.id.clone());
        if self.addresses.get(&object).is_some_and(|old| old != pool) {
            self.drop_address(namespace, &address.id);
        }
        self.addresses.insert(object, pool.to_owned());
        self.pools.entry(key(namespace, pool)).or_default().put_address(address);
    }

    /// Removes an address object.
    pub fn drop_address(&mut self, namespace: &str, id: &ObjectId) {
        if let Some(pool) = self.addresses.remove(&(namespace.to_owned(), id.clone())) {
            self.change(namespace, &pool, |entry| entry.drop_address(id));
        }
    }

    /// The pool of the address object with that ID.
    #[must_use]
    pub fn pool_of_address(&self, namespace: &str, id: &ObjectId) -> Option<&str> {
        self.addresses
            .get(&(namespace.to_owned(), id.clone()))
            .map(String::as_str)
    }

    /// Sets the ranges of a pool.
    pub fn put_pool(&mut self, pool: Key, span: IntervalSet<Ipv6Addr>) {
        self.spans.insert(pool, span);
    }

    /// Removes a pool. Its UID is kept for the release of its address objects, also of those that appear later.
    pub fn drop_pool(&mut self, pool: &Key, uid: Option<String>) {
        self.spans.remove(pool);
        if let Some(uid) = uid {
            self.deleted_pools.retain(|(deleted, _)| deleted != pool);
            self.deleted_pools.push_back((pool.clone(), uid));
        }
        if self.deleted_pools.len() > MAX_DELETED_POOLS {
            self.deleted_pools.pop_front();
        }
    }

    /// UID of the pool of that name whose deletion this process observed.
    #[must_use]
    pub fn deleted_pool_uid(&self, pool: &Key) -> Option<&str> {
        let of_pool = self.deleted_pools.iter().find(|(deleted, _)| deleted == pool);
        of_pool.map(|(_, uid)| uid.as_str())
    }

    /// Another pool of the namespace with a common address.
    #[must_use]
    pub fn overlapping(&self, pool: &Key) -> Option<&Key> {
        let span = self.spans.get(pool)?;
        let in_namespace = self
            .spans
            .range(key(&pool.namespace, "")..)
            .take_while(|(other, _)| other.namespace == pool.namespace);
        in_namespace
            .filter(|(other, _)| *other != pool)
            .find(|(_, other)| !span.intersection(other).is_empty())
            .map(|(other, _)| other)
    }

    /// The pools of a namespace: those that exist, and those that a claim or an address object names.
    #[must_use]
    pub fn pools_in_namespace(&self, namespace: &str) -> Vec<Key> {
        let lowest = key(namespace, "");
        let in_namespace = |pool: &&Key| pool.namespace == namespace;
        let exist = self
            .spans
            .range(&lowest..)
            .map(|(pool, _)| pool)
            .take_while(in_namespace);
        let named = self
            .pools
            .range(&lowest..)
            .map(|(pool, _)| pool)
            .take_while(in_namespace);
        let all: BTreeSet<&Key> = exist.chain(named).collect();
        all.into_iter().cloned().collect()
    }

    /// All pools.
    #[must_use]
    pub fn all_pools(&self) -> Vec<Key> {
        let all: BTreeSet<&Key> = self.spans.keys().chain(self.pools.keys()).collect();
        all.into_iter().cloned().collect()
    }

    /// The pools of a namespace that contain the address.
    #[must_use]
    pub fn pools_with(&self, namespace: &str, address: IpAddr) -> Vec<Key> {
        let in_namespace = self
            .spans
            .range(key(namespace, "")..)
            .take_while(|(pool, _)| pool.namespace == namespace);
        in_namespace
            .filter(|(_, span)| span.contains(position(address)))
            .map(|(pool, _)| pool.clone())
            .collect()
    }

    /// Sets the state of a Cluster.
    pub fn put_cluster(&mut self, cluster: Key, state: Observed<ClusterState>) {
        match state {
            Observed::Absent => self.clusters.remove(&cluster),
            state => self.clusters.insert(cluster, state),
        };
    }

    /// Marks the Clusters as listed: a Cluster without state does not exist.
    pub const fn set_clusters_synced(&mut self) {
        self.clusters_synced = true;
    }

    /// State of a Cluster.
    #[must_use]
    pub fn cluster(&self, namespace: &str, name: &str) -> Observed<ClusterState> {
        match self.clusters.get(&key(namespace, name)) {
            Some(state) => state.clone(),
            None if self.clusters_synced => Observed::Absent,
            None => Observed::Unknown(UnknownReason::NotListed),
        }
    }

    /// Whether a Cluster exists that cannot be read.
    #[must_use]
    pub fn is_cluster_unreadable(&self, namespace: &str, name: &str) -> bool {
        let state = self.clusters.get(&key(namespace, name));
        matches!(state, Some(Observed::Unknown(UnknownReason::Unreadable(_))))
    }

    /// Records whether an object is readable. An unreadable object may use any address of its namespace.
    pub fn set_readable(&mut self, kind: &'static str, object: &Key, readable: bool) {
        let unreadable = self.unreadable.entry(object.namespace.clone()).or_default();
        if readable {
            unreadable.remove(&(kind, object.name.clone()));
        } else {
            unreadable.insert((kind, object.name.clone()));
        }
        if unreadable.is_empty() {
            self.unreadable.remove(&object.namespace);
        }
    }

    /// An unreadable object of the namespace.
    #[must_use]
    pub fn unreadable(&self, namespace: &str) -> Option<(&'static str, &str)> {
        let first = self.unreadable.get(namespace)?.first()?;
        Some((first.0, &first.1))
    }

    fn change(&mut self, namespace: &str, pool: &str, change: impl FnOnce(&mut IndexEntry)) {
        let pool = key(namespace, pool);
        if let Some(entry) = self.pools.get_mut(&pool) {
            change(entry);
            if entry.is_empty() {
                self.pools.remove(&pool);
            }
        }
    }
}

/// The key of an object.
#[must_use]
pub fn key(namespace: &str, name: &str) -> Key {
    Key {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_pools_are_kept_up_to_a_limit() {
        let mut index = PoolIndex::default();
        let pool = |number: usize| key("lab", &format!("pool-{number}"));
        for number in 0..=MAX_DELETED_POOLS {
            for uid in ["earlier", "last"] {
                index.put_pool(pool(number), IntervalSet::new());
                index.drop_pool(&pool(number), Some(uid.to_owned()));
            }
        }
        assert_eq!(index.deleted_pools.len(), MAX_DELETED_POOLS);
        assert_eq!(index.deleted_pool_uid(&pool(0)), None, "the oldest");
        for number in [1, MAX_DELETED_POOLS] {
            assert_eq!(index.deleted_pool_uid(&pool(number)), Some("last"));
        }
    }
}
