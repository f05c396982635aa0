//! A controller: the caches it reads, its queue, and its workers.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kube_core::Resource;
use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::Role;
use crate::cache::{Change, Indexes, SharedCache};
use crate::metrics::{ControllerMetrics, Metrics};
use crate::queue::{Queue, WorkItem};
use crate::reason::Reason;
use crate::write::{Mode, Work, Writer};

use super::fault::Fault;
use super::next::Next;
use super::reconcile::{self, Ended};

/// What a controller does with a key: observe, plan, act.
///
/// A reconcile may be dropped at any await, and each key is reconciled again after a start: everything it relies on is
/// in the API. It does not receive the reason why its key was enqueued.
pub trait Reconciler: Send + Sync + 'static {
    /// Usually the [key](crate::cache::Key) of an object.
    type Key: Ord + Clone + fmt::Display + Send + Sync + 'static;
    /// The permissions of its requests.
    type Role: Role;

    /// Reconciles `key` once. `writer` writes with `key` as the source: its writes do not enqueue the key, so a
    /// reconcile that needs another one after a write returns [`Next::Requeue`].
    fn reconcile(
        &self,
        key: &Self::Key,
        writer: &Writer<Self::Role>,
    ) -> impl Future<Output = Result<Next, Fault>> + Send;
}

/// How a controller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Every running reconcile finished.
    Drained,
    /// The grace period ended before this many workers finished.
    Abandoned(usize),
}

/// A controller before it runs.
///
/// ```no_run
#[doc = include_str!("example.rs")]
/// ```
#[must_use = "it does nothing until it runs"]
pub struct Controller<C: Reconciler> {
    name: &'static str,
    reconciler: Arc<C>,
    writer: Writer<C::Role>,
    queue: Queue<C::Key>,
    clock: Arc<dyn Clock>,
    workers: usize,
    grace: Duration,
    metrics: Metrics,
    ready: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<C: Reconciler> Controller<C> {
    /// A controller without caches, with one worker and ten seconds of grace.
    pub fn new(name: &'static str, clock: Arc<dyn Clock>, writer: Writer<C::Role>, reconciler: C) -> Self {
        Self::with_queue(name, Queue::new(clock), writer, reconciler)
    }

    /// The same with an existing queue: where controllers enqueue each other's keys, their queues exist before their
    /// reconcilers, which hold the [wakers](Queue::waker).
    pub fn with_queue(name: &'static str, queue: Queue<C::Key>, writer: Writer<C::Role>, reconciler: C) -> Self {
        Self {
            name,
            reconciler: Arc::new(reconciler),
            writer,
            clock: queue.clock(),
            queue,
            workers: 1,
            grace: Duration::from_secs(10),
            metrics: Metrics::new(),
            ready: Vec::new(),
        }
    }

    /// Reconciles the keys that `keys` derives from each change of `cache`, and reconciles nothing before the first
    /// list of it is complete. Name each cache that decisions read, even if its changes enqueue no key.
    pub fn watches<K, I, M, T>(mut self, cache: &SharedCache<K, I>, keys: M) -> Self
    where
        K: Resource + Send + Sync + 'static,
        I: Indexes<K> + Send + 'static,
        M: Fn(&Change<'_, K>) -> T + Send + 'static,
        T: IntoIterator<Item = C::Key>,
    {
        cache.enqueue_changes(&self.queue, keys);
        let cache = cache.clone();
        self.ready.push(Box::pin(async move { cache.synced().await }));
        self
    }

    /// Reconciles nothing before `ready`: for a source other than a cache that decisions read, such as the first list
    /// of a feed.
    pub fn wait_for(mut self, ready: impl Future<Output = ()> + Send + 'static) -> Self {
        self.ready.push(Box::pin(ready));
        self
    }

    /// The number of concurrent reconciles.
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How long running reconciles may continue after a stop.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Reports reconciles and the queue to `metrics`.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// The queue: for its statistics, and for its [waker](Queue::waker).
    #[must_use]
    pub const fn queue(&self) -> &Queue<C::Key> {
        &self.queue
    }

    /// Runs until `stop`, then lets running reconciles finish. Dropping the future abandons them.
    pub async fn run(self, stop: CancellationToken) -> Stopped {
        let (queue, clock) = (self.queue.clone(), Arc::clone(&self.clock));
        let began = clock.monotonic();
        self.metrics.queue(self.name, move || {
            let mut stats = queue.stats();
            // A standby fills its queue and takes nothing from it.
            stats.oldest_ready = stats.oldest_ready.min(clock.monotonic().since(began));
            stats
        });
        let synced = futures::future::join_all(self.ready);
        self.writer.report_work(Work::FirstLists, true);
        if stop.run_until_cancelled(synced).await.is_none() {
            return Stopped::Drained;
        }
        self.writer.report_work(Work::FirstLists, false);
        let context = Arc::new(WorkerContext {
            name: self.name,
            reconciler: self.reconciler,
            writer: self.writer,
            clock: self.clock,
            metrics: self.metrics.controller(self.name, self.workers),
            waiting: Mutex::default(),
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.workers.max(1) {
            let (context, queue) = (Arc::clone(&context), self.queue.clone());
            workers.spawn(async move { context.work(&queue).await });
        }
        stop.cancelled().await;
        self.queue.close();
        let drained = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, drained).await.is_ok() {
            return Stopped::Drained;
        }
        let left = workers.len();
        tracing::warn!(controller = self.name, left, "stopped with running reconciles");
        workers.shutdown().await;
        Stopped::Abandoned(left)
    }
}

/// State that the workers of one controller share.
struct WorkerContext<C: Reconciler> {
    name: &'static str,
    reconciler: Arc<C>,
    writer: Writer<C::Role>,
    clock: Arc<dyn Clock>,
    metrics: ControllerMetrics,
    /// The reason of each waiting key, for the gauge of waits and the log.
    waiting: Mutex<BTreeMap<C::Key, Reason>>,
}

impl<C: Reconciler> WorkerContext<C> {
    async fn work(&self, queue: &Queue<C::Key>) {
        while let Some(item) = queue.take().await {
            self.reconcile(item).await;
        }
    }

    async fn reconcile(&self, item: WorkItem<C::Key>) {
        let began: Monotonic = self.clock.monotonic();
        let active = self.metrics.begin(item.taken().waited);
        let writer = self.writer.for_key(item.request_source());
        writer.report_work(Work::Reconcile, true);
        let ended = reconcile::run(self.reconciler.reconcile(item.key(), &writer)).await;
        writer.report_work(Work::Reconcile, false);
        let ended = match writer.mode() {
            Mode::Perform => ended,
            Mode::ObserveOnly => ended.observed(),
        };
        writer.report_reconcile(self.name, item.key(), ended.failure());
        let took = self.clock.monotonic().since(began);
        let is_new_reason = self.count_wait(item.key(), &ended);
        reconcile::log(self.name, item.taken(), &ended, is_new_reason, took);
        if let Some(category) = ended.category() {
            active.failed(category);
        }
        active.end(ended.result(), took);
        item.finish(ended.outcome());
    }

    /// Counts the waiting keys by reason, and returns whether this one waits for a new reason.
    fn count_wait(&self, key: &C::Key, ended: &Ended) -> bool {
        let mut waiting = self.waiting.lock();
        match ended {
            Ended::Ok(Next::Waiting(on)) => {
                let before = waiting.insert(key.clone(), on.reason);
                self.metrics.waits(before, Some(on.reason));
                before != Some(on.reason)
            }
            Ended::Ok(Next::Done | Next::Requeue | Next::RequeueAfter(_)) => {
                self.metrics.waits(waiting.remove(key), None);
                false
            }
            // A fault in between does not end the wait.
            Ended::Failed(_) | Ended::Panicked(_) => false,
        }
    }
}
