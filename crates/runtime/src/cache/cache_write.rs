//! A write between its request and its response.

use kube_core::Resource;

use crate::queue::RequestSource;
use crate::version::ResourceVersion;

use super::identity::{Identity, Key, MissingMetadata};
use super::index::Indexes;
use super::own_writes::OwnWrites;
use super::shared::SharedCache;

/// Whether a response contains changes of other clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerContent {
    /// The own change only.
    OwnChange,
    /// It may contain a change of another client, so the source of the write is enqueued once more.
    Mixed,
}

/// A write in flight. Dropping it without a result means that its outcome is unknown, or that it was rejected because
/// the cached object was out of date: the source is held until the object was read again.
#[must_use = "the answer belongs into it"]
pub struct CacheWrite<K: Resource, I: Indexes<K> = ()> {
    cache: SharedCache<K, I>,
    source: RequestSource,
    object: Key,
    id: u64,
    completed: bool,
}

impl<K: Resource, I: Indexes<K>> SharedCache<K, I> {
    /// `source` is about to send a write of `object`.
    #[must_use = "the answer belongs into it"]
    pub fn start_write(&self, source: &RequestSource, object: Key) -> CacheWrite<K, I> {
        let _state = self.state();
        let id = self.own_writes(|own_writes| own_writes.begin_write(source.clone(), object.clone()));
        CacheWrite {
            cache: self.clone(),
            source: source.clone(),
            object,
            id,
            completed: false,
        }
    }
}

impl<K: Resource, I: Indexes<K>> CacheWrite<K, I> {
    /// The server responded with this object.
    ///
    /// # Errors
    /// As [`Cache::wrote`](super::Cache::wrote).
    pub fn wrote(mut self, object: K, part: AnswerContent) -> Result<(), MissingMetadata> {
        let written = Identity::of(&object)?;
        let cache = self.cache.clone();
        let mut state = cache.state();
        let known = state.cache.shows_exactly(&written);
        self.complete(|skipped| *skipped != written.version);
        if part == AnswerContent::Mixed && !known {
            self.source.enqueue();
        }
        cache.answer(&mut state, &self.source, &written, |cache| cache.wrote(object))
    }

    /// The response has this version and no object for the cache: the source is held until the cache has the version.
    pub fn wrote_version(mut self, written: &Identity, part: AnswerContent) {
        let cache = self.cache.clone();
        {
            let state = cache.state();
            let known = state.cache.shows_exactly(written);
            self.complete(|skipped| *skipped != written.version);
            if part == AnswerContent::Mixed && !known {
                self.source.enqueue();
            }
        }
        cache.hold(&self.source, written);
    }

    /// The server responded that the object is deleted.
    pub fn deleted(mut self, last: &Identity) {
        let cache = self.cache.clone();
        let mut state = cache.state();
        // Changes that other clients made before the own delete have no effect any more.
        self.complete(|_| false);
        cache.own_writes(|own_writes| own_writes.begin_response(&self.source));
        state.cache.deleted(last);
        cache.own_writes(OwnWrites::end_delivery);
    }

    /// The server rejected the write for a reason other than an out-of-date object.
    pub fn refused(mut self) {
        let cache = self.cache.clone();
        let _state = cache.state();
        self.complete(|_| true);
    }

    /// Requires the lock of the cache.
    fn complete(&mut self, foreign: impl Fn(&ResourceVersion) -> bool) {
        self.completed = true;
        let skipped = self
            .cache
            .own_writes(|own_writes| own_writes.complete(&self.object, self.id));
        if skipped.iter().any(foreign) {
            self.source.enqueue();
        }
    }
}

impl<K: Resource, I: Indexes<K>> Drop for CacheWrite<K, I> {
    fn drop(&mut self) {
        if !self.completed {
            let cache = self.cache.clone();
            let state = cache.state();
            SharedCache::mark_uncertain(&state, &self.source, &self.object);
            self.complete(|_| true);
        }
    }
}
