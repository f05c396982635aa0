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

use metal3_api::cluster;
use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_api::ipam::v1alpha1::IPAddress;
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
use related_keys::{RelatedKeys, SharedRelatedKeys, data_of, keys};

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
    let caches = &parts.caches;
    Controller::new("metal3datatemplate", Arc::clone(&parts.clock), writer, templates)
        .watches(&caches.templates, |change| change.key())
        .watches(&caches.claims, related.on(RelatedKeys::templates_of_claim))
        .watches(&caches.data, templates_of)
        .watches(&caches.clusters, related.on(RelatedKeys::templates_in_cluster))
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
    Controller::new("metal3data", Arc::clone(&parts.clock), writer, objects)
        .watches(&caches.data, |change| change.key())
        .watches(&caches.claims, related.on(|r, c| keys(&r.data_of_claim, c)))
        .watches(&caches.machines, related.on(|r, c| r.data_of_machines(c.key())))
        .watches(
            &caches.owners,
            related.on(|r, c| r.data_of_machines(keys(&r.machines_of_owner, c))),
        )
        .watches(
            &caches.hosts,
            related.on(|r, c| r.data_of_machines(keys(&r.machines_on_host, c))),
        )
        .watches(&caches.clusters, related.on(|r, c| keys(&r.data_in_cluster, c)))
        .watches(&caches.templates, related.on(|r, c| keys(&r.data_of_template, c)))
        .watches(&caches.metal3_claims, related.on(RelatedKeys::data_of_pool_claim))
        .watches(&caches.general_claims, related.on(RelatedKeys::data_of_pool_claim))
        .watches(
            &caches.metal3_addresses,
            related.on(|r, c: &Change<'_, IPAddress>| {
                let claim = |address: &IPAddress| address.spec.claim.name.clone();
                r.data_of_address(c, claim)
            }),
        )
        .watches(
            &caches.general_addresses,
            related.on(|r, c: &Change<'_, cluster::IPAddress>| {
                r.data_of_address(c, |address| Some(address.spec.claim_ref.name.clone()))
            }),
        )
        .watches(
            &caches.secrets,
            related.on(|r, c| {
                let owner = c.object().and_then(data_of);
                keys(&r.data_of_secret, c).into_iter().chain(owner).collect::<Vec<_>>()
            }),
        )
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
    let named = change.object().map(|data| referred(data.spec.template.as_ref()));
    let by_name = key.name.rsplit_once('-').map(|(template, _)| template);
    let names = named.into_iter().chain(by_name).filter(|name| !name.is_empty());
    names.map(|name| key.sibling(name)).collect()
}

#[cfg(test)]
pub(crate) mod tests;
