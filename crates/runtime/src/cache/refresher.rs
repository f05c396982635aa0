//! Who ends what a cache leaves open: the task that fills it.

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::queue::Hold;
use crate::version::ResourceVersion;

use super::identity::Key;
use super::shared::SharedCache;

/// An object of which we do not know what the server holds, or that the cache does not show yet.
#[derive(Debug)]
pub(crate) enum UncertainWrite {
    /// Nobody knows what became of a write, or our old view made it fail. Its source waits as long as the doubt lives.
    Lost {
        /// Which object.
        object: Key,
        /// Lets the source go with the doubt.
        _author: Hold,
    },
    /// The answer to a write could not enter the cache. Who waits for this version is in the barrier.
    Late(Key, ResourceVersion),
}

/// Hears of the doubts of one cache. With it ends every wait for a version.
#[derive(Debug)]
pub(crate) struct CacheRefresher<K, I> {
    cache: SharedCache<K, I>,
    doubts: UnboundedReceiver<UncertainWrite>,
}

impl<K, I> CacheRefresher<K, I> {
    pub(super) fn of(cache: SharedCache<K, I>) -> Self {
        let (sender, doubts) = unbounded_channel();
        cache.state().keep(sender);
        Self { cache, doubts }
    }

    /// The next doubt; nothing when somebody else keeps the cache now.
    pub(crate) async fn next(&mut self) -> Option<UncertainWrite> {
        self.doubts.recv().await
    }
}

impl<K, I> Drop for CacheRefresher<K, I> {
    fn drop(&mut self) {
        self.doubts.close();
        self.cache.state().unkept();
    }
}
