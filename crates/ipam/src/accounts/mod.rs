//! The accounts: what all caches together say about pools, kept up to date one change at a time.
//!
//! Whoever plans for a pool must not walk over all that was ever granted from it. The accounts therefore keep, for each
//! pool, the addresses in use as intervals, the claims that something remains to be done for, and the address objects
//! whose claims do not own up to them. They are fed with every change of every cache and remember nothing else, so they
//! can be thrown away and built again. They decide nothing, and believe the cache: whether something that is not here
//! really does not exist is for a live read to say.

mod account;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use metal3_domain::ip::IntervalSet;
use metal3_runtime::cache::Key;

use crate::claim::{Claim, Named};
use crate::held::Held;
use crate::ranges::place;

pub use account::Account;

/// What is known of a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterFact {
    /// It exists.
    Found {
        /// Which.
        uid: String,
        /// Whether everything of it is paused.
        paused: bool,
    },
    /// It does not.
    Absent,
    /// Nobody can say yet.
    Unknown,
}

/// Everything known of all pools.
#[derive(Debug, Default)]
pub struct Accounts {
    pools: BTreeMap<Key, Account>,
    claims: BTreeMap<(String, Named), String>,
    addresses: BTreeMap<(String, Named), String>,
    spans: BTreeMap<Key, IntervalSet<Ipv6Addr>>,
    clusters: BTreeMap<Key, ClusterFact>,
    clusters_known: bool,
    unreadable: BTreeMap<String, BTreeSet<(&'static str, String)>>,
    pools_gone: BTreeMap<Key, String>,
}

impl Accounts {
    /// The account of one pool; nothing when no claim and no address names it.
    #[must_use]
    pub fn pool(&self, key: &Key) -> Option<&Account> {
        self.pools.get(key)
    }

    /// A claim is as given now.
    pub fn put_claim(&mut self, namespace: &str, pool: &str, claim: Claim) {
        let place = (namespace.to_owned(), claim.id.clone());
        if self.claims.get(&place).is_some_and(|old| old != pool) {
            self.drop_claim(namespace, &claim.id);
        }
        self.claims.insert(place, pool.to_owned());
        self.pools.entry(key(namespace, pool)).or_default().put_claim(claim);
    }

    /// A claim is gone.
    pub fn drop_claim(&mut self, namespace: &str, id: &Named) {
        if let Some(pool) = self.claims.remove(&(namespace.to_owned(), id.clone())) {
            self.change(namespace, &pool, |account| account.drop_claim(id));
        }
    }

    /// An address object is as given now.
    pub fn put_address(&mut self, namespace: &str, pool: &str, held: Held) {
        let place = (namespace.to_owned(), held.id.clone());
        if self.addresses.get(&place).is_some_and(|old| old != pool) {
            self.drop_address(namespace, &held.id);
        }
        self.addresses.insert(place, pool.to_owned());
        self.pools.entry(key(namespace, pool)).or_default().put_address(held);
    }

    /// An address object is gone.
    pub fn drop_address(&mut self, namespace: &str, id: &Named) {
        if let Some(pool) = self.addresses.remove(&(namespace.to_owned(), id.clone())) {
            self.change(namespace, &pool, |account| account.drop_address(id));
        }
    }

    /// The pool whose address object has that name, if any.
    #[must_use]
    pub fn pool_of_address(&self, namespace: &str, id: &Named) -> Option<&str> {
        self.addresses
            .get(&(namespace.to_owned(), id.clone()))
            .map(String::as_str)
    }

    /// A pool spans these addresses now.
    pub fn put_pool(&mut self, pool: Key, span: IntervalSet<Ipv6Addr>) {
        self.spans.insert(pool, span);
    }

    /// A pool is gone; its UID is remembered, for what it left behind.
    pub fn drop_pool(&mut self, pool: &Key, uid: Option<String>) {
        self.spans.remove(pool);
        if let Some(uid) = uid {
            self.pools_gone.insert(pool.clone(), uid);
        }
    }

    /// The pool of that name that this process has seen go.
    #[must_use]
    pub fn pool_seen_going(&self, pool: &Key) -> Option<&str> {
        self.pools_gone.get(pool).map(String::as_str)
    }

    /// Another pool of the namespace that has an address of this one.
    #[must_use]
    pub fn overlapping(&self, pool: &Key) -> Option<&Key> {
        let span = self.spans.get(pool)?;
        let near = self
            .spans
            .range(key(&pool.namespace, "")..)
            .take_while(|(other, _)| other.namespace == pool.namespace);
        near.filter(|(other, _)| *other != pool)
            .find(|(_, other)| !span.intersection(other).is_empty())
            .map(|(other, _)| other)
    }

    /// The pools of a namespace: those that exist, and those that a claim or an address names.
    #[must_use]
    pub fn pools_near(&self, namespace: &str) -> Vec<Key> {
        let lowest = key(namespace, "");
        let near = |pool: &&Key| pool.namespace == namespace;
        let exist = self.spans.range(&lowest..).map(|(pool, _)| pool).take_while(near);
        let named = self.pools.range(&lowest..).map(|(pool, _)| pool).take_while(near);
        let all: BTreeSet<&Key> = exist.chain(named).collect();
        all.into_iter().cloned().collect()
    }

    /// All pools.
    #[must_use]
    pub fn all_pools(&self) -> Vec<Key> {
        let all: BTreeSet<&Key> = self.spans.keys().chain(self.pools.keys()).collect();
        all.into_iter().cloned().collect()
    }

    /// The pools of a namespace that have the address.
    #[must_use]
    pub fn pools_with(&self, namespace: &str, address: IpAddr) -> Vec<Key> {
        let near = self
            .spans
            .range(key(namespace, "")..)
            .take_while(|(pool, _)| pool.namespace == namespace);
        near.filter(|(_, span)| span.contains(place(address)))
            .map(|(pool, _)| pool.clone())
            .collect()
    }

    /// A Cluster is as given now; nothing when it is gone.
    pub fn put_cluster(&mut self, cluster: Key, fact: Option<ClusterFact>) {
        match fact {
            Some(fact) => self.clusters.insert(cluster, fact),
            None => self.clusters.remove(&cluster),
        };
    }

    /// All Clusters are known: one that is not here does not exist.
    pub const fn clusters_are_known(&mut self) {
        self.clusters_known = true;
    }

    /// What is known of a Cluster.
    #[must_use]
    pub fn cluster(&self, namespace: &str, name: &str) -> ClusterFact {
        match self.clusters.get(&key(namespace, name)) {
            Some(fact) => fact.clone(),
            None if self.clusters_known => ClusterFact::Absent,
            None => ClusterFact::Unknown,
        }
    }

    /// Whether an object of a kind can be read. One that cannot may hold any address of its namespace.
    pub fn note_readable(&mut self, kind: &'static str, object: &Key, readable: bool) {
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

    /// An object of the namespace that cannot be read.
    #[must_use]
    pub fn unreadable(&self, namespace: &str) -> Option<(&'static str, &str)> {
        let first = self.unreadable.get(namespace)?.first()?;
        Some((first.0, &first.1))
    }

    fn change(&mut self, namespace: &str, pool: &str, change: impl FnOnce(&mut Account)) {
        let pool = key(namespace, pool);
        if let Some(account) = self.pools.get_mut(&pool) {
            change(account);
            if account.is_empty() {
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
