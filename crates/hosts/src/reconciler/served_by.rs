//! Which Ironic serves each host, where there are several: the events of one wake its own hosts only.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use parking_lot::Mutex;

use crate::ironics::{Name, Names, Wish, choose};

/// It follows from the cache. Clones share it.
#[derive(Clone, Default)]
pub(super) struct ServedBy(Arc<Mutex<BTreeMap<Key, Option<Name>>>>);

impl ServedBy {
    /// One that follows this cache, if there are several Ironics. Call it before the cache is filled.
    pub(super) fn following(hosts: &SharedCache<BareMetalHost>, names: &Names) -> Self {
        let served_by = Self::default();
        if names.is_one() {
            return served_by;
        }
        let (follower, names) = (served_by.clone(), names.clone());
        hosts.subscribe(move |change| follower.note(change, &names));
        served_by
    }

    fn note(&self, change: &Change<'_, BareMetalHost>, names: &Names) {
        match change {
            Change::Applied { new, .. } => {
                let wish = Wish::of(new);
                let choice = choose(names, &wish, &Observed::Unknown(UnknownReason::NotRead));
                // The list of another one may have the node of a host that records none.
                let ironic = choice.asked().filter(|_| wish.recorded.is_some()).cloned();
                self.0.lock().insert(Key::of(*new), ironic);
            }
            Change::Deleted { key, .. } => drop(self.0.lock().remove(*key)),
            // The cached object stays.
            Change::Unreadable { .. } | Change::Synced => {}
        }
    }

    /// Whether this Ironic serves the host, or may: each wakes a host of which that is not known.
    pub(super) fn is(&self, host: &Key, ironic: &Name) -> bool {
        let served_by = self.0.lock();
        served_by.get(host).is_some_and(|of| may_be(of.as_ref(), ironic))
    }

    /// The hosts that this Ironic serves, or may.
    pub(super) fn hosts_of(&self, ironic: &Name) -> Vec<Key> {
        let served_by = self.0.lock();
        let hosts = served_by.iter().filter(|(_, of)| may_be(of.as_ref(), ironic));
        hosts.map(|(host, _)| host.clone()).collect()
    }
}

fn may_be(of: Option<&Name>, ironic: &Name) -> bool {
    of.is_none_or(|of| of == ironic)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::fixture::Fixture;

    #[test]
    fn host_is_woken_by_the_ironic_that_serves_it_or_by_each_while_that_is_not_known() {
        let (served_by, names) = (ServedBy::default(), Names::one("a").with(["b"]));
        let note = |name: &str, labels: serde_json::Value, recorded: serde_json::Value, state: &str| {
            let fixture = Fixture::new(state).host(json!({
                "metadata": { "name": name, "labels": labels, "annotations": recorded },
            }));
            let host: BareMetalHost = serde_json::from_value(fixture.host).unwrap();
            let change = Change::Applied {
                old: None,
                new: &host,
                was_unreadable: false,
            };
            served_by.note(&change, &names);
        };
        let (label, record) = (
            "baremetalhost.metal3.io/ironic",
            "baremetalhost.metal3.io/registered-in",
        );
        note("new", json!({}), json!({}), "");
        note("of-b", json!({}), json!({ record: "b" }), "");
        note("kept", json!({ label: "b" }), json!({ record: "a" }), "provisioned");
        note("found", json!({}), json!({}), "provisioned");
        note("gone", json!({}), json!({ record: "c" }), "provisioned");
        let of = |name: &str| {
            let hosts = served_by.hosts_of(&Name::from(name));
            hosts.into_iter().map(|key| key.name).collect::<Vec<_>>()
        };
        assert_eq!(of("a"), ["found", "gone", "kept", "new"]);
        assert_eq!(of("b"), ["found", "gone", "new", "of-b"]);
    }
}
