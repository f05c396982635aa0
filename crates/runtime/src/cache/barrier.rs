//! The barrier: what has to wait until a cache reaches a version.
//!
//! For writes whose answer carries a version but no object that could enter the cache: a write through another kind's
//! subresource, one of a kind that the cache knows by metadata only, or one whose answer was lost and whose version was
//! read afterwards.
//!
//! Letting go costs by what is let go, not by what waits.

use std::collections::{BTreeMap, BTreeSet};

use crate::version::ResourceVersion;

use super::identity::Key;

/// What waits for one cache: `W` is handed back when the wait is over.
#[derive(Debug)]
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
    /// Keeps `waiter` until the cache shows `object` at `version` or newer.
    pub fn hold(&mut self, waiter: W, object: Key, version: ResourceVersion) {
        self.versions.entry(object.clone()).or_default().insert(version.clone());
        self.waits.entry((version, object)).or_default().push(waiter);
    }

    /// How many waits there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waits.values().map(Vec::len).sum()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// The cache shows `object` at `version`.
    #[must_use = "who waited may go on"]
    pub fn shown(&mut self, object: &Key, version: &ResourceVersion) -> Vec<W> {
        let mut free = Vec::new();
        while let Some(first) = self.versions.get(object).and_then(BTreeSet::first).cloned() {
            if first > *version {
                break;
            }
            free.extend(self.let_go(first, object.clone()));
        }
        free
    }

    /// The cache has seen everything up to `version`.
    #[must_use = "who waited may go on"]
    pub fn reached(&mut self, version: &ResourceVersion) -> Vec<W> {
        let mut free = Vec::new();
        while let Some((first, object)) = self.waits.keys().next().cloned() {
            if first > *version {
                break;
            }
            free.extend(self.let_go(first, object));
        }
        free
    }

    /// The versions waited for mean nothing any more.
    #[must_use = "who waited may go on"]
    pub fn give_up(&mut self) -> Vec<W> {
        self.versions.clear();
        std::mem::take(&mut self.waits).into_values().flatten().collect()
    }

    fn let_go(&mut self, version: ResourceVersion, object: Key) -> Vec<W> {
        if let Some(versions) = self.versions.get_mut(&object) {
            versions.remove(&version);
            if versions.is_empty() {
                self.versions.remove(&object);
            }
        }
        self.waits.remove(&(version, object)).unwrap_or_default()
    }
}
