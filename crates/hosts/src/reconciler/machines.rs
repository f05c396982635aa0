//! Which hosts name the same machine: the system behind the same address of a BMC.
//!
//! Two nodes of one machine do not conflict in Ironic: each may boot it and erase its disk. So a node is created only for a
//! host whose machine no other host has. Of several hosts that have none yet, the oldest gets it.
//!
//! It follows from the cache, and does not see hosts of other clusters or of namespaces that are not watched.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::metal3::names::{DETACHED_ANNOTATION, PAUSED_ANNOTATION};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Change, Key, SharedCache};
use parking_lot::Mutex;

use crate::node::bmc::machine;

/// The order in which hosts get a machine: those with a node, then the oldest.
type Rank = (bool, String, Key);

/// Clones share it.
#[derive(Clone, Default)]
pub(super) struct Machines(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    of_machine: BTreeMap<String, BTreeMap<Key, Rank>>,
}

impl Machines {
    /// Follows this cache. Call it before the cache is filled.
    pub(super) fn following(hosts: &SharedCache<BareMetalHost>) -> Self {
        let machines = Self::default();
        let follower = machines.clone();
        hosts.subscribe(move |change| follower.0.lock().note(change));
        machines
    }

    /// The other host that has the machine of this one, if this one has no node yet.
    pub(super) fn other(&self, host: &BareMetalHost) -> Option<Key> {
        if !host.status.provisioning.id.is_empty() {
            return None;
        }
        let named = machine(host.spec.bmc.as_ref()?.address.as_str())?;
        let own = rank(host);
        let inner = self.0.lock();
        let others = inner.of_machine.get(&named)?.iter().filter(|(key, _)| **key != own.2);
        let first = others.map(|(_, rank)| rank).min()?;
        (*first < own).then(|| first.2.clone())
    }
}

fn rank(host: &BareMetalHost) -> Rank {
    let has_none = host.status.provisioning.id.is_empty();
    let created = host.metadata.creation_timestamp.as_ref();
    let created = created.map(|time| time.0.to_string()).unwrap_or_default();
    (has_none, created, Key::of(host))
}

/// Whether the host has a node, or is about to get one.
fn takes_machine(host: &BareMetalHost) -> bool {
    let waits = [PAUSED_ANNOTATION, DETACHED_ANNOTATION]
        .iter()
        .any(|annotation| host.annotation(annotation).is_some());
    !host.status.provisioning.id.is_empty() || !(waits || host.metadata.deletion_timestamp.is_some())
}

impl Inner {
    fn note(&mut self, change: &Change<'_, BareMetalHost>) {
        match change {
            Change::Applied { old, new, .. } => {
                self.remove(*old);
                let address = new.spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
                if let Some(machine) = machine(address).filter(|_| takes_machine(new)) {
                    let rank = rank(new);
                    self.of_machine.entry(machine).or_default().insert(rank.2.clone(), rank);
                }
            }
            Change::Deleted { old, .. } => self.remove(*old),
            // The cached object stays.
            Change::Unreadable { .. } | Change::Synced => {}
        }
    }

    fn remove(&mut self, old: Option<&BareMetalHost>) {
        let Some((old, machine)) = old.and_then(|old| Some((old, machine(old.spec.bmc.as_ref()?.address.as_str())?)))
        else {
            return;
        };
        if let Some(hosts) = self.of_machine.get_mut(&machine) {
            hosts.remove(&Key::of(old));
            if hosts.is_empty() {
                self.of_machine.remove(&machine);
            }
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

    fn registered() -> Value {
        json!({ "status": {
            "operationalStatus": "OK", "errorMessage": "", "poweredOn": false,
            "provisioning": { "state": "inspecting", "ID": "x", "image": { "url": "" } },
        } })
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
        let registered = host("a", 2, registered());
        assert_eq!(
            other(&[first.clone(), registered.clone()], &first).as_deref(),
            Some("a")
        );
        assert_eq!(other(&[first, registered.clone()], &registered), None);
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
        // The same system by another way to it.
        let same = json!({ "spec": { "bmc": { "address": "redfish://192.0.2.1:443/redfish/v1/Systems/1" } } });
        assert_eq!(
            other(&[host("a", 1, same), second.clone()], &second).as_deref(),
            Some("a")
        );
    }
}
