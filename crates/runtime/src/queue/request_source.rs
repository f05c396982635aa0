//! The source of a write: a key and its queue, without their types.
//!
//! Caches of any kind keep sources: to hold one until its write is in the cache, and to skip notifications of its own
//! writes.

use std::any::Any;
use std::sync::Arc;

use super::handle::{Queue, WorkItem};
use super::work_queue::Lane;

/// A key of a queue that sends a request.
#[derive(Clone)]
pub struct RequestSource(Arc<dyn SourceKey>);

trait SourceKey: Any + Send + Sync {
    fn enqueue(&self);
    fn hold(&self);
    fn release(&self);
}

struct KeyOf<K> {
    queue: Queue<K>,
    key: K,
}

impl<K: Ord + Clone + Send + Sync + 'static> SourceKey for KeyOf<K> {
    fn enqueue(&self) {
        self.queue.add(self.key.clone(), Lane::High);
    }

    fn hold(&self) {
        self.queue.hold(self.key.clone());
    }

    fn release(&self) {
        self.queue.release(&self.key);
    }
}

impl<K: Ord + Clone + Send + Sync + 'static> WorkItem<K> {
    /// The source of the writes of this reconcile.
    #[must_use]
    pub fn request_source(&self) -> RequestSource {
        RequestSource::new(self.queue.clone(), self.key().clone())
    }
}

impl RequestSource {
    /// `key` of `queue`.
    #[must_use]
    pub fn new<K: Ord + Clone + Send + Sync + 'static>(queue: Queue<K>, key: K) -> Self {
        Self(Arc::new(KeyOf { queue, key }))
    }

    /// Whether this is `key` of `queue`.
    #[must_use]
    pub fn is<K: Ord + Clone + Send + Sync + 'static>(&self, queue: &Queue<K>, key: &K) -> bool {
        let source: &dyn Any = &*self.0;
        let typed = source.downcast_ref::<KeyOf<K>>();
        typed.is_some_and(|own| own.key == *key && own.queue.is_same_queue(queue))
    }

    /// Enqueues the key.
    pub fn enqueue(&self) {
        self.0.enqueue();
    }

    /// Holds the key: the queue does not hand it out until the hold is dropped.
    #[must_use = "dropping a hold lets the key go"]
    pub fn hold(&self) -> Hold {
        self.0.hold();
        Hold(self.clone())
    }
}

/// Holds a key. A key may have several holds, in several caches; the queue hands it out after the last one.
pub struct Hold(RequestSource);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.0.release();
    }
}
