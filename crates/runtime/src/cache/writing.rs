//! A write between its request and its answer.

use std::fmt;

use kube_core::Resource;

use crate::queue::RequestSource;
use crate::version::ResourceVersion;

use super::echoes::OwnWrites;
use super::identity::{Identity, Key, MissingMetadata};
use super::index::Indexes;
use super::shared::SharedCache;

/// How much of what an answer shows is the doing of the one who wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All that is new in it.
    Ours,
    /// Less than that, or nobody can say: somebody else's change may have come with it. The author looks once more.
    More,
}

/// A write on its way. Dropped, it is one of which nobody knows what became, or one that was refused because our view
/// of the object is old: then its author is held until the object was read afresh.
#[must_use = "the answer belongs into it"]
pub struct Writing<K: Resource, I: Indexes<K> = ()> {
    cache: SharedCache<K, I>,
    author: RequestSource,
    object: Key,
    id: u64,
    landed: bool,
}

impl<K: Resource, I: Indexes<K>> fmt::Debug for Writing<K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writing")
            .field("object", &self.object)
            .finish_non_exhaustive()
    }
}

impl<K: Resource, I: Indexes<K>> Writing<K, I> {
    pub(super) const fn new(cache: SharedCache<K, I>, author: RequestSource, object: Key, id: u64) -> Self {
        Self {
            cache,
            author,
            object,
            id,
            landed: false,
        }
    }

    /// The answer is this object, which is `part` our doing.
    ///
    /// # Errors
    /// As [`Cache::wrote`](super::Cache::wrote).
    pub fn wrote(mut self, object: K, part: Part) -> Result<(), MissingMetadata> {
        let written = Identity::of(&object)?;
        let cache = self.cache.clone();
        let mut state = cache.state();
        let known = state.cache.shows_exactly(&written);
        self.land(|untold| *untold != written.version);
        if part == Part::More && !known {
            self.author.wake();
        }
        cache.answer(&mut state, &self.author, &written, |cache| cache.wrote(object))
    }

    /// The answer names this version, and carries no object that could enter the cache: the author is held until the cache
    /// shows it.
    pub fn wrote_elsewhere(mut self, written: &Identity, part: Part) {
        let cache = self.cache.clone();
        {
            let state = cache.state();
            let known = state.cache.shows_exactly(written);
            self.land(|untold| *untold != written.version);
            if part == Part::More && !known {
                self.author.wake();
            }
        }
        cache.hold(&self.author, written);
    }

    /// The answer says that the object is gone.
    pub fn deleted(mut self, last: &Identity) {
        let cache = self.cache.clone();
        let mut state = cache.state();
        // Whatever happened to it before, it is gone by our will.
        self.land(|_| false);
        cache.echoes(|echoes| echoes.answering(&self.author));
        state.cache.deleted(last);
        cache.echoes(OwnWrites::quiet);
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
        let untold = self.cache.echoes(|echoes| echoes.land(&self.object, self.id));
        if untold.iter().any(foreign) {
            self.author.wake();
        }
    }
}

impl<K: Resource, I: Indexes<K>> Drop for Writing<K, I> {
    fn drop(&mut self) {
        if !self.landed {
            let cache = self.cache.clone();
            let state = cache.state();
            SharedCache::doubt(&state, &self.author, &self.object);
            self.land(|_| true);
        }
    }
}
