//! Health of a watch, for probes and metrics.

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::cache::Unwatched;
use crate::metrics::{Metrics, WatchFigures};
use crate::work::Class;

/// The longest silence of a watch. Servers send a bookmark within 75 seconds; this is two missed bookmarks.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(160);
/// After this silence, renewals included, the process should be restarted.
const RESTART_AFTER: Duration = SILENCE_LIMIT.saturating_mul(3);

/// Counters of a watch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchStats {
    /// Completed lists.
    pub lists: u64,
    /// Started watches.
    pub watches: u64,
    /// Delivered changes.
    pub events: u64,
    /// Delivered bookmarks.
    pub bookmarks: u64,
    /// Watches that were silent for too long.
    pub frozen: u64,
    /// Failed attempts, silent watches included.
    pub failures: u64,
}

/// A request that fails repeatedly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// The verb of the request.
    pub verb: &'static str,
    /// The class of the error, if the server responded.
    pub class: Option<Class>,
    /// Whether the same request would fail again, however often it is sent.
    pub is_final: bool,
    /// The error message.
    pub why: String,
}

impl Failing {
    /// Whether both fail in the same way, apart from the message.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let sort = |one: &Self| (one.verb, one.class.as_ref().map(std::mem::discriminant), one.is_final);
        sort(self) == sort(other)
    }
}

/// Whether the server serves the watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Service {
    /// The first list is not complete.
    #[default]
    Starting,
    /// The server serves it.
    Served,
    /// The last attempts failed.
    Failing(Failing),
}

/// A handle to the health of one watch; clones share it.
#[derive(Debug, Clone)]
pub struct WatchHealth {
    kind: Arc<str>,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
    service: Arc<watch::Sender<Service>>,
}

#[derive(Debug)]
struct State {
    last: Monotonic,
    last_error: Option<String>,
    /// Why an optional kind is not watched.
    unwatched: Option<Unwatched>,
    stats: WatchStats,
}

impl WatchHealth {
    pub(super) fn new(kind: &str, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            last: clock.monotonic(),
            last_error: None,
            unwatched: None,
            stats: WatchStats::default(),
        };
        Self {
            kind: kind.into(),
            clock,
            state: Arc::new(Mutex::new(state)),
            service: Arc::default(),
        }
    }

    /// The watched kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Time since the last event, bookmark or list.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        let last = self.state.lock().last;
        self.clock.monotonic().since(last)
    }

    /// Whether the watch delivers, or the kind is optional and not watched. A process whose watch does not, while its server
    /// is served, should restart.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.unwatched().is_some() || self.silent_for() < RESTART_AFTER
    }

    /// Why the kind is not watched, if it is optional and the server refuses it.
    #[must_use]
    pub fn unwatched(&self) -> Option<Unwatched> {
        self.state.lock().unwatched
    }

    /// The last error since the last success.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.state.lock().last_error.clone()
    }

    /// Waits until the server serves the watch: the first list is complete, and attempts do not fail repeatedly.
    pub async fn served(&self) {
        // Fails only without a sender, and `self` holds it.
        let _ = self
            .service
            .subscribe()
            .wait_for(|service| *service == Service::Served)
            .await;
    }

    /// Waits until attempts fail repeatedly, and returns the failure. A watch that broke and resumed is no failure.
    pub async fn failing(&self) -> Failing {
        let mut service = self.service.subscribe();
        loop {
            if let Service::Failing(failing) = &*service.borrow_and_update() {
                return failing.clone();
            }
            // Fails only without a sender, and `self` holds it.
            let _ = service.changed().await;
        }
    }

    /// The current failure, if attempts fail repeatedly.
    pub(super) fn failing_now(&self) -> Option<Failing> {
        match &*self.service.borrow() {
            Service::Failing(failing) => Some(failing.clone()),
            Service::Starting | Service::Served => None,
        }
    }

    /// Reports the watch to `metrics`.
    pub fn report(&self, metrics: &Metrics) {
        let health = self.clone();
        metrics.watch(&self.kind, move || WatchFigures {
            silent: health.silent_for(),
            failures: health.stats().failures,
        });
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> WatchStats {
        self.state.lock().stats
    }

    /// The watch begins: it was not silent before.
    pub(super) fn started(&self) {
        self.state.lock().last = self.clock.monotonic();
    }

    /// An event, bookmark or list was received.
    pub(super) fn record_success(&self, count: impl FnOnce(&mut WatchStats)) {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        count(&mut state.stats);
        state.last = now;
        state.last_error = None;
        state.unwatched = None;
        drop(state);
        self.accepted();
    }

    /// The server refuses an optional kind. Returns whether that is new.
    pub(super) fn set_unwatched(&self, why: Unwatched) -> bool {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        // It is looked for again in a while, which is no silence.
        state.last = now;
        state.unwatched.replace(why) != Some(why)
    }

    /// The server accepted the request. The watch may still be silent afterwards.
    pub(super) fn accepted(&self) {
        let served = |service: &mut Service| std::mem::replace(service, Service::Served) != Service::Served;
        self.service.send_if_modified(served);
    }

    /// The last attempts failed.
    pub(super) fn set_failing(&self, failing: Failing) {
        self.service.send_if_modified(|service| {
            let is_new = !matches!(service, Service::Failing(_));
            *service = Service::Failing(failing);
            is_new
        });
    }

    /// Counts something that is not a delivery.
    pub(super) fn record(&self, last_error: Option<String>, count: impl FnOnce(&mut WatchStats)) {
        let mut state = self.state.lock();
        count(&mut state.stats);
        if last_error.is_some() {
            state.last_error = last_error;
        }
    }
}
