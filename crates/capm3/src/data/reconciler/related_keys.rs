//! Indexes between objects: the keys that a change enqueues, and lookups of a reconcile.
//!
//! They are updated in the critical section of each cache, before any key is queued, and never lock a cache, which
//! avoids deadlocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_core::Resource;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{
    Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine, Metal3ObjectRef,
};
use metal3_capi::owner::{self, cluster_of};
use metal3_runtime::cache::{Change, Index, Indexes, Key, SharedCache};
use parking_lot::{Mutex, MutexGuard};

use super::caches::Caches;
use crate::data::index::referred;
use crate::machine::facts::associated;

/// The indexes, each from the named object to the objects that name it.
#[derive(Default)]
pub(in crate::data) struct RelatedKeys {
    pub(in crate::data) claims_on: Index<Key>,
    claims_of_machine: Index<Key>,
    claims_in_cluster: Index<Key>,
    template_of: BTreeMap<Key, Key>,
    /// Templates in deletion, by namespace.
    templates_in_deletion: Index<String>,
    pub(super) machines_of_owner: Index<Key>,
    pub(super) machines_on_host: Index<Key>,
    pub(super) data_of_template: Index<Key>,
    pub(super) data_of_claim: Index<Key>,
    pub(super) data_of_secret: Index<Key>,
    pub(super) data_in_cluster: Index<Key>,
    /// Claims on IPPools, by the Metal3Data that owns them.
    pub(in crate::data) metal3_of: Index<Key>,
    /// Claims on other pools, by the Metal3Data that owns them.
    pub(in crate::data) general_of: Index<Key>,
    /// The names of claims on pools that Metal3Data wait for, whatever their owner.
    awaited: Index<Key>,
    awaits: BTreeMap<Key, BTreeSet<Key>>,
}

#[derive(Clone, Default)]
pub(in crate::data) struct SharedRelatedKeys(Arc<Mutex<RelatedKeys>>);

impl SharedRelatedKeys {
    pub(in crate::data) fn lock(&self) -> MutexGuard<'_, RelatedKeys> {
        self.0.lock()
    }

    /// A subscriber that returns the keys for a change.
    pub(super) fn on<K, T>(
        &self,
        keys: impl Fn(&RelatedKeys, &Change<'_, K>) -> T + Send + 'static,
    ) -> impl Fn(&Change<'_, K>) -> T + Send + 'static {
        let related = self.clone();
        move |change| keys(&related.lock(), change)
    }

    /// Indexes subscribed to these caches, which must be empty.
    pub(super) fn of(caches: &Caches) -> Self {
        let related = Self::default();
        related.follow(&caches.claims, RelatedKeys::claim);
        related.follow(&caches.templates, RelatedKeys::template);
        related.follow(&caches.machines, RelatedKeys::machine);
        related.follow(&caches.data, RelatedKeys::data);
        related.follow(&caches.metal3_claims, |related, change| {
            replace(&mut related.metal3_of, change, data_of);
        });
        related.follow(&caches.general_claims, |related, change| {
            replace(&mut related.general_of, change, data_of);
        });
        related
    }

    fn follow<K: Resource, I: Indexes<K>>(
        &self,
        cache: &SharedCache<K, I>,
        update: impl Fn(&mut RelatedKeys, &Change<'_, K>) + Send + 'static,
    ) {
        let related = self.clone();
        cache.subscribe(move |change| update(&mut related.lock(), change));
    }
}

impl RelatedKeys {
    fn claim(&mut self, change: &Change<'_, Metal3DataClaim>) {
        replace(&mut self.claims_on, change, template_of);
        replace(&mut self.claims_in_cluster, change, in_cluster);
        replace(&mut self.claims_of_machine, change, |claim| {
            let owner = owner::first::<Metal3Machine>(&claim.metadata)?;
            Some(sibling(claim, &owner.name))
        });
        match change {
            Change::Applied { new, .. } => {
                if let Some(template) = template_of(new) {
                    self.template_of.insert(Key::of(*new), template);
                }
            }
            Change::Deleted { key, .. } => drop(self.template_of.remove(*key)),
            Change::Unreadable { .. } | Change::Synced => {}
        }
    }

    fn template(&mut self, change: &Change<'_, Metal3DataTemplate>) {
        replace(&mut self.templates_in_deletion, change, |template| {
            let is_deleting = template.metadata.deletion_timestamp.is_some();
            is_deleting.then(|| template.metadata.namespace.clone().unwrap_or_default())
        });
    }

    fn machine(&mut self, change: &Change<'_, Metal3Machine>) {
        replace(&mut self.machines_of_owner, change, |machine| {
            let owner = owner::first::<Machine>(&machine.metadata)?;
            Some(sibling(machine, &owner.name))
        });
        replace(&mut self.machines_on_host, change, |machine| {
            associated(machine).map(|host| sibling(machine, host))
        });
    }

    fn data(&mut self, change: &Change<'_, Metal3Data>) {
        let reference = |data: &Metal3Data, reference: Option<&Metal3ObjectRef>| {
            let name = referred(reference);
            (!name.is_empty()).then(|| sibling(data, name))
        };
        replace(&mut self.data_in_cluster, change, in_cluster);
        replace(&mut self.data_of_template, change, |data| {
            reference(data, data.spec.template.as_ref())
        });
        replace(&mut self.data_of_claim, change, |data| {
            reference(data, data.spec.claim.as_ref())
        });
        replace(&mut self.data_of_secret, change, |data| {
            let secrets = [&data.spec.meta_data, &data.spec.network_data];
            let names = secrets
                .into_iter()
                .flatten()
                .filter_map(|secret| secret.name.as_deref());
            names.map(|name| sibling(data, name)).collect::<Vec<_>>()
        });
        if let Change::Deleted { key, .. } = change {
            self.await_claims(key, BTreeSet::new());
        }
    }

    /// Replaces the names of the claims on pools that a Metal3Data waits for. Changes of these claims and of their
    /// addresses enqueue it.
    pub(in crate::data) fn await_claims(&mut self, data: &Key, names: BTreeSet<Key>) {
        let before = self.awaits.remove(data).unwrap_or_default();
        self.awaited.replace(data, before, names.clone());
        if !names.is_empty() {
            self.awaits.insert(data.clone(), names);
        }
    }

    /// The Metal3Data of claims on data of these Metal3Machines.
    pub(super) fn data_of_machines(&self, machines: impl IntoIterator<Item = Key>) -> Vec<Key> {
        let machines: Vec<Key> = machines.into_iter().collect();
        let claims = machines.iter().flat_map(|machine| self.claims_of_machine.get(machine));
        claims
            .flat_map(|claim| self.data_of_claim.get(claim))
            .cloned()
            .collect()
    }

    /// The Metal3Data to reconcile after a change of a claim on a pool: its owner, and those that wait for a claim of
    /// its name.
    pub(super) fn data_of_pool_claim<K: Resource>(&self, change: &Change<'_, K>) -> Vec<Key> {
        if matches!(change, Change::Synced) {
            // The kind may have been installed after claims were needed.
            return self.awaits.keys().cloned().collect();
        }
        let mut data = keys(&self.awaited, change);
        data.extend(change.object().and_then(data_of));
        data
    }

    /// The Metal3Data to reconcile after a change of an address: those that wait for the claim it names.
    pub(super) fn data_of_address<K: Resource>(
        &self,
        change: &Change<'_, K>,
        claim: impl Fn(&K) -> Option<String>,
    ) -> Vec<Key> {
        let named = |address: &K| Some(sibling(address, &claim(address)?));
        let claim = change.object().and_then(named);
        claim.map_or_else(Vec::new, |claim| self.awaited.get(&claim).cloned().collect())
    }

    /// The templates to reconcile after a change of a claim. A template in deletion waits for unreadable claims.
    pub(super) fn templates_of_claim(&self, change: &Change<'_, Metal3DataClaim>) -> BTreeSet<Key> {
        let mut templates: BTreeSet<Key> = change.object().and_then(template_of).into_iter().collect();
        if change.became_readable() || matches!(change, Change::Unreadable { .. }) {
            let namespace = change.key().map(|claim| claim.namespace).unwrap_or_default();
            templates.extend(self.templates_in_deletion.get(&namespace).cloned());
        }
        templates
    }

    pub(super) fn templates_in_cluster(&self, change: &Change<'_, Cluster>) -> BTreeSet<Key> {
        let claims = keys(&self.claims_in_cluster, change).into_iter();
        claims
            .filter_map(|claim| self.template_of.get(&claim).cloned())
            .collect()
    }
}

fn template_of(claim: &Metal3DataClaim) -> Option<Key> {
    let name = referred(claim.spec.template.as_ref());
    (!name.is_empty()).then(|| sibling(claim, name))
}

pub(super) fn data_of<K: Resource>(object: &K) -> Option<Key> {
    let owner = owner::first::<Metal3Data>(object.meta())?;
    Some(sibling(object, &owner.name))
}

/// The key of another object in the same namespace.
pub(in crate::data) fn sibling<K: Resource>(object: &K, name: &str) -> Key {
    Key::of(object).sibling(name)
}

fn in_cluster<K: Resource>(object: &K) -> Option<Key> {
    cluster_of(object.meta()).map(|cluster| sibling(object, cluster))
}

/// The keys that an index has for the object of a change.
pub(super) fn keys<K: Resource>(index: &Index<Key>, change: &Change<'_, K>) -> Vec<Key> {
    let key = change.key();
    key.map_or_else(Vec::new, |key| index.get(&key).cloned().collect())
}

/// Updates an index. An unreadable object keeps its entries.
fn replace<K: Resource, V: Ord, T: IntoIterator<Item = V>>(
    index: &mut Index<V>,
    change: &Change<'_, K>,
    names: impl Fn(&K) -> T,
) {
    let Some(key) = change.key() else { return };
    let (old, new) = match change {
        Change::Applied { old, new, .. } => (*old, Some(*new)),
        Change::Deleted { old, .. } => (*old, None),
        Change::Unreadable { .. } | Change::Synced => return,
    };
    let names_of = |object: Option<&K>| object.map(&names).into_iter().flatten().collect::<Vec<_>>();
    index.replace(&key, names_of(old), names_of(new));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn template_in_deletion_is_enqueued_by_unreadable_claims_and_their_correction() {
        let template = |name: &str, deleted: Option<&str>| -> Metal3DataTemplate {
            let meta = json!({ "namespace": "metal", "name": name, "deletionTimestamp": deleted });
            serde_json::from_value(json!({ "metadata": meta, "spec": { "clusterName": "edge" } })).unwrap()
        };
        let claim: Metal3DataClaim = serde_json::from_value(json!({
            "metadata": { "namespace": "metal", "name": "m0" }, "spec": { "template": { "name": "stays" } },
        }))
        .unwrap();
        let mut related = RelatedKeys::default();
        for made in [
            template("stays", None),
            template("deleting", Some("2026-01-01T00:00:00Z")),
        ] {
            let (old, new, was_unreadable) = (None, &made, false);
            related.template(&Change::Applied {
                old,
                new,
                was_unreadable,
            });
        }
        let (old, key) = (Some(&claim), Key::of(&claim));
        let enqueued = |change: &Change<'_, Metal3DataClaim>| -> Vec<String> {
            let templates = related.templates_of_claim(change).into_iter();
            templates.map(|template| template.name).collect()
        };
        let live = |was_unreadable| Change::Applied {
            old,
            new: &claim,
            was_unreadable,
        };
        assert_eq!(enqueued(&live(false)), ["stays"]);
        assert_eq!(enqueued(&live(true)), ["deleting", "stays"]);
        assert_eq!(enqueued(&Change::Unreadable { key: &key, old: None }), ["deleting"]);
        let (key, old, was_unreadable) = (&key, None, true);
        assert_eq!(
            enqueued(&Change::Deleted {
                key,
                old,
                was_unreadable
            }),
            ["deleting"]
        );
    }
}
