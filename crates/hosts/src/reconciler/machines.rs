//! Which hosts name the same machine: the system behind the same address of a BMC.
//!
//! Two nodes of one machine do not conflict in Ironic: each may boot it and erase its disk. So a node is created, or led to
//! another address, only for a host whose machine no other host has: one that runs something, else one that was registered, else
//! the oldest. A host that the BMC has not verified takes nothing from a host of another namespace; of two that are verified
//! together the second is refused when its registration ends.
//!
//! It follows from the cache, and does not see hosts of other clusters or of namespaces that are not watched.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::metal3::names::{DETACHED_ANNOTATION, PAUSED_ANNOTATION, STATUS_ANNOTATION};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState as State};
use metal3_runtime::cache::{Change, Key, SharedCache};
use parking_lot::Mutex;

use crate::node::bmc::machine;

/// How far a host is: the one that is farthest has the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Something runs on it, or is installed or erased.
    Runs,
    Registered,
    New,
}

/// The order in which hosts get a machine: by stage, those without a node later, then the oldest.
type Rank = (Stage, bool, String, Key);

/// A host that takes a machine.
struct Holder {
    rank: Rank,
    /// Whether the BMC accepted its login.
    is_verified: bool,
}

/// Clones share it.
#[derive(Clone, Default)]
pub(super) struct Machines(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    of_machine: BTreeMap<String, BTreeMap<Key, Holder>>,
}

impl Machines {
    /// Follows this cache. Call it before the cache is filled.
    pub(super) fn following(hosts: &SharedCache<BareMetalHost>) -> Self {
        let machines = Self::default();
        let follower = machines.clone();
        hosts.subscribe(move |change| follower.0.lock().note(change));
        machines
    }

    /// The other host that has the machine of this one. A host whose node has the address already keeps it all the same.
    pub(super) fn other(&self, host: &BareMetalHost) -> Option<Key> {
        let named = machine_of(host)?;
        let own = rank(host);
        let counts =
            |key: &Key, holder: &Holder| *key != own.3 && (key.namespace == own.3.namespace || holder.is_verified);
        let inner = self.0.lock();
        let holders = inner.of_machine.get(&named)?.iter();
        let others = holders.filter(|(key, holder)| counts(key, holder));
        let first = others.map(|(_, holder)| &holder.rank).min()?;
        (*first < own).then(|| first.3.clone())
    }

    /// The hosts that may wait for a machine which this change makes free.
    pub(super) fn waiting(&self, change: &Change<'_, BareMetalHost>) -> Vec<Key> {
        let (old, new) = match change {
            Change::Applied { old, new, .. } => (*old, Some(*new)),
            Change::Deleted { old, .. } => (*old, None),
            Change::Unreadable { .. } | Change::Synced => return Vec::new(),
        };
        // Most changes are of the status: no address is parsed for them.
        if old
            .zip(new)
            .is_some_and(|(old, new)| is_same_machine(old, new) && takes_machine(old) == takes_machine(new))
        {
            return Vec::new();
        }
        let taken = |host: &BareMetalHost| takes_machine(host).then(|| machine_of(host)).flatten();
        let Some(left) = old
            .and_then(taken)
            .filter(|left| new.and_then(taken).as_ref() != Some(left))
        else {
            return Vec::new();
        };
        let inner = self.0.lock();
        let waiting = inner.of_machine.get(&left).into_iter().flatten();
        waiting.map(|(key, _)| key.clone()).collect()
    }
}

fn is_same_machine(old: &BareMetalHost, new: &BareMetalHost) -> bool {
    old.spec.bmc == new.spec.bmc
}

fn machine_of(host: &BareMetalHost) -> Option<String> {
    machine(&host.spec.bmc.as_ref()?.address)
}

/// Whether a status is saved that is not restored yet, after a move.
fn is_saved(host: &BareMetalHost) -> bool {
    host.annotation(STATUS_ANNOTATION).is_some()
}

fn rank(host: &BareMetalHost) -> Rank {
    let stage = match host.status.provisioning.state {
        _ if is_saved(host) => Stage::Runs,
        State::Provisioned | State::ExternallyProvisioned | State::Provisioning | State::Deprovisioning => Stage::Runs,
        State::None | State::Unmanaged | State::Registering => Stage::New,
        _ => Stage::Registered,
    };
    let has_none = host.status.provisioning.id.is_empty();
    let created = host.metadata.creation_timestamp.as_ref();
    let created = created.map(|time| time.0.to_string()).unwrap_or_default();
    (stage, has_none, created, Key::of(host))
}

/// Whether the host has a node, or is about to get one.
fn takes_machine(host: &BareMetalHost) -> bool {
    let waits = [PAUSED_ANNOTATION, DETACHED_ANNOTATION]
        .iter()
        .any(|annotation| host.annotation(annotation).is_some());
    let is_new = !(waits || host.metadata.deletion_timestamp.is_some());
    is_new || is_saved(host) || !host.status.provisioning.id.is_empty()
}

impl Inner {
    fn note(&mut self, change: &Change<'_, BareMetalHost>) {
        match change {
            Change::Applied { old, new, .. } => {
                let machine = machine_of(new);
                if let Some(old) = *old {
                    let before = if is_same_machine(old, new) {
                        machine.clone()
                    } else {
                        machine_of(old)
                    };
                    self.remove(old, before.as_ref());
                }
                if let Some(machine) = machine.filter(|_| takes_machine(new)) {
                    let holder = Holder {
                        rank: rank(new),
                        is_verified: new.status.good_credentials.credentials_version.is_some(),
                    };
                    self.of_machine
                        .entry(machine)
                        .or_default()
                        .insert(Key::of(*new), holder);
                }
            }
            Change::Deleted { old, .. } => {
                if let Some(old) = *old {
                    self.remove(old, machine_of(old).as_ref());
                }
            }
            // The cached object stays.
            Change::Unreadable { .. } | Change::Synced => {}
        }
    }

    fn remove(&mut self, old: &BareMetalHost, machine: Option<&String>) {
        let Some((machine, hosts)) = machine.and_then(|one| Some((one, self.of_machine.get_mut(one)?))) else {
            return;
        };
        hosts.remove(&Key::of(old));
        if hosts.is_empty() {
            self.of_machine.remove(machine);
        }
    }
}

#[cfg(test)]
mod tests {
    use metal3_runtime::version::ResourceVersion;
    use serde_json::{Value, json};

    use super::*;

    const ADDRESS: &str = "redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1";

    fn host(name: &str, created: u32, change: Value) -> BareMetalHost {
        let mut whole = json!({
            "metadata": { "name": name, "namespace": "metal", "uid": name, "resourceVersion": "1",
                "creationTimestamp": format!("2026-01-01T00:00:{created:02}Z") },
            "spec": { "online": true, "bmc": { "address": ADDRESS, "credentialsName": "bmc" } },
        });
        merge(&mut whole, change);
        serde_json::from_value(whole).unwrap()
    }

    fn merge(whole: &mut Value, change: Value) {
        match (whole, change) {
            (Value::Object(whole), Value::Object(change)) => {
                for (name, value) in change {
                    merge(whole.entry(name).or_insert(Value::Null), value);
                }
            }
            (whole, change) => *whole = change,
        }
    }

    fn in_state(state: &str) -> Value {
        json!({ "status": {
            "operationalStatus": "OK", "errorMessage": "", "poweredOn": false,
            "provisioning": { "state": state, "ID": "x", "image": { "url": "" } },
        } })
    }

    #[test]
    fn who_waits_for_a_machine_is_woken_when_it_becomes_free() {
        let cache = SharedCache::default();
        let machines = Machines::following(&cache);
        let woken: Arc<Mutex<Vec<String>>> = Arc::default();
        let found = Arc::clone(&woken);
        cache.subscribe(move |change| {
            found
                .lock()
                .extend(machines.waiting(change).into_iter().map(|key| key.name))
        });
        let changed = |version: &str, change: Value| {
            let mut whole = json!({ "metadata": { "resourceVersion": version } });
            merge(&mut whole, change);
            metal3_runtime::cache::Item::Object(host("a", 1, whole))
        };
        let waiting = metal3_runtime::cache::Item::Object(host("b", 2, json!({})));
        let listed = vec![changed("1", json!({})), waiting];
        cache.listed(listed, ResourceVersion::parse("1").unwrap()).unwrap();
        cache
            .observed(changed("2", json!({ "spec": { "online": false } })))
            .unwrap();
        assert_eq!(*woken.lock(), Vec::<String>::new());
        let moved = json!({ "spec": { "bmc": { "address": "ipmi://192.0.2.9" } } });
        cache.observed(changed("3", moved)).unwrap();
        assert_eq!(*woken.lock(), ["b"]);
    }

    fn other(known: &[BareMetalHost], of: &BareMetalHost) -> Option<String> {
        let cache = SharedCache::default();
        let machines = Machines::following(&cache);
        let items = known.iter().cloned().map(metal3_runtime::cache::Item::Object);
        cache
            .listed(items.collect(), ResourceVersion::parse("9").unwrap())
            .unwrap();
        machines.other(of).map(|key| key.name)
    }

    #[test]
    fn machine_is_that_of_the_host_with_a_node_then_of_the_oldest() {
        let (first, second) = (host("b", 1, json!({})), host("a", 2, json!({})));
        assert_eq!(other(&[first.clone(), second.clone()], &second).as_deref(), Some("b"));
        assert_eq!(other(&[first.clone(), second.clone()], &first), None);
        let registered = host("a", 2, in_state("inspecting"));
        assert_eq!(
            other(&[first.clone(), registered.clone()], &first).as_deref(),
            Some("a")
        );
        assert_eq!(other(&[first, registered.clone()], &registered), None);
        // The ID of a node outlives the node.
        let ready = host("c", 9, in_state("available"));
        let registering = host("a", 2, in_state("registering"));
        assert_eq!(other(&[ready, registering.clone()], &registering).as_deref(), Some("c"));
        let runs = host("b", 9, in_state("provisioned"));
        assert_eq!(
            other(&[runs.clone(), registered.clone()], &registered).as_deref(),
            Some("b")
        );
        assert_eq!(other(&[runs.clone(), registered], &runs), None);
    }

    #[test]
    fn unverified_host_takes_no_machine_of_another_namespace() {
        let elsewhere = |change: Value| {
            let mut whole = json!({ "metadata": { "namespace": "other" } });
            merge(&mut whole, change);
            host("a", 1, whole)
        };
        let own = host("b", 2, json!({}));
        assert_eq!(other(&[elsewhere(json!({})), own.clone()], &own), None);
        let mut verified = in_state("available");
        merge(
            &mut verified,
            json!({ "status": { "goodCredentials": { "credentialsVersion": "7" } } }),
        );
        assert_eq!(other(&[elsewhere(verified), own.clone()], &own).as_deref(), Some("a"));
    }

    #[test]
    fn hosts_that_take_no_machine_keep_none_from_another() {
        let second = host("z", 9, json!({}));
        for change in [
            json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: "" } } }),
            json!({ "metadata": { "annotations": { DETACHED_ANNOTATION: "" } } }),
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"] } }),
            json!({ "spec": { "bmc": { "address": "redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/2" } } }),
            json!({ "spec": { "bmc": { "address": "" } } }),
            json!({ "spec": { "bmc": { "address": "ipmi://192.0.2.1" } } }),
        ] {
            assert_eq!(
                other(&[host("a", 1, change.clone()), second.clone()], &second),
                None,
                "{change}"
            );
        }
        // It is about to be restored, after a move.
        let saved = json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: "", STATUS_ANNOTATION: "{}" } } });
        assert_eq!(
            other(&[host("zz", 9, saved), second.clone()], &second).as_deref(),
            Some("zz")
        );
        // The same system by another way to it.
        let same = json!({ "spec": { "bmc": { "address": "redfish://192.0.2.1:443/redfish/v1/Systems/1/" } } });
        assert_eq!(
            other(&[host("a", 1, same), second.clone()], &second).as_deref(),
            Some("a")
        );
    }
}
