//! What this process remembers of hosts beside the hubs: which Secret and which node concerns which host, what a host
//! was before it was what it is, which were torn down of late, and what Ironic refused.
//!
//! All of it follows from what the hubs told, but for the refusals, and a process that starts without them asks once
//! more. It decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use metal3_api::metal3::names::PAUSED_ANNOTATION;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::hub::{Change, Key, SharedHub};

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
    /// When the last tear-down of a host began, by namespace. A host that is gone still counts.
    departures: BTreeMap<String, BTreeMap<String, DateTime<Utc>>>,
    refused: BTreeMap<Key, (Option<i64>, Refused)>,
}

impl Records {
    /// Records that follow this hub. To be called before it is filled.
    pub(super) fn following(hosts: &SharedHub<BareMetalHost>) -> Self {
        let records = Self::default();
        let follower = records.clone();
        hosts.on(move |change| follower.lock().note(change));
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

    /// What is left of the budget of a namespace.
    pub(super) fn budget(&self, namespace: &str, brake: &Brake, now: DateTime<Utc>) -> Budget {
        let inner = self.lock();
        Budget {
            left: inner.left(namespace, brake, now),
            limit: brake.limit,
            period: brake.words,
        }
    }

    /// Takes one from the budget for a host, if there is one. Two passes never take the same.
    pub(super) fn spend(&self, host: &Key, brake: &Brake, now: DateTime<Utc>) -> bool {
        let mut inner = self.lock();
        let is_left = inner.left(&host.namespace, brake, now) > 0;
        if is_left {
            let departures = inner.departures.entry(host.namespace.clone()).or_default();
            departures.retain(|_, at| now.signed_duration_since(*at) < brake.period);
            departures.insert(host.name.clone(), now);
        }
        is_left
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A change is noted in steps that each leave something usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn note(&mut self, change: &Change<'_, BareMetalHost>) {
        match change {
            Change::Live { old, new, .. } => {
                let key = Key::of(*new);
                if let Some(old) = old.filter(|old| old.metadata.resource_version != new.metadata.resource_version) {
                    let same = old.metadata.uid == new.metadata.uid;
                    let view = if same { view(old) } else { LastView::default() };
                    self.before.insert(key.clone(), view);
                }
                self.link(&key, *old, Some(*new));
                self.depart(&key, new);
            }
            Change::Gone { key, old, .. } => {
                self.link(key, *old, None);
                self.before.remove(*key);
                self.refused.remove(*key);
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
        if let Some(began) = host.status.operation_history.deprovision.start {
            let departures = self.departures.entry(key.namespace.clone()).or_default();
            departures.insert(key.name.clone(), began.get());
        }
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
