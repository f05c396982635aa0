//! What this process remembers of hosts beside the caches: which Secret and which node concerns which host, what a host
//! was before it was what it is, which were torn down of late, and what Ironic refused.
//!
//! All of it follows from what the caches told, but for the refusals, and a process that starts without them asks once
//! more. It decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use metal3_api::metal3::names::PAUSED_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState as State};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::{Change, Key, SharedCache};

use crate::facts::{Budget, LastView, Refused};
use crate::object::is_moving;

/// How many provisioned hosts of a namespace may be torn down in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brake {
    /// This many.
    pub limit: u32,
    /// In this time.
    pub period: TimeDelta,
    /// The time, in words: `hour`.
    pub words: &'static str,
}

impl Default for Brake {
    fn default() -> Self {
        Self {
            limit: 100,
            period: TimeDelta::hours(1),
            words: "hour",
        }
    }
}

/// Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Records(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    of_secret: BTreeMap<(String, String), BTreeSet<Key>>,
    of_node: BTreeMap<String, Key>,
    before: BTreeMap<Key, LastView>,
    /// The state of a host, and when it was first seen in it.
    entered: BTreeMap<Key, (State, Monotonic)>,
    /// When the last tear-down of a host began, by namespace. A host that is gone still counts.
    departures: BTreeMap<String, BTreeMap<String, DateTime<Utc>>>,
    /// Hosts that took their place in the budget and do not show it yet: the write of their status may have failed.
    taken: BTreeSet<Key>,
    refused: BTreeMap<Key, (Option<i64>, Refused)>,
}

impl Records {
    /// Records that follow this cache. To be called before it is filled.
    pub(super) fn following(hosts: &SharedCache<BareMetalHost>, clock: Arc<dyn Clock>) -> Self {
        let records = Self::default();
        let follower = records.clone();
        hosts.on(move |change| follower.lock().note(change, clock.monotonic()));
        records
    }

    /// The hosts that name a Secret.
    pub(super) fn hosts_of_secret(&self, secret: &Key) -> Vec<Key> {
        let place = (secret.namespace.clone(), secret.name.clone());
        self.lock()
            .of_secret
            .get(&place)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// The host whose status names a node.
    pub(super) fn host_of_node(&self, node: &str) -> Option<Key> {
        self.lock().of_node.get(node).cloned()
    }

    /// All hosts whose status names a node.
    pub(super) fn registered(&self) -> Vec<Key> {
        self.lock().of_node.values().cloned().collect()
    }

    /// What the view before the present one said of a host.
    pub(super) fn before(&self, host: &Key) -> LastView {
        self.lock().before.get(host).copied().unwrap_or_default()
    }

    /// When a host was first seen in its present state.
    pub(super) fn entered(&self, host: &Key) -> Option<Monotonic> {
        self.lock().entered.get(host).map(|(_, at)| *at)
    }

    /// What Ironic refused last, if the host asks for the same still.
    pub(super) fn refused(&self, host: &Key, generation: Option<i64>) -> Option<Refused> {
        let inner = self.lock();
        let (at, refused) = inner.refused.get(host)?;
        (*at == generation).then(|| refused.clone())
    }

    /// Ironic refused something.
    pub(super) fn refuse(&self, host: &Key, generation: Option<i64>, refused: Refused) {
        self.lock().refused.insert(host.clone(), (generation, refused));
    }

    /// Ironic accepted something.
    pub(super) fn accept(&self, host: &Key) {
        self.lock().refused.remove(host);
    }

    /// What is left of the budget for a host, the place that it took already included.
    pub(super) fn budget(&self, host: &Key, brake: &Brake, now: DateTime<Utc>) -> Budget {
        let mut inner = self.lock();
        inner.prune(&host.namespace, brake, now);
        let own = u32::from(inner.has_place(host, brake, now));
        Budget {
            left: inner.left(&host.namespace, brake, now).saturating_add(own),
            limit: brake.limit,
            period: brake.words,
        }
    }

    /// Takes one from the budget for a host, if there is one. Two passes never take the same.
    pub(super) fn spend(&self, host: &Key, brake: &Brake, now: DateTime<Utc>) -> bool {
        let mut inner = self.lock();
        let is_left = inner.has_place(host, brake, now) || inner.left(&host.namespace, brake, now) > 0;
        if is_left {
            let departures = inner.departures.entry(host.namespace.clone()).or_default();
            departures.insert(host.name.clone(), now);
            inner.taken.insert(host.clone());
        }
        is_left
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A change is noted in steps that each leave something usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn note(&mut self, change: &Change<'_, BareMetalHost>, now: Monotonic) {
        match change {
            Change::Live { old, new, .. } => {
                let key = Key::of(*new);
                if let Some(old) = old.filter(|old| old.metadata.resource_version != new.metadata.resource_version) {
                    let same = old.metadata.uid == new.metadata.uid;
                    let view = if same { view(old) } else { LastView::default() };
                    self.before.insert(key.clone(), view);
                }
                let state = &new.status.provisioning.state;
                if self.entered.get(&key).is_none_or(|(last, _)| last != state) {
                    self.entered.insert(key.clone(), (state.clone(), now));
                }
                if *state == State::Deprovisioning {
                    self.taken.remove(&key);
                }
                self.link(&key, *old, Some(*new));
                self.depart(&key, new);
            }
            Change::Gone { key, old, .. } => {
                self.link(key, *old, None);
                self.before.remove(*key);
                self.entered.remove(*key);
                self.refused.remove(*key);
                self.taken.remove(*key);
            }
            // It stays as it was.
            Change::Unreadable { .. } | Change::Synced => {}
        }
    }

    fn link(&mut self, key: &Key, old: Option<&BareMetalHost>, new: Option<&BareMetalHost>) {
        for name in old.into_iter().flat_map(secrets) {
            let place = (key.namespace.clone(), name.to_owned());
            if let Some(keys) = self.of_secret.get_mut(&place) {
                keys.remove(key);
                if keys.is_empty() {
                    self.of_secret.remove(&place);
                }
            }
        }
        for name in new.into_iter().flat_map(secrets) {
            let place = (key.namespace.clone(), name.to_owned());
            self.of_secret.entry(place).or_default().insert(key.clone());
        }
        let node = |host: &BareMetalHost| Some(host.status.provisioning.id.clone()).filter(|id| !id.is_empty());
        if let Some(id) = old.and_then(node)
            && self.of_node.get(&id) == Some(key)
        {
            self.of_node.remove(&id);
        }
        if let Some(id) = new.and_then(node) {
            self.of_node.insert(id, key.clone());
        }
    }

    fn depart(&mut self, key: &Key, host: &BareMetalHost) {
        let Some(began) = host.status.operation_history.deprovision.start else {
            return;
        };
        // What is left of a failed deployment goes without a word: nobody has counted on it.
        let deployed = host.status.operation_history.provision.end;
        let was_running = deployed.is_none_or(|deployed| deployed.get() < began.get());
        if was_running {
            let departures = self.departures.entry(key.namespace.clone()).or_default();
            let last = departures.entry(key.name.clone()).or_insert_with(|| began.get());
            // One that was taken from the budget shows in the status only later.
            *last = (*last).max(began.get());
        }
    }

    /// Forgets what does not count any more.
    fn prune(&mut self, namespace: &str, brake: &Brake, now: DateTime<Utc>) {
        if let Some(departures) = self.departures.get_mut(namespace) {
            departures.retain(|_, at| now.signed_duration_since(*at) < brake.period);
            if departures.is_empty() {
                self.departures.remove(namespace);
            }
        }
    }

    /// Whether a host took a place that counts still and that it has not used.
    fn has_place(&self, host: &Key, brake: &Brake, now: DateTime<Utc>) -> bool {
        let departures = self.departures.get(&host.namespace);
        let at = departures.and_then(|departures| departures.get(&host.name));
        self.taken.contains(host) && at.is_some_and(|at| now.signed_duration_since(*at) < brake.period)
    }

    fn left(&self, namespace: &str, brake: &Brake, now: DateTime<Utc>) -> u32 {
        let departures = self.departures.get(namespace).into_iter().flat_map(BTreeMap::values);
        let recent = departures
            .filter(|at| now.signed_duration_since(**at) < brake.period)
            .count();
        brake.limit.saturating_sub(u32::try_from(recent).unwrap_or(u32::MAX))
    }
}

fn view(host: &BareMetalHost) -> LastView {
    let annotations = host.metadata.annotations.as_ref();
    LastView {
        paused: annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION)),
        moving: is_moving(host),
    }
}

/// The Secrets that a host names.
pub(super) fn secrets(host: &BareMetalHost) -> impl Iterator<Item = &str> {
    let spec = &host.spec;
    let data = [&spec.user_data, &spec.network_data, &spec.meta_data];
    let named = data
        .into_iter()
        .filter_map(|reference| reference.as_ref()?.name.as_deref());
    let credentials = spec.bmc.as_ref().map(|bmc| bmc.credentials_name.as_str());
    let all = named
        .chain(credentials)
        .chain(spec.preprovisioning_network_data_name.as_deref());
    all.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + 60 * minute, 0).unwrap()
    }

    fn brake() -> Brake {
        Brake {
            limit: 3,
            ..Brake::default()
        }
    }

    fn key(name: &str) -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        }
    }

    /// The cache tells of a host with this history of operations.
    fn told(records: &Records, name: &str, history: &serde_json::Value) {
        let host: BareMetalHost = serde_json::from_value(json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name, "namespace": "metal", "uid": name, "resourceVersion": "1" },
            "spec": { "online": true },
            "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0,
                "provisioningFailCount": 0, "operationHistory": history,
                "provisioning": { "state": "deprovisioning", "ID": "", "image": { "url": "" } } },
        }))
        .unwrap();
        let seen = Monotonic::new(std::time::Duration::ZERO);
        records.lock().note(
            &Change::Live {
                old: None,
                new: &host,
                cured: false,
            },
            seen,
        );
    }

    fn left(records: &Records, minute: i64) -> u32 {
        left_for(records, "z", minute)
    }

    fn left_for(records: &Records, name: &str, minute: i64) -> u32 {
        records.budget(&key(name), &brake(), at(minute)).left
    }

    #[test]
    fn the_last_place_is_kept_for_the_host_that_took_it_until_its_status_shows_it() {
        let records = Records::default();
        for name in ["a", "b", "c"] {
            assert!(records.spend(&key(name), &brake(), at(60)));
        }
        assert_eq!((left_for(&records, "a", 61), left(&records, 61)), (1, 0));
        assert!(records.spend(&key("a"), &brake(), at(61)));
        assert!(!records.spend(&key("z"), &brake(), at(61)));
        told(&records, "a", &json!({ "deprovision": { "start": at(61) } }));
        assert_eq!(left_for(&records, "a", 62), 0);
    }

    #[test]
    fn a_place_that_was_never_used_is_lost_with_its_period() {
        let records = Records::default();
        assert!(records.spend(&key("a"), &brake(), at(0)));
        assert_eq!(left_for(&records, "a", 60), 3);
    }

    #[test]
    fn a_host_that_ran_and_is_torn_down_counts_for_the_period() {
        let records = Records::default();
        told(
            &records,
            "a",
            &json!({ "provision": { "start": at(0), "end": at(5) }, "deprovision": { "start": at(60) } }),
        );
        assert_eq!((left(&records, 61), left(&records, 120)), (2, 3));
    }

    #[test]
    fn a_host_that_was_taken_over_as_it_ran_counts() {
        let records = Records::default();
        told(&records, "a", &json!({ "deprovision": { "start": at(60) } }));
        assert_eq!(left(&records, 61), 2);
    }

    #[test]
    fn what_is_left_of_a_failed_deployment_does_not_count() {
        let records = Records::default();
        let history = json!({ "provision": { "start": at(50), "end": at(60) }, "deprovision": { "start": at(60) } });
        told(&records, "a", &history);
        assert_eq!(left(&records, 61), 3);
    }

    #[test]
    fn what_was_taken_from_the_budget_is_not_forgotten_for_an_older_departure() {
        let records = Records::default();
        assert!(records.spend(&key("a"), &brake(), at(10_000)));
        let history =
            json!({ "provision": { "start": at(0), "end": at(5) }, "deprovision": { "start": at(60), "end": at(70) } });
        told(&records, "a", &history);
        assert_eq!(left(&records, 10_001), 2);
    }
}
