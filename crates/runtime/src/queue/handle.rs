//! The queue between tasks: a lock, a clock and a timer around [`WorkQueue`].
//!
//! Adding never waits, so whoever delivers events may call it from inside the critical section of a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::request_source::RequestSource;
use super::stats::QueueStats;
use super::waker::Waker;
use super::work_queue::{Lane, Outcome, Taken, WorkQueue};

/// A handle to one queue; clones share it.
#[derive(Debug)]
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
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
    /// An empty queue that measures with `clock`. Its timers are the async runtime's, so the two must agree on how
    /// fast time passes.
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

    /// Wants `key` looked at. Does nothing once the queue is closed.
    pub fn add(&self, key: K, lane: Lane) {
        let news = self.with(|state, now| state.open && state.work.add(key, lane, now));
        if news {
            self.shared.changed.notify_one();
        }
    }

    /// A handle that can wake keys and nothing else: for sources that are no cache.
    #[must_use]
    pub fn waker(&self) -> Waker<K> {
        Waker::of(self.clone())
    }

    /// What it measures time with.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.shared.clock)
    }

    /// Waits for the next key; nothing once the queue is closed. Dropping the future loses no key.
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
                    // The next one that waits must hear of it too.
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

    /// Ends the queue: nothing is given out or taken in any more. Passes under way may finish.
    pub fn close(&self) {
        self.with(|state, _| state.open = false);
        self.shared.changed.notify_one();
    }

    /// What the queue can say about itself.
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
        // The key may be ready again, or due before what the others sleep for.
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
        // Read under the lock, so that the instants the queue sees never run backwards.
        let mut state = self.shared.state.lock();
        let now = self.shared.clock.monotonic();
        change(&mut state, now)
    }
}

enum Step<K> {
    Work { taken: Taken<K>, more: bool },
    Closed,
    Wait(Option<Duration>),
}

/// One pass over a key. Dropped without an outcome, by a panic or a cancelled task, it counts as failed: no key stays
/// behind as worked on for ever.
#[must_use = "dropping a pass counts as a failure"]
pub struct WorkItem<K: Ord + Clone> {
    queue: Queue<K>,
    taken: Taken<K>,
    finished: bool,
}

impl<K: Ord + Clone + fmt::Debug> fmt::Debug for WorkItem<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkItem")
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

impl<K: Ord + Clone> WorkItem<K> {
    /// The key to work on.
    #[must_use]
    pub const fn key(&self) -> &K {
        &self.taken.key
    }

    /// In whose name this pass writes.
    #[must_use]
    pub fn request_source(&self) -> RequestSource
    where
        K: Send + Sync + 'static,
    {
        RequestSource::new(self.queue.clone(), self.taken.key.clone())
    }

    /// What the queue knows about this pass.
    #[must_use]
    pub const fn taken(&self) -> &Taken<K> {
        &self.taken
    }

    /// Ends the pass.
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
