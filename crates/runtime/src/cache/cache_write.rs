//! A write between its request and its answer.

use std::fmt;

use kube_core::Resource;

use crate::queue::RequestSource;
use crate::version::ResourceVersion;

use super::identity::{Identity, Key, MissingMetadata};
use super::index::Indexes;
use super::own_writes::OwnWrites;
use super::shared::SharedCache;

/// How much of what an answer shows is the doing of the one who wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerContent {
    /// All that is new in it.
    OwnChange,
    /// Less than that, or nobody can say: somebody else's change may have come with it. The source looks once more.
    Mixed,
}

/// A write on its way. Dropped, it is one of which nobody knows what became, or one that was refused because our view
/// of the object is old: then its source is held until the object was read afresh.
#[must_use = "the answer belongs into it"]
pub struct CacheWrite<K: Resource, I: Indexes<K> = ()> {
    cache: SharedCache<K, I>,
    source: RequestSource,
    object: Key,
    id: u64,
    landed: bool,
}

impl<K: Resource, I: Indexes<K>> fmt::Debug for CacheWrite<K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheWrite")
            .field("object", &self.object)
            .finish_non_exhaustive()
    }
}

impl<K: Resource, I: Indexes<K>> CacheWrite<K, I> {
    pub(super) const fn new(cache: SharedCache<K, I>, source: RequestSource, object: Key, id: u64) -> Self {
        Self {
            cache,
            source,
            object,
            id,
            landed: false,
        }
    }

    /// The answer is this object, which is `part` our doing.
    ///
    /// # Errors
    /// As [`Cache::wrote`](super::Cache::wrote).
    pub fn wrote(mut self, object: K, part: AnswerContent) -> Result<(), MissingMetadata> {
        let written = Identity::of(&object)?;
        let cache = self.cache.clone();
        let mut state = cache.state();
        let known = state.cache.shows_exactly(&written);
        self.land(|untold| *untold != written.version);
        if part == AnswerContent::Mixed && !known {
            self.source.wake();
        }
        cache.answer(&mut state, &self.source, &written, |cache| cache.wrote(object))
    }

    /// The answer names this version, and carries no object that could enter the cache: the source is held until the cache
    /// shows it.
    pub fn wrote_version(mut self, written: &Identity, part: AnswerContent) {
        let cache = self.cache.clone();
        {
            let state = cache.state();
            let known = state.cache.shows_exactly(written);
            self.land(|untold| *untold != written.version);
            if part == AnswerContent::Mixed && !known {
                self.source.wake();
            }
        }
        cache.hold(&self.source, written);
    }

    /// The answer says that the object is gone.
    pub fn deleted(mut self, last: &Identity) {
        let cache = self.cache.clone();
        let mut state = cache.state();
        // Whatever happened to it before, it is gone by our will.
        self.land(|_| false);
        cache.own_writes(|own_writes| own_writes.answering(&self.source));
        state.cache.deleted(last);
        cache.own_writes(OwnWrites::quiet);
    }

    /// The server refused it, for a reason that has nothing to do with how old our view is.
    pub fn refused(mut self) {
        let cache = self.cache.clone();
        let _state = cache.state();
        self.land(|_| true);
    }

    /// To be called inside the lock.
    fn land(&mut self, foreign: impl Fn(&ResourceVersion) -> bool) {
        self.landed = true;
        let untold = self
            .cache
            .own_writes(|own_writes| own_writes.land(&self.object, self.id));
        if untold.iter().any(foreign) {
            self.source.wake();
        }
    }
}

impl<K: Resource, I: Indexes<K>> Drop for CacheWrite<K, I> {
    fn drop(&mut self) {
        if !self.landed {
            let cache = self.cache.clone();
            let state = cache.state();
            SharedCache::doubt(&state, &self.source, &self.object);
            self.land(|_| true);
        }
    }
}
