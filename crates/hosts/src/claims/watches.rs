//! The caches, and which claims a change concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, HostDeployPolicy};
use metal3_runtime::cache::{Change, Index, Indexes, Key, SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};
use parking_lot::Mutex;

use super::bond::{self, named};
use super::choice::is_free;
use super::copies::{Named, Use, host_of};
use super::plan::may_be_bound;
use crate::needs::Claims;

/// How many claims of a namespace without a host are served at a time: each host that becomes free enqueues them.
pub(super) const MOST_WAITING: usize = 100;

/// Whether a claim waits for a host: one that another program serves, that is paused or moves, or that waits for the host which it had,
/// takes no turn.
pub(super) fn is_waiting(claim: &HostClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none() && named(claim).is_none() && may_be_bound(claim)
}

/// The claims that a change of a claim concerns: itself, and the next one when it stops to wait.
pub(super) fn of_claim(change: &Change<'_, HostClaim>, claims: &SharedIndexes<ClaimIndexes>) -> Vec<Key> {
    let (old, new) = match change {
        Change::Applied { old, new, .. } => (*old, Some(*new)),
        Change::Deleted { old, .. } => (*old, None),
        Change::Unreadable { .. } | Change::Synced => (None, None),
    };
    let Some(key) = change.key() else { return Vec::new() };
    let has_left = old.is_some_and(is_waiting) && !new.is_some_and(is_waiting);
    let next = has_left.then(|| claims.read(|indexes| indexes.next_of(&key.namespace)));
    next.flatten().into_iter().chain([key]).collect()
}

/// The claims by what they name.
#[derive(Default)]
pub struct ClaimIndexes {
    /// The namespaces of claims with a host.
    by_namespace: Index<String>,
    by_secret: Index<Key>,
    /// The namespaces of claims without a host.
    waiting: BTreeMap<String, BTreeSet<Key>>,
    /// The namespaces of the hosts that the status names. What an annotation names counts not: its author would have any number of
    /// claims enqueued by a host of his choice. A host that is bound names its claim.
    by_host_namespace: Index<String>,
    /// Those hosts.
    by_host: Index<Key>,
}

impl ClaimIndexes {
    /// The claims of a namespace with a host, and those that are served while they wait.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Key> {
        let waiting = self.waiting.get(namespace).into_iter().flatten().take(MOST_WAITING);
        let with_host = self.by_namespace.get(&namespace.to_owned());
        with_host.chain(waiting).cloned().collect()
    }

    fn of_secret(&self, secret: &Key) -> impl Iterator<Item = Key> {
        self.by_secret.get(secret).cloned()
    }

    /// The last claim of a namespace that is served, if there are more.
    fn last_served(&self, namespace: &str) -> Option<&Key> {
        self.waiting.get(namespace)?.iter().nth(MOST_WAITING - 1)
    }

    /// The claims without a host that are served at a time.
    pub(super) fn waiting(&self) -> Vec<Key> {
        let namespaces = self.waiting.values();
        namespaces
            .flat_map(|claims| claims.iter().take(MOST_WAITING))
            .cloned()
            .collect()
    }

    /// Whether more claims of the namespace wait before this one than are served at a time.
    pub(super) fn is_beyond(&self, claim: &Key) -> bool {
        let waiting = self.waiting.get(&claim.namespace);
        let last = self.last_served(&claim.namespace);
        waiting.is_some_and(|waiting| waiting.contains(claim)) && last.is_some_and(|last| claim > last)
    }

    /// The claim that is served next when one of this namespace stops to wait.
    pub(super) fn next_of(&self, namespace: &str) -> Option<Key> {
        self.last_served(namespace).cloned()
    }

    /// The claims whose status names a host of a namespace.
    fn with_host_in(&self, namespace: &str) -> Vec<Key> {
        self.by_host_namespace.get(&namespace.to_owned()).cloned().collect()
    }
}

impl Indexes<HostClaim> for ClaimIndexes {
    fn replace(&mut self, key: &Key, old: Option<&HostClaim>, new: Option<&HostClaim>) {
        let namespace = |claim: &HostClaim| named(claim).map(|_| key.namespace.clone());
        self.by_namespace
            .replace(key, old.and_then(namespace), new.and_then(namespace));
        let namespace = |claim: &HostClaim| named(claim).map(|host| host.namespace);
        self.by_host_namespace
            .replace(key, old.and_then(namespace), new.and_then(namespace));
        self.by_host.replace(key, old.and_then(named), new.and_then(named));
        if new.is_some_and(is_waiting) {
            self.waiting
                .entry(key.namespace.clone())
                .or_default()
                .insert(key.clone());
        } else if let Some(waiting) = self.waiting.get_mut(&key.namespace) {
            waiting.remove(key);
            if waiting.is_empty() {
                self.waiting.remove(&key.namespace);
            }
        }
        // A claim without a host needs no Secret yet.
        let secrets = |claim: &HostClaim| -> Vec<Key> {
            let names = Use::ALL
                .into_iter()
                .filter(|_| named(claim).is_some())
                .filter_map(|which| which.named(&claim.spec, &key.namespace));
            let own = names.filter_map(|named| match named {
                Named::Own(name) => Some(key.sibling(&name)),
                Named::Elsewhere | Named::Invalid => None,
            });
            own.collect()
        };
        self.by_secret.replace(
            key,
            old.map(secrets).unwrap_or_default(),
            new.map(secrets).unwrap_or_default(),
        );
    }
}

/// Claims, policies, and the metadata of namespaces. Clones share them.
#[derive(Clone, Default)]
pub struct Caches {
    pub(super) claims: SharedCache<HostClaim, SharedIndexes<ClaimIndexes>>,
    pub(super) policies: SharedCache<HostDeployPolicy>,
    pub(super) namespaces: SharedCache<PartialObjectMeta<Namespace>>,
}

impl Caches {
    /// The watches. The kinds need not be installed. Without `namespaces`, as for a program of one namespace, labels of namespaces are
    /// not known.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig, namespaces: bool) -> WatchSet<Claims> {
        let watches = WatchSet::new(config).optional(&self.claims).optional(&self.policies);
        match namespaces {
            true => watches.optional_metadata(&self.namespaces),
            false => watches,
        }
    }
}

/// Which hosts name a claim, and which are free. It follows from the cache of hosts.
#[derive(Clone, Default)]
pub(super) struct HostBook(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    of_claim: BTreeMap<Key, BTreeSet<Key>>,
    claim_of: BTreeMap<Key, Key>,
    free: BTreeSet<Key>,
}

impl HostBook {
    /// Follows this cache. Call it before the cache is filled.
    pub(super) fn following(hosts: &SharedCache<BareMetalHost>) -> Self {
        let book = Self::default();
        let follower = book.clone();
        hosts.subscribe(move |change| follower.note(change));
        book
    }

    fn note(&self, change: &Change<'_, BareMetalHost>) {
        let Some(key) = change.key() else { return };
        let host = match change {
            Change::Applied { new, .. } => Some(*new),
            // What it names may be what it named.
            Change::Unreadable { .. } | Change::Synced => return,
            Change::Deleted { .. } => None,
        };
        let mut book = self.0.lock();
        match host.is_some_and(is_free) {
            true => book.free.insert(key.clone()),
            false => book.free.remove(&key),
        };
        if let Some(former) = book.claim_of.remove(&key) {
            let hosts = book.of_claim.entry(former.clone()).or_default();
            hosts.remove(&key);
            if hosts.is_empty() {
                book.of_claim.remove(&former);
            }
        }
        if let Some(claim) = host.and_then(bond::consumer) {
            book.of_claim.entry(claim.clone()).or_default().insert(key.clone());
            book.claim_of.insert(key, claim);
        }
    }

    pub(super) fn of_claim(&self, claim: &Key) -> Vec<Key> {
        self.0
            .lock()
            .of_claim
            .get(claim)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    pub(super) fn claim_of(&self, host: &Key) -> Option<Key> {
        self.0.lock().claim_of.get(host).cloned()
    }

    /// The claims of a namespace that hosts name, and how many name each.
    pub(super) fn of_claims_in(&self, namespace: &str) -> Vec<(Key, usize)> {
        let book = self.0.lock();
        let claims = book.of_claim.range(Key::first_in(namespace)..);
        let claims = claims.take_while(|(claim, _)| claim.namespace == namespace);
        claims.map(|(claim, hosts)| (claim.clone(), hosts.len())).collect()
    }

    pub(super) fn free(&self) -> Vec<Key> {
        self.0.lock().free.iter().cloned().collect()
    }

    /// Whether a host of the namespace is free.
    fn has_free_in(&self, namespace: &str) -> bool {
        let book = self.0.lock();
        let first = book.free.range(Key::first_in(namespace)..).next();
        first.is_some_and(|host| host.namespace == namespace)
    }

    /// The claims that hosts of the namespace name.
    fn claims_in(&self, namespace: &str) -> Vec<Key> {
        let book = self.0.lock();
        let hosts = book.claim_of.range(Key::first_in(namespace)..);
        let hosts = hosts.take_while(|(host, _)| host.namespace == namespace);
        hosts.map(|(_, claim)| claim.clone()).collect()
    }
}

/// The claims that a change of a host concerns: those that it named and names, those whose status may name it, and all that wait
/// when it becomes free.
pub(super) fn of_host(change: &Change<'_, BareMetalHost>, claims: &SharedIndexes<ClaimIndexes>) -> Vec<Key> {
    let (old, new) = match change {
        Change::Applied { old, new, .. } => (*old, Some(*new)),
        Change::Deleted { old, .. } | Change::Unreadable { old, .. } => (*old, None),
        Change::Synced => return Vec::new(),
    };
    let named = [old, new].into_iter().flatten().filter_map(bond::consumer);
    let mut concerned: BTreeSet<Key> = named.collect();
    if let Some(key) = change.key() {
        claims.read(|indexes| concerned.extend(indexes.by_host.get(&key).cloned()));
    }
    let labels = |host: &BareMetalHost| host.metadata.labels.clone();
    let is_new = |new: &BareMetalHost| old.is_none_or(|old| !is_free(old) || labels(old) != labels(new));
    if new.is_some_and(|new| is_free(new) && is_new(new)) {
        concerned.extend(claims.read(ClaimIndexes::waiting));
    }
    concerned.into_iter().collect()
}

/// The claims that a change of a policy concerns: those with a host of its namespace, and those that wait if one is free there.
pub(super) fn of_policy(policy: &Key, claims: &SharedIndexes<ClaimIndexes>, book: &HostBook) -> Vec<Key> {
    let mut concerned: BTreeSet<Key> = book.claims_in(&policy.namespace).into_iter().collect();
    claims.read(|indexes| concerned.extend(indexes.with_host_in(&policy.namespace)));
    if book.has_free_in(&policy.namespace) {
        concerned.extend(claims.read(ClaimIndexes::waiting));
    }
    concerned.into_iter().collect()
}

/// The claims that a change of a Secret concerns: those that name it, and the one of the host whose copy it is.
pub(super) fn of_secret(secret: &Key, claims: &SharedIndexes<ClaimIndexes>, book: &HostBook) -> Vec<Key> {
    let naming: Vec<Key> = claims.read(|indexes| indexes.of_secret(secret).collect());
    let of_copy = host_of(secret).and_then(|host| book.claim_of(&host));
    naming.into_iter().chain(of_copy).collect()
}

/// Whether the labels of a namespace may have changed: policies ask for nothing else of it.
pub(super) fn has_other_labels(change: &Change<'_, PartialObjectMeta<Namespace>>) -> bool {
    match change {
        Change::Applied {
            old: Some(old), new, ..
        } => old.metadata.labels != new.metadata.labels,
        _ => true,
    }
}
