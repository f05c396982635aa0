//! The controllers of Metal3DataTemplates and Metal3Data.
//!
//! | Step | Module |
//! |---|---|
//! | caches | [`caches`] |
//! | keys that a change enqueues | `related_keys` |
//! | state of claims on pools | `grants` |
//! | a template: assigns indexes to its claims | [`template`](crate::data::template) |
//! | a Metal3Data: claims on pools, Secrets, and their release | [`object`](crate::data::object) |
//! | writes of both | `writes` |
//!
//! Correctness does not depend on leader election. A Metal3Data is rendered only when its claim names it; a Secret is
//! created and never changed; a missing cache entry alone never releases an object.

pub mod caches;
pub(crate) mod grants;
pub(in crate::data) mod related_keys;
pub(crate) mod writes;

use std::collections::BTreeSet;
use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Change, Key};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::work::Controller;
use metal3_runtime::write::Writer;

use crate::data::claims::Naming;
use crate::data::index::referred;
use crate::data::object::reconciler::Objects;
use crate::data::template::reconciler::Templates;
use crate::needs::Data;

use caches::Caches;
use related_keys::{SharedRelatedKeys, data_of, sibling};

/// Dependencies of the controllers.
pub struct Parts {
    /// The caches, still empty.
    pub caches: Caches,
    /// Clock for timestamps.
    pub clock: Arc<dyn Clock>,
    /// Receives Events.
    pub events: EventRecorder,
    /// Receives metrics.
    pub metrics: Metrics,
    /// The prefix of the names of new claims on IPPools.
    pub naming: Naming,
    /// The required value of the watch-filter label, if any.
    pub watch_filter: Option<String>,
    /// Workers of the template controller.
    pub template_workers: usize,
    /// Workers of the Metal3Data controller.
    pub data_workers: usize,
}

/// Both controllers. The caller starts the watches of the caches.
pub fn controllers(parts: Parts, writer: &Writer<Data>) -> (Controller<Templates>, Controller<Objects>) {
    let related = SharedRelatedKeys::of(&parts.caches);
    let templates = Templates {
        caches: parts.caches.clone(),
        related: related.clone(),
        clock: Arc::clone(&parts.clock),
        events: parts.events.clone(),
        watch_filter: parts.watch_filter.clone(),
    };
    let objects = Objects {
        caches: parts.caches.clone(),
        related: related.clone(),
        events: parts.events.clone(),
        naming: parts.naming,
        watch_filter: parts.watch_filter.clone(),
    };
    (
        of_templates(&parts, &related, writer.clone(), templates),
        of_objects(&parts, &related, writer.clone(), objects),
    )
}

fn of_templates(
    parts: &Parts,
    related: &SharedRelatedKeys,
    writer: Writer<Data>,
    templates: Templates,
) -> Controller<Templates> {
    let (caches, claims, related) = (&parts.caches, related.clone(), related.clone());
    Controller::new("metal3datatemplate", Arc::clone(&parts.clock), writer, templates)
        .watches(&caches.templates, |change| change.key())
        .watches(&caches.claims, move |change| claims.lock().templates_of_claim(change))
        .watches(&caches.data, templates_of)
        .watches(&caches.clusters, move |change| {
            related.lock().templates_in_cluster(change)
        })
        .workers(parts.template_workers)
        .metrics(&parts.metrics)
}

fn of_objects(
    parts: &Parts,
    related: &SharedRelatedKeys,
    writer: Writer<Data>,
    objects: Objects,
) -> Controller<Objects> {
    let caches = &parts.caches;
    let t = || related.clone();
    let (claims, machines, owners, hosts, clusters, templates) = (t(), t(), t(), t(), t(), t());
    let (metal3, metal3_addresses, general, general_addresses, secrets) = (t(), t(), t(), t(), t());
    Controller::new("metal3data", Arc::clone(&parts.clock), writer, objects)
        .watches(&caches.data, |change| change.key())
        .watches(&caches.claims, move |c| claims.lock().data_of_claim(c.key().as_ref()))
        .watches(&caches.machines, move |c| {
            c.key()
                .map(|key| machines.lock().data_of_machine(&key))
                .unwrap_or_default()
        })
        .watches(&caches.owners, move |c| owners.lock().data_of_owner(c.key().as_ref()))
        .watches(&caches.hosts, move |c| hosts.lock().data_on_host(c.key().as_ref()))
        .watches(&caches.clusters, move |c| {
            clusters.lock().data_of_cluster(c.key().as_ref())
        })
        .watches(&caches.templates, move |c| {
            templates.lock().data_of_template(c.key().as_ref())
        })
        .watches(&caches.metal3_claims, move |c| of_pool_claim(&metal3, c))
        .watches(&caches.general_claims, move |c| of_pool_claim(&general, c))
        .watches(&caches.metal3_addresses, move |c| {
            let claim = c
                .object()
                .and_then(|address| Some(sibling(address, address.spec.claim.name.as_deref()?)));
            claim
                .map(|claim| metal3_addresses.lock().awaiting(&claim))
                .unwrap_or_default()
        })
        .watches(&caches.general_addresses, move |c| {
            let claim = c.object().map(|address| sibling(address, &address.spec.claim_ref.name));
            claim
                .map(|claim| general_addresses.lock().awaiting(&claim))
                .unwrap_or_default()
        })
        .watches(&caches.secrets, move |c| {
            let mut keys = secrets.lock().data_of_secret(c.key().as_ref());
            keys.extend(c.object().and_then(data_of));
            keys
        })
        .workers(parts.data_workers)
        .metrics(&parts.metrics)
}

/// The templates to reconcile after a change of a Metal3Data: the one it names, and the one whose index it uses by its
/// name.
fn templates_of(change: &Change<'_, Metal3Data>) -> BTreeSet<Key> {
    let relevant = |data: &Metal3Data| {
        let meta = &data.metadata;
        (
            meta.deletion_timestamp.clone(),
            meta.finalizers.clone(),
            data.spec.clone(),
        )
    };
    // A template does not depend on its status.
    if change.is_same(|old, new| relevant(old) == relevant(new)) {
        return BTreeSet::new();
    }
    let Some(key) = change.key() else {
        return BTreeSet::new();
    };
    let sibling = |name: &str| Key {
        namespace: key.namespace.clone(),
        name: name.to_owned(),
    };
    let named = change.object().map(|data| referred(data.spec.template.as_ref()));
    let by_name = key.name.rsplit_once('-').map(|(template, _)| template);
    let names = named.into_iter().chain(by_name).filter(|name| !name.is_empty());
    names.map(sibling).collect()
}

/// The Metal3Data to reconcile after a change of a claim on a pool: its owner, and those that wait for a claim of its
/// name.
fn of_pool_claim<K: kube_core::Resource>(related: &SharedRelatedKeys, change: &Change<'_, K>) -> Vec<Key> {
    let Some(key) = change.key() else { return Vec::new() };
    let mut keys = related.lock().awaiting(&key);
    keys.extend(change.object().and_then(data_of));
    keys
}

#[cfg(test)]
pub(crate) mod tests;
