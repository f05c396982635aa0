//! The barrier: who may not look yet, because the hub has not reached what they wrote.
//!
//! For writes whose answer carries a version but no object that could enter the hub: a write through another kind's
//! subresource, or one whose answer was lost and whose version was read afterwards.

use std::collections::BTreeMap;

use crate::version::ResourceVersion;

use super::identity::Key;
use super::index::Indexes;
use super::store::Hub;

/// The queue keys that wait for one hub.
#[derive(Debug, Clone)]
pub struct Barrier<Q> {
    held: BTreeMap<Q, BTreeMap<Key, ResourceVersion>>,
}

impl<Q> Default for Barrier<Q> {
    fn default() -> Self {
        Self { held: BTreeMap::new() }
    }
}

impl<Q: Ord + Clone> Barrier<Q> {
    /// Keeps `waiter` from looking until the hub shows `object` at `version` or newer.
    pub fn hold(&mut self, waiter: Q, object: Key, version: ResourceVersion) {
        let waits = self.held.entry(waiter).or_default();
        match waits.get_mut(&object) {
            Some(known) if *known >= version => {}
            Some(known) => *known = version,
            None => {
                waits.insert(object, version);
            }
        }
    }

    /// Whether `waiter` has to wait.
    #[must_use]
    pub fn holds(&self, waiter: &Q) -> bool {
        self.held.contains_key(waiter)
    }

    /// Lets go of those whose writes `hub` shows by now, in order.
    #[must_use = "those who may look again must be queued"]
    pub fn release<K: kube_core::Resource, I: Indexes<K>>(&mut self, hub: &Hub<K, I>) -> Vec<Q> {
        let mut free = Vec::new();
        self.held.retain(|waiter, waits| {
            waits.retain(|object, version| !hub.shows(object, version));
            if waits.is_empty() {
                free.push(waiter.clone());
            }
            !waits.is_empty()
        });
        free
    }
}
