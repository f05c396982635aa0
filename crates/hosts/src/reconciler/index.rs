//! In-memory index of hosts: by Secret and by node, the previous version and the state entry of each host, recent
//! deprovisioning, and requested power states.
//!
//! Except for the latter all of it follows from the cache; a process without them takes an error of the node for an old
//! one.

mod accounts;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState as State};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::PowerState;
use metal3_runtime::cache::{Change, Key, SharedCache};
use parking_lot::Mutex;

use super::budget::{Budgets, DeprovisionBudget};
use crate::facts::{Budget, NodeMark, PreviousView, Read, RequestedReboot};
use crate::plan::object::is_moving;
use crate::plan::outage::is_in_progress;

/// The time of an observation.
#[derive(Debug, Clone, Copy)]
struct ObservationTime {
    wall: DateTime<Utc>,
    monotonic: Monotonic,
}

/// Clones share the index.
#[derive(Clone, Default)]
pub(super) struct HostIndex(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    of_secret: BTreeMap<(String, String), BTreeSet<Key>>,
    /// More than one when a user copied the status of another host.
    of_node: BTreeMap<String, BTreeSet<Key>>,
    previous: BTreeMap<Key, PreviousView>,
    /// The state of a host, and when this process first observed it.
    entered: BTreeMap<Key, (State, Monotonic)>,
    /// Hosts in a state that they entered before this process led, or that it did not see them enter.
    began_elsewhere: BTreeSet<Key>,
    /// Hosts that another process may have registered: it records that before it creates the node.
    registered_elsewhere: BTreeSet<Key>,
    /// When this process first observed the deletion of a host.
    deleted: BTreeMap<Key, Monotonic>,
    /// The start of the last deprovisioning by account and host. A deleted host still counts.
    deprovisioned: BTreeMap<String, BTreeMap<String, DateTime<Utc>>>,
    /// Who pays for a host: without an entry its namespace, else that with the one of the HostClaim, so that a tenant spends no
    /// other tenant's budget. It stays while a deprovisioning counts.
    accounts: BTreeMap<Key, String>,
    /// Hosts with a reservation that their status does not show yet: its write may have failed.
    reserved: BTreeSet<Key>,
    /// The power state that was requested last, on or off, until a node shows it.
    requested_power: BTreeMap<Key, bool>,
    /// Hosts whose running machine this process requested to be rebooted, until that ends.
    requested_reboot: BTreeMap<Key, (NodeUuid, RequestedReboot)>,
}

const fn is_registered(state: &State) -> bool {
    !matches!(state, State::None | State::Unmanaged)
}

impl HostIndex {
    /// An index that follows this cache. Call it before the cache is filled.
    pub(super) fn following(hosts: &SharedCache<BareMetalHost>, clock: Arc<dyn Clock>) -> Self {
        let index = Self::default();
        let follower = index.clone();
        hosts.subscribe(move |change| {
            let now = ObservationTime {
                wall: clock.now(),
                monotonic: clock.monotonic(),
            };
            follower.0.lock().note(change, now);
        });
        index
    }

    /// The hosts that name a Secret, if a change is of one.
    pub(super) fn hosts_of(&self, secret: Option<Key>) -> Vec<Key> {
        secret.map_or_else(Vec::new, |secret| self.hosts_of_secret(&secret))
    }

    pub(super) fn hosts_of_secret(&self, secret: &Key) -> Vec<Key> {
        let secret = (secret.namespace.clone(), secret.name.clone());
        self.0
            .lock()
            .of_secret
            .get(&secret)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    pub(super) fn hosts_of_node(&self, node: &str) -> Vec<Key> {
        self.0.lock().of_node.get(node).into_iter().flatten().cloned().collect()
    }

    pub(super) fn registered(&self) -> Vec<Key> {
        self.0.lock().of_node.values().flatten().cloned().collect()
    }

    /// Hosts with an operation in progress.
    pub(super) fn in_progress(&self) -> Vec<Key> {
        let inner = self.0.lock();
        let entered = inner.entered.iter().filter(|(_, (state, _))| is_in_progress(state));
        entered.map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn previous(&self, host: &Key) -> PreviousView {
        self.0.lock().previous.get(host).copied().unwrap_or_default()
    }

    /// When this process first observed the host in its present state.
    pub(super) fn entered(&self, host: &Key) -> Option<Monotonic> {
        self.0.lock().entered.get(host).map(|(_, at)| *at)
    }

    /// The host enters a state.
    #[cfg(test)]
    pub(super) fn enter(&self, host: &Key, at: Monotonic) {
        self.0.lock().entered.insert(host.clone(), (State::Available, at));
    }

    /// This process begins to lead: what was observed until now was done by another one.
    pub(super) fn lead(&self) {
        let mut inner = self.0.lock();
        let all: BTreeSet<Key> = inner.entered.keys().cloned().collect();
        inner.began_elsewhere.extend(all);
        let registered = inner.entered.iter().filter(|(_, (state, _))| is_registered(state));
        let registered: BTreeSet<Key> = registered.map(|(key, _)| key.clone()).collect();
        inner.registered_elsewhere.extend(registered);
    }

    /// Whether another process may have created the node of the host.
    pub(super) fn registered_elsewhere(&self, host: &Key) -> bool {
        self.0.lock().registered_elsewhere.contains(host)
    }

    /// Whether another process may have begun with what the host's present state stands for.
    pub(super) fn began_elsewhere(&self, host: &Key) -> bool {
        self.0.lock().began_elsewhere.contains(host)
    }

    /// When this process first observed the deletion of the host.
    pub(super) fn deleted(&self, host: &Key) -> Option<Monotonic> {
        self.0.lock().deleted.get(host).copied()
    }

    pub(super) fn request_power(&self, host: &Key, on: bool) {
        self.0.lock().requested_power.insert(host.clone(), on);
    }

    pub(super) fn request_reboot(&self, host: &Key, node: NodeUuid, reboot: RequestedReboot) {
        self.0.lock().requested_reboot.insert(host.clone(), (node, reboot));
    }

    /// The reboot that this process requested of this node. The request to an earlier node of the host is over.
    pub(super) fn requested_reboot(&self, host: &Key, node: Option<&Node>) -> Option<RequestedReboot> {
        let mut inner = self.0.lock();
        let (of, reboot) = inner.requested_reboot.get(host).cloned()?;
        if node.is_some_and(|node| node.uuid != of) {
            inner.requested_reboot.remove(host);
            return None;
        }
        Some(reboot)
    }

    /// This process changed the node itself: that is no sign that a reboot without a response was accepted.
    pub(super) fn renew_reboot_mark(&self, host: &Key, before: &Node, after: &Node) {
        if let Some((_, RequestedReboot::Unanswered(mark))) = self.0.lock().requested_reboot.get_mut(host)
            && *mark == NodeMark::of(before)
        {
            *mark = NodeMark::of(after);
        }
    }

    pub(super) fn end_reboot(&self, host: &Key) {
        self.0.lock().requested_reboot.remove(host);
    }

    pub(super) fn end_power_request(&self, host: &Key) {
        let mut inner = self.0.lock();
        inner.requested_power.remove(host);
        inner.requested_reboot.remove(host);
    }

    /// The power state that this process requested last, unless this node shows it.
    pub(super) fn requested_power(&self, host: &Key, node: Option<&Node>) -> Option<bool> {
        let mut inner = self.0.lock();
        let on = inner.requested_power.get(host).copied()?;
        let requested = if on { PowerState::On } else { PowerState::Off };
        if node.is_some_and(|node| node.power_state == Some(requested)) {
            inner.requested_power.remove(host);
            return None;
        }
        Some(on)
    }

    /// The remaining budget for a host, including its own reservation.
    pub(super) fn budget(&self, host: &Key, budget: &DeprovisionBudget, now: DateTime<Utc>) -> Budget {
        let mut inner = self.0.lock();
        let account = inner.account(host);
        inner.prune(&account, budget, now);
        let own = u32::from(inner.has_reservation(host, budget, now));
        Budget {
            left: inner.left(&account, budget, now).saturating_add(own),
            limit: budget.limit,
            period: budget.period_name,
        }
    }

    /// What is left of the budget in all namespaces.
    pub(super) fn budgets(&self, budget: &DeprovisionBudget, now: DateTime<Utc>) -> Budgets {
        let inner = self.0.lock();
        let recent = |namespace: &String| inner.recent(namespace, budget, now);
        let spent = inner.deprovisioned.keys().filter(|account| recent(account) > 0);
        Budgets::of(budget, spent.map(|account| inner.left(account, budget, now)))
    }

    /// Reserves one unit of the budget for a host, if one is left. Two reconciles never get the same unit.
    pub(super) fn reserve(&self, host: &Key, budget: &DeprovisionBudget, now: DateTime<Utc>) -> bool {
        let mut inner = self.0.lock();
        let account = inner.account(host);
        let is_left = inner.has_reservation(host, budget, now) || inner.left(&account, budget, now) > 0;
        if is_left {
            let deprovisioned = inner.deprovisioned.entry(account).or_default();
            deprovisioned.insert(host.name.clone(), now);
            inner.reserved.insert(host.clone());
        }
        is_left
    }
}

impl Inner {
    fn note(&mut self, change: &Change<'_, BareMetalHost>, now: ObservationTime) {
        match change {
            Change::Applied { old, new, .. } => {
                let key = Key::of(*new);
                if let Some(old) = old.filter(|old| old.metadata.resource_version != new.metadata.resource_version) {
                    let same = old.metadata.uid == new.metadata.uid;
                    let view = if same {
                        previous_view(old)
                    } else {
                        PreviousView::default()
                    };
                    self.previous.insert(key.clone(), view);
                }
                let state = &new.status.provisioning.state;
                if self.entered.get(&key).is_none_or(|(last, _)| last != state) {
                    let last = self.entered.insert(key.clone(), (state.clone(), now.monotonic));
                    if last.is_none() && is_registered(state) {
                        self.registered_elsewhere.insert(key.clone());
                    }
                    // A new host is registered first; a restored one has the state of another process.
                    let is_new = matches!(state, State::Registering | State::Unmanaged | State::Deleting);
                    match last {
                        Some((State::None, _)) if !is_new => self.began_elsewhere.insert(key.clone()),
                        None => self.began_elsewhere.insert(key.clone()),
                        Some(_) => self.began_elsewhere.remove(&key),
                    };
                }
                if new.metadata.deletion_timestamp.is_some() {
                    self.deleted.entry(key.clone()).or_insert(now.monotonic);
                } else {
                    self.deleted.remove(&key);
                }
                if *state == State::Deprovisioning {
                    self.reserved.remove(&key);
                }
                self.link(&key, *old, Some(*new));
                self.open_account(&key, new);
                self.record_deprovisioning(&key, new, now.wall);
            }
            Change::Deleted { key, old, .. } => {
                self.link(key, *old, None);
                self.previous.remove(*key);
                self.entered.remove(*key);
                self.began_elsewhere.remove(*key);
                self.registered_elsewhere.remove(*key);
                self.deleted.remove(*key);
                self.requested_power.remove(*key);
                self.requested_reboot.remove(*key);
                self.reserved.remove(*key);
                self.accounts.remove(*key);
            }
            // The cached object stays.
            Change::Unreadable { .. } | Change::Synced => {}
        }
    }

    fn link(&mut self, key: &Key, old: Option<&BareMetalHost>, new: Option<&BareMetalHost>) {
        for name in old.into_iter().flat_map(secret_names) {
            let secret = (key.namespace.clone(), name.to_owned());
            if let Some(keys) = self.of_secret.get_mut(&secret) {
                keys.remove(key);
                if keys.is_empty() {
                    self.of_secret.remove(&secret);
                }
            }
        }
        for name in new.into_iter().flat_map(secret_names) {
            let secret = (key.namespace.clone(), name.to_owned());
            self.of_secret.entry(secret).or_default().insert(key.clone());
        }
        let node = |host: &BareMetalHost| Some(host.status.provisioning.id.clone()).filter(|id| !id.is_empty());
        if let Some(id) = old.and_then(node)
            && let Some(keys) = self.of_node.get_mut(&id)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.of_node.remove(&id);
            }
        }
        if let Some(id) = new.and_then(node) {
            self.of_node.entry(id).or_default().insert(key.clone());
        }
    }
}

fn previous_view(host: &BareMetalHost) -> PreviousView {
    PreviousView {
        paused: host.is_paused(),
        moving: is_moving(host),
    }
}

fn secret_names(host: &BareMetalHost) -> impl Iterator<Item = &str> {
    Read::SECRETS
        .into_iter()
        .filter_map(move |which| which.secret_name(host))
}

/// A stable number per host, the same in every process.
pub(super) fn jitter(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + 60 * minute, 0).unwrap()
    }

    fn budget() -> DeprovisionBudget {
        DeprovisionBudget {
            limit: 3,
            ..DeprovisionBudget::default()
        }
    }

    fn key(name: &str) -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        }
    }

    /// Applies a cache change of a host with these operations.
    fn observe(index: &HostIndex, name: &str, history: &serde_json::Value) {
        let host: BareMetalHost = serde_json::from_value(json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name, "namespace": "metal", "uid": name, "resourceVersion": "1" },
            "spec": { "online": true },
            "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0,
                "provisioningFailCount": 0, "operationHistory": history,
                "provisioning": { "state": "deprovisioning", "ID": "", "image": { "url": "" } } },
        }))
        .unwrap();
        let observed = ObservationTime {
            wall: at(60),
            monotonic: Monotonic::new(std::time::Duration::ZERO),
        };
        index.0.lock().note(
            &Change::Applied {
                old: None,
                new: &host,
                was_unreadable: false,
            },
            observed,
        );
    }

    fn left(index: &HostIndex, minute: i64) -> u32 {
        left_for(index, "z", minute)
    }

    fn left_for(index: &HostIndex, name: &str, minute: i64) -> u32 {
        index.budget(&key(name), &budget(), at(minute)).left
    }

    #[test]
    fn restored_state_was_begun_by_another() {
        let observe = |index: &HostIndex, version: &str, state: &str| {
            let host: BareMetalHost = serde_json::from_value(json!({
                "metadata": { "name": "h", "namespace": "metal", "uid": "h", "resourceVersion": version },
                "spec": { "online": true }, "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": true,
                    "errorCount": 0, "provisioning": { "state": state, "ID": "", "image": { "url": "" } } },
            }))
            .unwrap();
            let change = Change::Applied {
                old: None,
                new: &host,
                was_unreadable: false,
            };
            let monotonic = Monotonic::new(std::time::Duration::ZERO);
            index.0.lock().note(
                &change,
                ObservationTime {
                    wall: at(60),
                    monotonic,
                },
            );
        };
        for (state, elsewhere) in [("registering", false), ("preparing", true), ("deprovisioning", true)] {
            let index = HostIndex::default();
            observe(&index, "1", "");
            observe(&index, "2", state);
            assert_eq!(index.began_elsewhere(&key("h")), elsewhere, "{state}");
            observe(&index, "3", "available");
            assert!(!index.began_elsewhere(&key("h")), "{state}");
        }
    }

    #[test]
    fn last_unit_stays_reserved_until_the_status_shows_it() {
        let index = HostIndex::default();
        for name in ["a", "b", "c"] {
            assert!(index.reserve(&key(name), &budget(), at(60)));
        }
        assert_eq!((left_for(&index, "a", 61), left(&index, 61)), (1, 0));
        assert!(index.reserve(&key("a"), &budget(), at(61)));
        assert!(!index.reserve(&key("z"), &budget(), at(61)));
        observe(&index, "a", &json!({ "deprovision": { "start": at(61) } }));
        assert_eq!(left_for(&index, "a", 62), 0);
    }

    #[test]
    fn claims_of_a_namespace_spend_a_budget_of_their_own() {
        let index = HostIndex::default();
        let bind = |name: &str, tenant: Option<&str>| {
            let record = |tenant| json!({ "claim": format!("{tenant}/c"), "cleaning": "metadata", "at": "2026-01-01T00:00:00Z" });
            let consumer = |tenant| json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": tenant });
            let annotations = tenant.map(|tenant| json!({ "hostclaim.metal3.io/bond": record(tenant).to_string() }));
            let host: BareMetalHost = serde_json::from_value(json!({
                "metadata": { "name": name, "namespace": "metal", "uid": name, "annotations": annotations },
                "spec": { "online": true, "consumerRef": tenant.map(consumer) },
            }))
            .unwrap();
            index.0.lock().open_account(&key(name), &host);
        };
        for name in ["a", "b", "c"] {
            bind(name, Some("loud"));
            assert!(index.reserve(&key(name), &budget(), at(60)));
        }
        bind("d", Some("loud"));
        bind("e", Some("quiet"));
        assert_eq!(["d", "e", "z"].map(|name| left_for(&index, name, 61)), [0, 3, 3]);
        bind("a", None);
        assert_eq!(
            left(&index, 61),
            3,
            "a host that was released stays in the account that paid"
        );
    }

    #[test]
    fn claims_of_many_namespaces_together_do_not_erase_a_namespace_of_hosts() {
        let index = HostIndex::default();
        let mut erased = 0;
        for number in 0..50 {
            let (name, tenant) = (format!("h{number}"), format!("tenant-{number}"));
            let record =
                json!({ "claim": format!("{tenant}/c"), "cleaning": "metadata", "at": "2026-01-01T00:00:00Z" });
            let consumer =
                json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": tenant });
            let annotations = json!({ "hostclaim.metal3.io/bond": record.to_string() });
            let host: BareMetalHost = serde_json::from_value(json!({
                "metadata": { "name": name, "namespace": "metal", "uid": name, "annotations": annotations },
                "spec": { "online": true, "consumerRef": consumer },
            }))
            .unwrap();
            index.0.lock().open_account(&key(&name), &host);
            erased += u32::from(index.reserve(&key(&name), &budget(), at(60)));
        }
        assert_eq!(erased, 2 * budget().limit);
        assert_eq!(left(&index, 61), budget().limit, "machines have their own");
    }

    #[test]
    fn claim_pays_for_no_deprovisioning_of_the_one_that_had_its_host_before() {
        let observe = |index: &HostIndex, consumer: Option<(&str, &str)>, bound: DateTime<Utc>| {
            let tenant = consumer.map(|(_, tenant)| tenant).unwrap_or_default();
            let record = json!({ "claim": format!("{tenant}/c"), "cleaning": "metadata", "at": bound }).to_string();
            let annotations = consumer.filter(|(kind, _)| *kind == "HostClaim");
            let annotations = annotations.map(|_| json!({ "hostclaim.metal3.io/bond": record }));
            let consumer = consumer.map(|(kind, tenant)| {
                json!({ "kind": kind, "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": tenant })
            });
            let host: BareMetalHost = serde_json::from_value(json!({
                "metadata": { "name": "a", "namespace": "metal", "uid": "a", "annotations": annotations },
                "spec": { "online": true, "consumerRef": consumer },
                "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0,
                    "provisioning": { "state": "available", "ID": "", "image": { "url": "" } },
                    "operationHistory": { "deprovision": { "start": at(60) } } },
            }))
            .unwrap();
            let mut inner = index.0.lock();
            inner.open_account(&key("a"), &host);
            inner.record_deprovisioning(&key("a"), &host, at(60));
        };
        let spent = |index: &HostIndex, account: &str| {
            let inner = index.0.lock();
            inner.recent(account, &budget(), at(61))
        };
        let index = HostIndex::default();
        observe(&index, Some(("HostClaim", "loud")), at(0));
        observe(&index, None, at(0));
        observe(&index, Some(("HostClaim", "quiet")), at(61));
        observe(&index, Some(("Metal3Machine", "metal")), at(61));
        let accounts = ["metal/loud", "metal/quiet", "metal"];
        assert_eq!(accounts.map(|account| spent(&index, account)), [1, 0, 0]);
        assert_eq!(
            index.0.lock().account(&key("a")),
            "metal",
            "the machine pays from now on"
        );
        let restarted = HostIndex::default();
        observe(&restarted, Some(("HostClaim", "quiet")), at(61));
        assert_eq!(accounts.map(|account| spent(&restarted, account)), [0, 0, 1]);
    }

    #[test]
    fn budgets_of_all_namespaces_are_summarized() {
        let index = HostIndex::default();
        let summary = |minute| {
            let Budgets { least, spent } = index.budgets(&budget(), at(minute));
            (least, spent)
        };
        assert_eq!(summary(60), (3, 0));
        let other = Key {
            namespace: "other".to_owned(),
            name: "a".to_owned(),
        };
        assert!(index.reserve(&other, &budget(), at(60)));
        assert_eq!(summary(61), (2, 0));
        for name in ["a", "b", "c"] {
            assert!(index.reserve(&key(name), &budget(), at(60)));
        }
        assert_eq!(summary(61), (0, 1));
        assert_eq!(summary(121), (3, 0), "an hour later");
    }

    /// A standby prunes nothing.
    #[test]
    fn budget_of_zero_is_not_spent_by_a_deprovisioning_of_last_year() {
        let index = HostIndex::default();
        observe(&index, "a", &json!({ "deprovision": { "start": at(0) } }));
        let none = DeprovisionBudget { limit: 0, ..budget() };
        assert_eq!(index.budgets(&none, at(59)), Budgets { least: 0, spent: 1 });
        assert_eq!(index.budgets(&none, at(60)), Budgets { least: 0, spent: 0 });
    }

    #[test]
    fn unused_reservation_expires_with_its_period() {
        let index = HostIndex::default();
        assert!(index.reserve(&key("a"), &budget(), at(0)));
        assert_eq!(left_for(&index, "a", 60), 3);
    }

    #[test]
    fn deprovisioned_running_host_counts_for_the_period() {
        let index = HostIndex::default();
        observe(
            &index,
            "a",
            &json!({ "provision": { "start": at(0), "end": at(5) }, "deprovision": { "start": at(60) } }),
        );
        assert_eq!((left(&index, 61), left(&index, 120)), (2, 3));
    }

    #[test]
    fn deprovisioning_recorded_by_a_clock_that_was_ahead_does_not_count() {
        const YEAR: i64 = 365 * 24 * 60;
        let index = HostIndex::default();
        for name in ["a", "b", "c"] {
            observe(&index, name, &json!({ "deprovision": { "start": at(60 + YEAR) } }));
        }
        assert_eq!(left(&index, 61), 3);
        assert!(index.reserve(&key("z"), &budget(), at(61 + YEAR)));
        assert_eq!(
            left(&index, 62),
            3,
            "the own clock was ahead before a restart of the machine"
        );
        observe(&index, "a", &json!({ "deprovision": { "start": at(60) } }));
        assert_eq!(left(&index, 61), 2);
    }

    #[test]
    fn deprovisioned_adopted_host_counts() {
        let index = HostIndex::default();
        observe(&index, "a", &json!({ "deprovision": { "start": at(60) } }));
        assert_eq!(left(&index, 61), 2);
    }

    #[test]
    fn removal_of_a_failed_deployment_does_not_count() {
        let index = HostIndex::default();
        let history = json!({ "provision": { "start": at(50), "end": at(60) }, "deprovision": { "start": at(60) } });
        observe(&index, "a", &history);
        assert_eq!(left(&index, 61), 3);
    }

    #[test]
    fn reservation_is_not_replaced_by_an_older_deprovisioning() {
        let index = HostIndex::default();
        assert!(index.reserve(&key("a"), &budget(), at(10_000)));
        let history =
            json!({ "provision": { "start": at(0), "end": at(5) }, "deprovision": { "start": at(60), "end": at(70) } });
        observe(&index, "a", &history);
        assert_eq!(left(&index, 10_001), 2);
    }

    /// It watches while another process leads.
    #[test]
    fn what_a_process_saw_before_it_led_was_begun_by_another() {
        let (index, host) = (HostIndex::default(), key("h"));
        observe(&index, "h", &json!({}));
        assert!(index.began_elsewhere(&host));
        index.0.lock().began_elsewhere.clear();
        index.0.lock().registered_elsewhere.clear();
        index.lead();
        assert!(index.began_elsewhere(&host) && index.registered_elsewhere(&host));
        index.enter(&host, Monotonic::default());
        observe(&index, "h", &json!({}));
        assert!(!index.began_elsewhere(&host));
    }
}
