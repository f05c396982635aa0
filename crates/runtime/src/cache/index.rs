//! Indexes: from values of objects to their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::identity::Key;

/// The indexes of one cache: a struct with an [`Index`] for each query.
pub trait Indexes<K> {
    /// Moves `key` from the values of `old` to the values of `new`.
    fn replace(&mut self, key: &Key, old: Option<&K>, new: Option<&K>);
}

/// For a cache without indexes.
impl<K> Indexes<K> for () {
    fn replace(&mut self, _: &Key, _: Option<&K>, _: Option<&K>) {}
}

/// Indexes that a subscriber of another cache may read. Their lock is taken last, and no other lock is taken inside it.
/// Clones share them.
#[derive(Debug, Default)]
pub struct SharedIndexes<I>(Arc<Mutex<I>>);

impl<I> Clone for SharedIndexes<I> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<I> SharedIndexes<I> {
    /// Reads the indexes. `read` must not use a cache.
    pub fn read<T>(&self, read: impl FnOnce(&I) -> T) -> T {
        read(&self.0.lock())
    }
}

impl<K, I: Indexes<K>> Indexes<K> for SharedIndexes<I> {
    fn replace(&mut self, key: &Key, old: Option<&K>, new: Option<&K>) {
        let mut indexes = self.0.lock();
        indexes.replace(key, old, new);
    }
}

/// The keys of objects by a value of type `V`.
#[derive(Debug, Clone)]
pub struct Index<V> {
    keys: BTreeMap<V, BTreeSet<Key>>,
}

impl<V> Default for Index<V> {
    fn default() -> Self {
        Self { keys: BTreeMap::new() }
    }
}

impl<V: Ord> Index<V> {
    /// The keys of the objects with `value`, in order.
    pub fn get(&self, value: &V) -> impl Iterator<Item = &Key> + use<'_, V> {
        self.keys.get(value).into_iter().flatten()
    }

    /// The number of different values.
    #[must_use]
    pub fn values(&self) -> usize {
        self.keys.len()
    }

    /// Moves `key` from the old values to the new ones.
    pub fn replace(&mut self, key: &Key, old: impl IntoIterator<Item = V>, new: impl IntoIterator<Item = V>) {
        for value in old {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
        for value in new {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }
}
