//! The remediations to reconcile after a change of another object.
//!
//! A host that is kept off enqueues a key with the UID of its remediation as name. No remediation has it, so its
//! reconcile compares the hosts of the namespace with the remediations that exist.
//!
//! Each reconcile records which objects it is about to read, so that a change after the read enqueues the key. There
//! are few remediations at a time, so changes of other hosts and machines enqueue nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::pause;
use metal3_runtime::cache::{Change, Index, Key};
use parking_lot::Mutex;

use super::orphans::holders;
use crate::controller::caches::is_cluster_unchanged;

/// An object that a remediation reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    Machine(Key),
    Metal3Machine(Key),
    Host(Key),
    Cluster(Key),
}

/// The objects that remediations read. Clones share the content.
#[derive(Clone, Default)]
pub(super) struct Related(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    objects: BTreeMap<Key, BTreeSet<Object>>,
    remediations: Index<Object>,
}

impl Related {
    /// Records that a remediation reads these objects and no others.
    pub(super) fn set(&self, remediation: &Key, objects: BTreeSet<Object>) {
        let recorded = &mut *self.0.lock();
        let old = recorded.objects.remove(remediation).unwrap_or_default();
        recorded.remediations.replace(remediation, old, objects.iter().cloned());
        if !objects.is_empty() {
            recorded.objects.insert(remediation.clone(), objects);
        }
    }

    fn of(&self, object: Option<Object>) -> Vec<Key> {
        let Some(object) = object else { return Vec::new() };
        self.0.lock().remediations.get(&object).cloned().collect()
    }

    pub(super) fn of_machine(&self, change: &Change<'_, Machine>) -> Vec<Key> {
        let relevant = |one: &Machine| {
            let infrastructure = one.spec.infrastructure_ref.clone();
            (
                one.metadata.deletion_timestamp.clone(),
                infrastructure,
                one.status.node_ref.clone(),
                pause::is_reconcile_skipped(&one.metadata),
            )
        };
        if change.is_same(|old, new| relevant(old) == relevant(new)) {
            return Vec::new();
        }
        self.of(change.key().map(Object::Machine))
    }

    pub(super) fn of_metal3_machine(&self, change: &Change<'_, Metal3Machine>) -> Vec<Key> {
        let relevant = |one: &Metal3Machine| {
            let meta = &one.metadata;
            (
                meta.annotations.clone(),
                meta.labels.clone(),
                meta.deletion_timestamp.clone(),
                one.spec.provider_id.clone(),
            )
        };
        if change.is_same(|old, new| relevant(old) == relevant(new)) {
            return Vec::new();
        }
        self.of(change.key().map(Object::Metal3Machine))
    }

    pub(super) fn of_host(&self, change: &Change<'_, BareMetalHost>) -> Vec<Key> {
        let relevant = |one: &BareMetalHost| {
            let (spec, status) = (&one.spec, &one.status);
            (
                one.metadata.annotations.clone(),
                (spec.online, spec.disable_power_off, spec.consumer_ref.clone()),
                (status.powered_on, status.operational_status),
            )
        };
        if change.is_same(|old, new| relevant(old) == relevant(new)) {
            return Vec::new();
        }
        let mut keys = self.of(change.key().map(Object::Host));
        if let (Some(host), Some(key)) = (change.object(), change.key()) {
            keys.extend(holders(host).map(|uid| key.sibling(uid)));
        }
        keys
    }

    pub(super) fn of_cluster(&self, change: &Change<'_, Cluster>) -> Vec<Key> {
        if change.is_same(is_cluster_unchanged) {
            return Vec::new();
        }
        self.of(change.key().map(Object::Cluster))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn only_the_objects_of_the_last_reconcile_enqueue_a_remediation() {
        let related = Related::default();
        let host = |name| Some(Object::Host(key(name)));
        related.set(
            &key("w-0"),
            BTreeSet::from([Object::Host(key("h0")), Object::Machine(key("h0"))]),
        );
        related.set(&key("w-1"), BTreeSet::from([Object::Host(key("h0"))]));
        assert_eq!(related.of(host("h0")), [key("w-0"), key("w-1")]);
        related.set(&key("w-0"), BTreeSet::from([Object::Host(key("h1"))]));
        assert_eq!(related.of(host("h0")), [key("w-1")]);
        assert_eq!(related.of(host("h1")), [key("w-0")]);
        related.set(&key("w-0"), BTreeSet::new());
        related.set(&key("w-1"), BTreeSet::new());
        assert!(related.of(host("h1")).is_empty() && related.0.lock().objects.is_empty());
        assert!(related.of(None).is_empty());
    }

    #[test]
    fn end_of_a_pause_of_the_machine_and_its_provider_id_enqueue_its_remediation() {
        let related = Related::default();
        let objects = [Object::Machine(key("m")), Object::Metal3Machine(key("m"))];
        related.set(&key("w-0"), BTreeSet::from(objects));
        let named = |annotations: serde_json::Value| serde_json::json!({ "metadata": { "name": "m", "namespace": "metal", "annotations": annotations } });
        let machine = |annotations| -> Machine { serde_json::from_value(named(annotations)).unwrap() };
        let (plain, other) = (
            machine(serde_json::json!({})),
            machine(serde_json::json!({ "other": "" })),
        );
        let paused = machine(serde_json::json!({ "cluster.x-k8s.io/paused": "" }));
        let enqueued = |old, new| {
            let was_unreadable = false;
            related.of_machine(&Change::Applied {
                old: Some(old),
                new,
                was_unreadable,
            })
        };
        assert_eq!(enqueued(&paused, &plain), [key("w-0")]);
        assert_eq!(enqueued(&plain, &paused), [key("w-0")]);
        assert!(enqueued(&plain, &other).is_empty());
        let old: Metal3Machine = serde_json::from_value(named(serde_json::json!({}))).unwrap();
        let mut new = old.clone();
        new.spec.provider_id = Some("metal3://metal/h0/m".to_owned());
        let (old, was_unreadable) = (Some(&old), false);
        let change = Change::Applied {
            old,
            new: &new,
            was_unreadable,
        };
        assert_eq!(related.of_metal3_machine(&change), [key("w-0")]);
    }
}
