//! The controllers of data: one key a template, and one key a Metal3Data.
//!
//! | Step | Where |
//! |---|---|
//! | what is watched | [`hubs`] |
//! | which keys a change concerns | `ties` |
//! | what has become of a claim on a pool | `grants` |
//! | a template: its claims get their numbers | [`templates`], deciding by [`crate::data::allot`] |
//! | a Metal3Data: claims on pools, Secrets, and their release | [`objects`], deciding by [`crate::data::step`] and [`crate::data::release`] |
//! | what they may do | [`needs`] |
//!
//! They need no leader to be correct. A Metal3Data is worked on only when its claim names it; a Secret is made and never
//! changed; nothing is let go because a cache does not show who holds it.

pub(super) mod grants;
pub mod hubs;
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
use metal3_runtime::events::EventSink;
use metal3_runtime::hub::{Change, Found, Key};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::work::{Controller, Next};
use metal3_runtime::write::Writer;

use crate::data::claims::Naming;
use crate::data::index::referred;

use hubs::Hubs;
use needs::Data;
use objects::Objects;
use templates::Templates;
use ties::{SharedTies, data_of, near};

/// What the controllers are made of.
pub struct Parts {
    /// What is watched. Nothing may have filled them yet.
    pub hubs: Hubs,
    /// The time for what is written.
    pub clock: Arc<dyn Clock>,
    /// Where events are told.
    pub events: EventSink,
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

/// Both controllers, ready to run. Whoever calls this starts the watches of the hubs.
pub fn controllers(parts: Parts, writer: &Writer<Data>) -> (Controller<Templates>, Controller<Objects>) {
    let ties = SharedTies::of(&parts.hubs);
    let templates = Templates {
        hubs: parts.hubs.clone(),
        ties: ties.clone(),
        clock: Arc::clone(&parts.clock),
        events: parts.events.clone(),
        watch_filter: parts.watch_filter.clone(),
    };
    let objects = Objects {
        hubs: parts.hubs.clone(),
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
    let (hubs, claims, ties) = (&parts.hubs, ties.clone(), ties.clone());
    Controller::new("metal3datatemplate", Arc::clone(&parts.clock), writer, templates)
        .reads(&hubs.templates, |change| change.key())
        .reads(&hubs.claims, move |change| claims.lock().templates_of_claim(change))
        .reads(&hubs.data, templates_of)
        .reads(&hubs.clusters, move |change| ties.lock().templates_in_cluster(change))
        .workers(parts.template_workers)
        .metrics(&parts.metrics)
}

fn of_objects(parts: &Parts, ties: &SharedTies, writer: Writer<Data>, objects: Objects) -> Controller<Objects> {
    let hubs = &parts.hubs;
    let t = || ties.clone();
    let (claims, machines, owners, hosts, clusters, templates) = (t(), t(), t(), t(), t(), t());
    let (metal3, metal3_addresses, general, general_addresses, secrets) = (t(), t(), t(), t(), t());
    Controller::new("metal3data", Arc::clone(&parts.clock), writer, objects)
        .reads(&hubs.data, |change| change.key())
        .reads(&hubs.claims, move |c| claims.lock().data_of_claim(c.key().as_ref()))
        .reads(&hubs.machines, move |c| {
            c.key()
                .map(|key| machines.lock().data_of_machine(&key))
                .unwrap_or_default()
        })
        .reads(&hubs.owners, move |c| owners.lock().data_of_owner(c.key().as_ref()))
        .reads(&hubs.hosts, move |c| hosts.lock().data_on_host(c.key().as_ref()))
        .reads(&hubs.clusters, move |c| {
            clusters.lock().data_of_cluster(c.key().as_ref())
        })
        .reads(&hubs.templates, move |c| templates.lock().data_of_template(c))
        .reads(&hubs.metal3_claims, move |c| of_pool_claim(&metal3, c))
        .reads(&hubs.general_claims, move |c| of_pool_claim(&general, c))
        .reads(&hubs.metal3_addresses, move |c| {
            let claim = c
                .object()
                .and_then(|address| Some(near(address, address.spec.claim.name.as_deref()?)));
            claim
                .map(|claim| metal3_addresses.lock().awaiting(&claim))
                .unwrap_or_default()
        })
        .reads(&hubs.general_addresses, move |c| {
            let claim = c.object().map(|address| near(address, &address.spec.claim_ref.name));
            claim
                .map(|claim| general_addresses.lock().awaiting(&claim))
                .unwrap_or_default()
        })
        .reads(&hubs.secrets, move |c| {
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

/// What a hub shows, or that nobody can say.
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
