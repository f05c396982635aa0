//! The queue between tasks: a lock, a clock and a timer around [`WorkQueue`].
//!
//! Adding never waits, so it may be called from inside the critical section of a cache.

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::stats::QueueStats;
use super::work_queue::{Lane, Outcome, Taken, WorkQueue};

/// A handle to one queue; clones share it.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    clock: Arc<dyn Clock>,
}

struct State<K> {
    work: WorkQueue<K>,
    open: bool,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue on `clock`. Its timers are those of the async runtime, so both must run at the same speed.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = Mutex::new(State {
            work: WorkQueue::default(),
            open: true,
        });
        Self {
            shared: Arc::new(Shared {
                state,
                changed: Notify::new(),
                clock,
            }),
        }
    }

    /// Enqueues `key`. Does nothing after the queue was closed.
    pub fn add(&self, key: K, lane: Lane) {
        let is_new = self.with(|state, now| state.open && state.work.add(key, lane, now));
        if is_new {
            self.shared.changed.notify_one();
        }
    }

    /// A handle that can only enqueue keys: for sources other than caches.
    #[must_use]
    pub fn waker(&self) -> Waker<K> {
        Waker { queue: self.clone() }
    }

    /// The clock of the queue.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.shared.clock)
    }

    /// Waits for the next key. `None` once the queue is closed. Dropping the future loses no key.
    pub async fn take(&self) -> Option<WorkItem<K>> {
        loop {
            let changed = self.shared.changed.notified();
            match self.with(Self::step) {
                Step::Work { taken, more } => {
                    if more {
                        self.shared.changed.notify_one();
                    }
                    return Some(WorkItem {
                        queue: self.clone(),
                        taken,
                        finished: false,
                    });
                }
                Step::Closed => {
                    // The next waiting worker has to return, too.
                    self.shared.changed.notify_one();
                    return None;
                }
                Step::Wait(None) => changed.await,
                Step::Wait(Some(pause)) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
        }
    }

    /// Closes the queue: it hands out and accepts no keys. Running reconciles may finish.
    pub fn close(&self) {
        self.with(|state, _| state.open = false);
        self.shared.changed.notify_one();
    }

    /// The statistics of the queue.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        self.with(|state, now| state.work.stats(now))
    }

    pub(super) fn hold(&self, key: K) {
        self.with(|state, now| state.work.hold(key, now));
    }

    pub(super) fn release(&self, key: &K) {
        if self.with(|state, now| state.work.release(key, now)) {
            self.shared.changed.notify_one();
        }
    }

    /// Whether both are handles to one queue.
    #[must_use]
    pub fn is_same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn finish(&self, key: &K, outcome: Outcome) {
        self.with(|state, now| state.work.finish(key, outcome, now));
        // The key may be ready again, or due before the time for which other workers sleep.
        self.shared.changed.notify_one();
    }

    fn step(state: &mut State<K>, now: Monotonic) -> Step<K> {
        if !state.open {
            return Step::Closed;
        }
        match state.work.take(now) {
            Some(taken) => Step::Work {
                taken,
                more: state.work.depth() > 0,
            },
            None => Step::Wait(state.work.next_due().map(|due| due.since(now))),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State<K>, Monotonic) -> T) -> T {
        // Read inside the lock, so that the instants never run backwards.
        let mut state = self.shared.state.lock();
        let now = self.shared.clock.monotonic();
        change(&mut state, now)
    }
}

/// Enqueues keys of one queue from sources other than caches: a change feed, a timer, another controller. It cannot take
/// work out and never waits, so any part of the program may hold one. Clones share the queue; after it was closed it does
/// nothing.
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

enum Step<K> {
    Work { taken: Taken<K>, more: bool },
    Closed,
    Wait(Option<Duration>),
}

/// A key in reconcile. Dropping it without an outcome, after a panic or a cancelled task, counts as a failure, so that
/// no key stays in work for ever.
#[must_use = "dropping a pass counts as a failure"]
pub struct WorkItem<K: Ord + Clone> {
    pub(super) queue: Queue<K>,
    taken: Taken<K>,
    finished: bool,
}

impl<K: Ord + Clone> WorkItem<K> {
    /// The key to reconcile.
    #[must_use]
    pub const fn key(&self) -> &K {
        &self.taken.key
    }

    /// Lane, wait and failures of this item.
    #[must_use]
    pub const fn taken(&self) -> &Taken<K> {
        &self.taken
    }

    /// Ends the reconcile.
    pub fn finish(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if !self.finished {
            self.finished = true;
            self.queue.finish(&self.taken.key, outcome);
        }
    }
}

impl<K: Ord + Clone> Drop for WorkItem<K> {
    fn drop(&mut self) {
        self.end(Outcome::Failed);
    }
}
