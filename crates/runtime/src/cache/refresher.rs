//! The task that ends the waits of a cache.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::shared::SharedCache;
use super::uncertain::UncertainWrite;

/// Receives the uncertain writes of one cache. Dropping it ends all waits for a version.
pub(crate) struct CacheRefresher<K, I> {
    cache: SharedCache<K, I>,
    writes: UnboundedReceiver<UncertainWrite>,
}

impl<K, I> SharedCache<K, I> {
    /// Registers the refresher of the cache: it receives uncertain writes and must end them.
    pub(crate) fn refresher(&self) -> CacheRefresher<K, I> {
        let (sender, writes) = unbounded_channel();
        self.state().set_refresher(sender);
        CacheRefresher {
            cache: self.clone(),
            writes,
        }
    }
}

impl<K, I> CacheRefresher<K, I> {
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
