//! Enqueuing keys from sources other than caches: a change feed, a timer, another controller.
//!
//! A waker can only enqueue keys. It cannot take work out and never waits, so any part of the program may hold one.

use super::handle::Queue;
use super::work_queue::Lane;

/// A handle that enqueues keys of one queue; clones share it. It does nothing after the queue was closed.
#[derive(Debug)]
pub struct Waker<K> {
    queue: Queue<K>,
}

impl<K> Clone for Waker<K> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

impl<K: Ord + Clone> Waker<K> {
    pub(super) const fn of(queue: Queue<K>) -> Self {
        Self { queue }
    }

    /// An event concerns `key`. A key in reconcile is reconciled once more.
    pub fn enqueue(&self, key: K) {
        self.queue.add(key, Lane::High);
    }

    /// No event concerns `keys`, but they have to be reconciled: after the first list of a feed, or after an
    /// interruption. Keys with events go first.
    pub fn enqueue_low_priority(&self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.queue.add(key, Lane::Low);
        }
    }
}
