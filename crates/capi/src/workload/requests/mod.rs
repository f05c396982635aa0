//! The requests to workload clusters of one controller.
//!
//! A request holds a worker, which all tenants share, until the server of a tenant answers. [`state`] decides who may send
//! one; this module measures, and enqueues those that it names.
//!
//! differs: `workload-requests`

mod state;

use std::sync::Arc;
use std::time::Duration;

use metal3_runtime::cache::Key;
use metal3_runtime::work::{Category, Fault};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::waiter::{Waiter, Wakes};
use state::{Limits, State, Woken};

/// A request was not sent, because others are under way.
const BUSY: Category = Category::new("workload_busy");
/// What a key without a place waits for.
pub const BUSY_MESSAGE: &str = "other requests to workload clusters are under way, and this one is sent when one of them \
                                ends; if this lasts, API servers of workload clusters are slow or away, here or in other \
                                namespaces: see those of the Clusters that report an unreachable workload cluster";
/// When a key without a place is reconciled again if no end of another request enqueues it.
pub const BUSY_POLL: Duration = Duration::from_secs(5);
/// How long a worker waits for the server of a tenant.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a request was not sent, because others are under way. Then nothing is known of the cluster, and its key waits.
#[must_use]
pub fn is_busy(fault: &Fault) -> bool {
    fault.category() == BUSY.as_str()
}

/// The places for the requests of one controller.
pub(super) struct Requests {
    state: Mutex<State>,
    wakes: Arc<Wakes>,
    waiter: fn(Key) -> Waiter,
}

impl Requests {
    pub(super) fn new(wakes: &Arc<Wakes>, waiter: fn(Key) -> Waiter) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new(Limits::of(1))),
            wakes: Arc::clone(wakes),
            waiter,
        })
    }

    /// Sets the number of workers that send the requests.
    pub(super) fn set_workers(&self, workers: usize) {
        self.state.lock().limits = Limits::of(workers);
    }

    /// A place for the requests of the reconcile of `key` to a cluster of its namespace, or the fault that it waits for one.
    pub(super) fn begin<'a>(
        &'a self,
        cluster: &Key,
        key: &'a Key,
        op: impl Fn() -> String,
    ) -> Result<Place<'a>, Fault> {
        let (has_place, woken) = self.state.lock().begin(key, cluster, Instant::now());
        self.wake(woken);
        let place = Place { requests: self, key };
        has_place
            .then_some(place)
            .ok_or_else(|| Fault::transient(op(), BUSY, BUSY_MESSAGE))
    }

    /// Ends the wait of `key`.
    pub(super) fn leave(&self, key: &Key) {
        let woken = self.state.lock().leave(key, Instant::now());
        self.wake(woken);
    }

    /// Gives away the places of keys that were enqueued and not reconciled.
    pub(super) fn refresh(&self) {
        let woken = {
            let (mut state, now) = (self.state.lock(), Instant::now());
            state.forget(now);
            state.refresh(now)
        };
        self.wake(woken);
    }

    fn end(&self, key: &Key) {
        let woken = self.state.lock().end(key, Instant::now());
        self.wake(woken);
    }

    fn wake(&self, woken: Woken) {
        for key in woken {
            self.wakes.wake(&(self.waiter)(key));
        }
    }
}

/// The requests of one reconcile: its place, if it has one, ends when this is dropped.
#[derive(Default)]
#[must_use = "dropping it ends the place"]
pub struct Reconciled(Option<(Arc<Requests>, Key)>);

impl Reconciled {
    pub(super) fn new(requests: &Arc<Requests>, key: &Key) -> Self {
        Self(Some((Arc::clone(requests), key.clone())))
    }
}

impl Drop for Reconciled {
    fn drop(&mut self) {
        if let Some((requests, key)) = &self.0 {
            requests.end(key);
        }
    }
}

/// The place of a reconcile.
pub(super) struct Place<'a> {
    requests: &'a Requests,
    key: &'a Key,
}

impl Place<'_> {
    /// The response to one request. How long it takes, also if it is not awaited to its end, counts for its server.
    pub(super) async fn measured<T>(&self, request: impl Future<Output = T>) -> T {
        self.requests.state.lock().asked(self.key, Instant::now());
        let _sent = Sent(self);
        request.await
    }
}

struct Sent<'a>(&'a Place<'a>);

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let Place { requests, key } = self.0;
        let woken = requests.state.lock().answered(key, Instant::now());
        requests.wake(woken);
    }
}

/// What a worker awaits for a short time.
pub(super) async fn in_time<T>(op: impl Fn() -> String, requests: impl Future<Output = T>) -> Result<T, Fault> {
    let late = |_| Fault::transient(op(), Category::UNREACHABLE, "the workload cluster did not answer");
    timeout(REQUEST_TIMEOUT, requests).await.map_err(late)
}
