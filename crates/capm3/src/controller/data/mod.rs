//! The controllers of data: one key a template, and one key a Metal3Data.
//!
//! | Step | Where |
//! |---|---|
//! | what is watched | [`caches`] |
//! | which keys a change concerns | `ties` |
//! | what has become of a claim on a pool | `grants` |
//! | a template: its claims get their numbers | [`templates`], deciding by [`crate::data::allot`] |
//! | a Metal3Data: claims on pools, Secrets, and their release | [`objects`], deciding by [`crate::data::step`] and [`crate::data::release`] |
//! | what they may do | [`needs`] |
//!
//! They need no leader to be correct. A Metal3Data is worked on only when its claim names it; a Secret is made and never
//! changed; nothing is let go because a cache does not show who holds it.

pub mod caches;
pub(super) mod grants;
pub mod needs;
pub mod objects;
pub mod reason;
pub mod templates;
mod ties;
pub(super) mod writes;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_api::kind::Kind;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Change, Found, Key};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::work::{Controller, Next};
use metal3_runtime::write::Writer;

use crate::data::claims::Naming;
use crate::data::index::referred;

use caches::Caches;
use needs::Data;
use objects::Objects;
use templates::Templates;
use ties::{SharedTies, data_of, near};

/// What the controllers are made of.
pub struct Parts {
    /// What is watched. Nothing may have filled them yet.
    pub caches: Caches,
    /// The time for what is written.
    pub clock: Arc<dyn Clock>,
    /// Where events are told.
    pub events: EventRecorder,
    /// Where figures are shown.
    pub metrics: Metrics,
    /// After what new claims on IPPools are named.
    pub naming: Naming,
    /// The value that the watch-filter label of a template or a Metal3Data must have, if any.
    pub watch_filter: Option<String>,
    /// How many templates may be worked on at once.
    pub template_workers: usize,
    /// How many Metal3Data may be worked on at once.
    pub data_workers: usize,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("naming", &self.naming)
            .finish_non_exhaustive()
    }
}

/// Both controllers, ready to run. Whoever calls this starts the watches of the caches.
pub fn controllers(parts: Parts, writer: &Writer<Data>) -> (Controller<Templates>, Controller<Objects>) {
    let ties = SharedTies::of(&parts.caches);
    let templates = Templates {
        caches: parts.caches.clone(),
        ties: ties.clone(),
        clock: Arc::clone(&parts.clock),
        events: parts.events.clone(),
        watch_filter: parts.watch_filter.clone(),
    };
    let objects = Objects {
        caches: parts.caches.clone(),
        ties: ties.clone(),
        events: parts.events.clone(),
        naming: parts.naming,
        watch_filter: parts.watch_filter.clone(),
    };
    (
        of_templates(&parts, &ties, writer.clone(), templates),
        of_objects(&parts, &ties, writer.clone(), objects),
    )
}

fn of_templates(parts: &Parts, ties: &SharedTies, writer: Writer<Data>, templates: Templates) -> Controller<Templates> {
    let (caches, claims, ties) = (&parts.caches, ties.clone(), ties.clone());
    Controller::new("metal3datatemplate", Arc::clone(&parts.clock), writer, templates)
        .watches(&caches.templates, |change| change.key())
        .watches(&caches.claims, move |change| claims.lock().templates_of_claim(change))
        .watches(&caches.data, templates_of)
        .watches(&caches.clusters, move |change| ties.lock().templates_in_cluster(change))
        .workers(parts.template_workers)
        .metrics(&parts.metrics)
}

fn of_objects(parts: &Parts, ties: &SharedTies, writer: Writer<Data>, objects: Objects) -> Controller<Objects> {
    let caches = &parts.caches;
    let t = || ties.clone();
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
        .watches(&caches.templates, move |c| templates.lock().data_of_template(c))
        .watches(&caches.metal3_claims, move |c| of_pool_claim(&metal3, c))
        .watches(&caches.general_claims, move |c| of_pool_claim(&general, c))
        .watches(&caches.metal3_addresses, move |c| {
            let claim = c
                .object()
                .and_then(|address| Some(near(address, address.spec.claim.name.as_deref()?)));
            claim
                .map(|claim| metal3_addresses.lock().awaiting(&claim))
                .unwrap_or_default()
        })
        .watches(&caches.general_addresses, move |c| {
            let claim = c.object().map(|address| near(address, &address.spec.claim_ref.name));
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

/// The templates that a change of a Metal3Data concerns: the one it was made from, and the one whose number it holds by
/// its name.
fn templates_of(change: &Change<'_, Metal3Data>) -> BTreeSet<Key> {
    let says = |data: &Metal3Data| {
        let meta = &data.metadata;
        (
            meta.deletion_timestamp.clone(),
            meta.finalizers.clone(),
            data.spec.clone(),
        )
    };
    // Its status is no news for a template.
    if change.is_same(|old, new| says(old) == says(new)) {
        return BTreeSet::new();
    }
    let Some(key) = change.key() else {
        return BTreeSet::new();
    };
    let beside = |name: &str| Key {
        namespace: key.namespace.clone(),
        name: name.to_owned(),
    };
    let named = change.object().map(|data| referred(data.spec.template.as_ref()));
    let by_name = key.name.rsplit_once('-').map(|(template, _)| template);
    let names = named.into_iter().chain(by_name).filter(|name| !name.is_empty());
    names.map(beside).collect()
}

/// The Metal3Data that a change of a claim on a pool concerns: its owner, and whoever looked for one of its name.
fn of_pool_claim<K: kube_core::Resource>(ties: &SharedTies, change: &Change<'_, K>) -> Vec<Key> {
    let Some(key) = change.key() else { return Vec::new() };
    let mut keys = ties.lock().awaiting(&key);
    keys.extend(change.object().and_then(data_of));
    keys
}

/// What a cache shows, or that nobody can say.
fn known<K: Kind>(found: Found<K>, key: &Key) -> Result<Option<Arc<K>>, Next> {
    let unknown = |why: &str| {
        Err(Next::waiting(
            reason::OBJECT_UNREADABLE,
            format!("{} {key}: {why}", K::KIND),
        ))
    };
    match found {
        Found::Live(object) => Ok(Some(object)),
        Found::Absent => Ok(None),
        Found::Unreadable { why } => unknown(&why),
        Found::Unknown => unknown("it was not listed yet"),
    }
}

#[cfg(test)]
pub(super) mod tests;
