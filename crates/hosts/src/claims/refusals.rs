//! Hosts to which the API server refused to bind a claim lately: another one is tried meanwhile, and each of them again later, because
//! rights and policies of the API server are not watched. Lost with the process, which then tries them at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use super::RECHECK;

/// When each host was refused.
type Times = BTreeMap<Key, DateTime<Utc>>;

/// Clones share them.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<BTreeMap<Key, Times>>>);

fn is_recent(at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    // Shorter than the pause, so that the reconcile after it tries again.
    let period = TimeDelta::from_std(RECHECK / 2).unwrap_or_default();
    now.signed_duration_since(at).abs() < period
}

impl Refusals {
    /// Notes that the API server refused to bind this host to a claim.
    pub(super) fn note(&self, claim: &Key, host: &Key, now: DateTime<Utc>) {
        let mut all = self.0.lock();
        all.retain(|_, hosts| {
            hosts.retain(|_, at| is_recent(*at, now));
            !hosts.is_empty()
        });
        all.entry(claim.clone()).or_default().insert(host.clone(), now);
    }

    /// The hosts that were refused lately.
    pub(super) fn of(&self, claim: &Key, now: DateTime<Utc>) -> BTreeSet<Key> {
        let all = self.0.lock();
        let hosts = all.get(claim).into_iter().flatten();
        hosts
            .filter(|(_, at)| is_recent(**at, now))
            .map(|(host, _)| host.clone())
            .collect()
    }
}
