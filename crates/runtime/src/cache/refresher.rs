//! The task that ends the waits of a cache.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::queue::Hold;
use crate::version::ResourceVersion;

use super::identity::Key;
use super::shared::SharedCache;

/// A write whose effect the cache does not have.
#[derive(Debug)]
pub(crate) enum UncertainWrite {
    /// The outcome of the write is unknown, or it was rejected because the cached object was out of date. Its source
    /// waits until this value is dropped.
    Lost {
        /// The object.
        object: Key,
        /// Releases the source when it is dropped.
        _author: Hold,
    },
    /// The response could not enter the cache. The barrier holds the source until the cache has this version.
    Late(Key, ResourceVersion),
}

/// Receives the uncertain writes of one cache. Dropping it ends all waits for a version.
#[derive(Debug)]
pub(crate) struct CacheRefresher<K, I> {
    cache: SharedCache<K, I>,
    writes: UnboundedReceiver<UncertainWrite>,
}

impl<K, I> CacheRefresher<K, I> {
    pub(super) fn of(cache: SharedCache<K, I>) -> Self {
        let (sender, writes) = unbounded_channel();
        cache.state().set_refresher(sender);
        Self { cache, writes }
    }

    /// The next uncertain write. `None` when another refresher serves the cache.
    pub(crate) async fn next(&mut self) -> Option<UncertainWrite> {
        self.writes.recv().await
    }
}

impl<K, I> Drop for CacheRefresher<K, I> {
    fn drop(&mut self) {
        self.writes.close();
        self.cache.state().refresher_dropped();
    }
}
