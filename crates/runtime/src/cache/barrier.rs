//! The barrier: waits until a cache reaches a version.
//!
//! It serves writes whose response has a version but no object for the cache: a write through another kind's
//! subresource, a write of a kind that the cache holds as metadata, and a write whose response was lost and whose
//! version was read later.
//!
//! The cost of a release depends on the number of released waits, not on the number of all waits.

use std::collections::{BTreeMap, BTreeSet};

use crate::version::ResourceVersion;

use super::identity::Key;

/// The waits of one cache. `W` is returned when its wait ends.
pub struct Barrier<W> {
    waits: BTreeMap<(ResourceVersion, Key), Vec<W>>,
    versions: BTreeMap<Key, BTreeSet<ResourceVersion>>,
}

impl<W> Default for Barrier<W> {
    fn default() -> Self {
        Self {
            waits: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }
}

impl<W> Barrier<W> {
    /// Holds `waiter` until the cache has `object` at `version` or newer.
    pub fn hold(&mut self, waiter: W, object: Key, version: ResourceVersion) {
        self.versions.entry(object.clone()).or_default().insert(version.clone());
        self.waits.entry((version, object)).or_default().push(waiter);
    }

    /// The number of waits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waits.values().map(Vec::len).sum()
    }

    /// Whether there is no wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// The cache has `object` at `version`.
    #[must_use = "dropping a hold releases its key"]
    pub fn observed(&mut self, object: &Key, version: &ResourceVersion) -> Vec<W> {
        let mut released = Vec::new();
        while let Some(first) = self.versions.get(object).and_then(BTreeSet::first).cloned() {
            if first > *version {
                break;
            }
            released.extend(self.release(first, object.clone()));
        }
        released
    }

    /// The cache has everything up to `version`.
    #[must_use = "dropping a hold releases its key"]
    pub fn reached(&mut self, version: &ResourceVersion) -> Vec<W> {
        let mut released = Vec::new();
        while let Some((first, object)) = self.waits.keys().next().cloned() {
            if first > *version {
                break;
            }
            released.extend(self.release(first, object));
        }
        released
    }

    /// Ends all waits: their versions have no meaning any more.
    #[must_use = "dropping a hold releases its key"]
    pub fn release_all(&mut self) -> Vec<W> {
        self.versions.clear();
        std::mem::take(&mut self.waits).into_values().flatten().collect()
    }

    fn release(&mut self, version: ResourceVersion, object: Key) -> Vec<W> {
        if let Some(versions) = self.versions.get_mut(&object) {
            versions.remove(&version);
            if versions.is_empty() {
                self.versions.remove(&object);
            }
        }
        self.waits.remove(&(version, object)).unwrap_or_default()
    }
}
