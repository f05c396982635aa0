//! One controller: the caches it reads, the queue between, and the workers that make passes.

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
use crate::write::{Mode, Writer};

use super::fault::Fault;
use super::next::Next;
use super::reconcile::{self, Ended};

/// What a controller does with a key: observe, plan, act.
///
/// A pass may be dropped at any await, and every key is looked at again after a start: what it relies on lies in the
/// API. It does not hear why it was woken.
pub trait Reconciler: Send + Sync + 'static {
    /// What is looked at: usually the [key](crate::cache::Key) of an object.
    type Key: Ord + Clone + fmt::Display + Send + Sync + 'static;
    /// What it may use of the API.
    type Role: Role;

    /// One pass. `writer` writes in the name of `key`: its own writes do not wake the key, so a pass that wants another
    /// one after a write returns [`Next::Requeue`].
    fn reconcile(
        &self,
        key: &Self::Key,
        writer: &Writer<Self::Role>,
    ) -> impl Future<Output = Result<Next, Fault>> + Send;
}

/// How a controller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Every pass under way was finished.
    Drained,
    /// The grace period was over before this many workers were done.
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

impl<C: Reconciler> fmt::Debug for Controller<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler> Controller<C> {
    /// A controller that reads nothing yet, with one worker and ten seconds of grace.
    pub fn new(name: &'static str, clock: Arc<dyn Clock>, writer: Writer<C::Role>, reconciler: C) -> Self {
        Self::with_queue(name, Queue::new(clock), writer, reconciler)
    }

    /// The same on a queue that is there already: where controllers wake each other's keys, their queues come before
    /// their reconcilers, which hold the [wakers](Queue::waker).
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

    /// Looks at the keys that `keys` names for each change of `cache`, and makes no pass before the first list of it is
    /// complete. Name a cache that decisions read even if its changes wake nobody.
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

    /// Makes no pass before `ready`: for a source that is no cache and that decisions read, such as the first answer of a
    /// feed.
    pub fn wait_for(mut self, ready: impl Future<Output = ()> + Send + 'static) -> Self {
        self.ready.push(Box::pin(ready));
        self
    }

    /// How many passes may run at once.
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How long passes may go on after the controller is told to stop.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Counts passes and the queue there.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// The queue: for its figures, and for its [waker](Queue::waker).
    #[must_use]
    pub const fn queue(&self) -> &Queue<C::Key> {
        &self.queue
    }

    /// Works until `stop`, then lets passes under way finish. Dropping the future abandons them.
    pub async fn run(self, stop: CancellationToken) -> Stopped {
        let queue = self.queue.clone();
        self.metrics.queue(self.name, move || queue.stats());
        let synced = futures::future::join_all(self.ready);
        if stop.run_until_cancelled(synced).await.is_none() {
            return Stopped::Drained;
        }
        let shift = Arc::new(WorkerContext {
            name: self.name,
            reconciler: self.reconciler,
            writer: self.writer,
            clock: self.clock,
            metrics: self.metrics.controller(self.name, self.workers),
            waiting: Mutex::default(),
        });
        let mut crew = JoinSet::new();
        for _ in 0..self.workers.max(1) {
            let (shift, queue) = (Arc::clone(&shift), self.queue.clone());
            crew.spawn(async move { shift.work(&queue).await });
        }
        stop.cancelled().await;
        self.queue.close();
        let drained = async { while crew.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, drained).await.is_ok() {
            return Stopped::Drained;
        }
        let left = crew.len();
        tracing::warn!(controller = self.name, left, "stopped in the middle of passes");
        crew.shutdown().await;
        Stopped::Abandoned(left)
    }
}

/// What the workers of one controller share.
struct WorkerContext<C: Reconciler> {
    name: &'static str,
    reconciler: Arc<C>,
    writer: Writer<C::Role>,
    clock: Arc<dyn Clock>,
    metrics: ControllerMetrics,
    /// What the keys that wait wait for, so that each reason is told once.
    waiting: Mutex<BTreeMap<C::Key, Reason>>,
}

impl<C: Reconciler> WorkerContext<C> {
    async fn work(&self, queue: &Queue<C::Key>) {
        while let Some(pass) = queue.take().await {
            self.pass(pass).await;
        }
    }

    async fn pass(&self, pass: WorkItem<C::Key>) {
        let began: Monotonic = self.clock.monotonic();
        let active = self.metrics.begin(pass.taken().waited);
        let writer = self.writer.for_key(pass.request_source());
        let ended = reconcile::run(self.reconciler.reconcile(pass.key(), &writer)).await;
        let ended = match writer.mode() {
            Mode::Perform => ended,
            Mode::ObserveOnly => ended.observed(),
        };
        let took = self.clock.monotonic().since(began);
        let news = self.is_news(pass.key(), &ended);
        reconcile::log(self.name, pass.taken(), &ended, news, took);
        if let Some(category) = ended.category() {
            active.failed(category);
        }
        active.end(ended.result(), took);
        pass.finish(ended.outcome());
    }

    fn is_news(&self, key: &C::Key, ended: &Ended) -> bool {
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
            // A fault in between does not make an old reason new.
            Ended::Failed(_) | Ended::Panicked(_) => false,
        }
    }
}
