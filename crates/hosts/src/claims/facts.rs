//! What a decision about one claim knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData, HostClaim};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;

use super::copies::{Copy, Pair, Pairs, Source, Use};
use super::policy::Rules;

/// A read that a decision needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    /// The claim, on the server now.
    Claim,
    /// The namespace of the claim.
    Namespace,
    /// A policy.
    Policy(Key),
    /// A host.
    Host(Key),
    /// The Secrets of the claim and their copies for a host, from caches.
    Copies(Key),
}

/// What was read from the server in this reconcile.
#[derive(Debug, Clone, Default)]
pub(super) struct Fresh {
    pub(super) claim: bool,
    pub(super) namespace: bool,
    pub(super) policies: BTreeSet<Key>,
    pub(super) hosts: BTreeSet<Key>,
}

impl Fresh {
    /// After a write that serves the claim, what permitted it is read again before the next one. The host is known from the write.
    pub(super) fn end_permission(&mut self) {
        self.claim = false;
        self.namespace = false;
        self.policies.clear();
    }
}

/// All of it.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) key: Key,
    pub(super) claim: Arc<HostClaim>,
    /// Since when this process sees it deleted.
    pub(super) deleted_for: Duration,
    /// The policies that count.
    pub(super) policies: BTreeMap<Key, Arc<Rules>>,
    /// Whether the policies are listed and may be read; otherwise the absence of one shows nothing.
    pub(super) knows_policies: bool,
    /// Whether a watch shows changes of labels of namespaces.
    pub(super) watches_namespaces: bool,
    /// Labels of the namespace of the claim.
    pub(super) namespace: Observed<BTreeMap<String, String>>,
    /// Hosts that name the claim as their consumer, the one that its status names, and free ones.
    pub(super) hosts: BTreeMap<Key, Arc<BareMetalHost>>,
    /// Hosts that the claim names, and that are not watched, may not be read or cannot be decoded.
    pub(super) hidden: BTreeSet<Key>,
    /// Hosts to which the API server refused to bind the claim lately.
    pub(super) refused: BTreeSet<Key>,
    /// The API server refuses what the HardwareData would get.
    pub(super) is_hardware_refused: bool,
    /// More claims of its namespace wait before this one than are served at a time.
    pub(super) is_beyond: bool,
    /// How many hosts name claims of its namespace that do not exist.
    pub(super) abandoned: usize,
    /// The HardwareData of those hosts.
    pub(super) hardware: BTreeMap<Key, Arc<HardwareData>>,
    /// The Secrets for each host of the claim.
    pub(super) copies: BTreeMap<Key, Pairs>,
    pub(super) fresh: Fresh,
    pub(super) now: DateTime<Utc>,
}

impl Facts {
    /// The claim as this program wrote it. What permits a write to a host is read again before the next one.
    pub(super) fn wrote_claim(&mut self, claim: HostClaim) {
        self.claim = Arc::new(claim);
        self.fresh.end_permission();
        self.fresh.claim = true;
    }

    /// The status of the claim as this program wrote it, which changes nothing else.
    pub(super) fn wrote_status(&mut self, claim: HostClaim) {
        self.claim = Arc::new(claim);
        self.fresh.claim = true;
    }

    /// What became of a copy for a host.
    pub(super) fn set_copy(&mut self, which: Use, host: &Key, copy: Copy) {
        if let Some(pair) = self.copies.get_mut(host).and_then(|pairs| pairs.get_mut(&which)) {
            pair.copy = copy;
        }
    }

    /// What became of a Secret that the claim names.
    pub(super) fn set_source(&mut self, which: Use, host: &Key, source: Source) {
        if let Some(pair) = self.copies.get_mut(host).and_then(|pairs| pairs.get_mut(&which)) {
            pair.source = source;
        }
    }

    /// The Secret that the claim names and its copy for a host.
    pub(super) fn pair(&self, which: Use, host: &Key) -> Option<&Pair> {
        self.copies.get(host)?.get(&which)
    }
}
