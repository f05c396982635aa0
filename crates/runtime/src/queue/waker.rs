//! Waking keys from what is no cache: a feed of another system, a timer of its own, a pass of another controller.
//!
//! A waker carries keys only, like everything that reaches a queue. It cannot take work out, so it may be handed to
//! anybody, and it never waits.

use super::handle::Queue;
use super::work_queue::Lane;

/// A handle that wakes keys of one queue; clones share it. Once the queue is closed it does nothing.
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

    /// Something happened that concerns `key`. One that is being worked on runs once more.
    pub fn enqueue(&self, key: K) {
        self.queue.add(key, Lane::High);
    }

    /// Nothing is known to have happened to `keys`, but they are to be looked at: the first answer of a feed, or the
    /// first after a break. What happens meanwhile goes first.
    pub fn enqueue_low_priority(&self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.queue.add(key, Lane::Low);
        }
    }
}
