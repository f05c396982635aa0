//! Signs of life of a watch, for health checks and metrics.

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::task::SILENCE_LIMIT;
use crate::work::Class;

/// How long a watch may bring nothing, renewals included, before its process is better started anew.
const DEAD: Duration = SILENCE_LIMIT.saturating_mul(3);

/// What a watch has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchStats {
    /// Lists that were read to their end.
    pub lists: u64,
    /// Watches that were begun.
    pub watches: u64,
    /// Changes that were told.
    pub events: u64,
    /// Bookmarks that were told.
    pub bookmarks: u64,
    /// Watches that said nothing for too long.
    pub frozen: u64,
    /// Attempts that failed, frozen watches among them.
    pub failures: u64,
}

/// What is refused again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// The verb of the request.
    pub verb: &'static str,
    /// What the answer means, where there is one.
    pub class: Option<Class>,
    /// Whether the same request would be refused again, however often.
    pub is_final: bool,
    /// In the server's words.
    pub why: String,
}

impl Failing {
    /// Whether the same is refused, in whatever words.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let sort = |one: &Self| (one.verb, one.class.as_ref().map(std::mem::discriminant), one.is_final);
        sort(self) == sort(other)
    }
}

/// Whether the server serves the watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Service {
    /// The first list is under way.
    #[default]
    Begins,
    /// It does.
    Well,
    /// Nothing came of the last attempts.
    Fails(Failing),
}

/// A handle to the signs of life of one watch; clones share it.
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
    trouble: Option<String>,
    figures: WatchStats,
}

impl WatchHealth {
    pub(super) fn new(kind: &str, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            last: clock.monotonic(),
            trouble: None,
            figures: WatchStats::default(),
        };
        Self {
            kind: kind.into(),
            clock,
            state: Arc::new(Mutex::new(state)),
            service: Arc::default(),
        }
    }

    /// The kind that is watched.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Time since the server last said something sensible.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        let last = self.state().last;
        self.clock.monotonic().since(last)
    }

    /// Whether the watch is worth keeping. A process whose watch is not, and whose server is well, should end.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.silent_for() < DEAD
    }

    /// What goes wrong, since the last success.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Waits until the server serves the watch: it has listed, and nothing fails again and again.
    pub async fn served(&self) {
        // Fails only when the sender is gone, and `self` holds it.
        let _ = self
            .service
            .subscribe()
            .wait_for(|service| *service == Service::Well)
            .await;
    }

    /// Waits until attempts fail again and again, and says what fails. One that broke, and goes on, is no failure.
    pub async fn failing(&self) -> Failing {
        let mut service = self.service.subscribe();
        loop {
            if let Service::Fails(failing) = &*service.borrow_and_update() {
                return failing.clone();
            }
            // Fails only when the sender is gone, and `self` holds it.
            let _ = service.changed().await;
        }
    }

    /// What fails at this moment, if attempts fail again and again.
    pub(super) fn failing_now(&self) -> Option<Failing> {
        match &*self.service.borrow() {
            Service::Fails(failing) => Some(failing.clone()),
            Service::Begins | Service::Well => None,
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> WatchStats {
        self.state().figures
    }

    /// The server said something sensible.
    pub(super) fn beat(&self, count: impl FnOnce(&mut WatchStats)) {
        let now = self.clock.monotonic();
        let mut state = self.state();
        count(&mut state.figures);
        state.last = now;
        state.trouble = None;
        drop(state);
        self.accepted();
    }

    /// The server does what it is asked for. That is no sign of life yet: it may fall silent.
    pub(super) fn accepted(&self) {
        let well = |service: &mut Service| std::mem::replace(service, Service::Well) != Service::Well;
        self.service.send_if_modified(well);
    }

    /// Nothing came of the last attempts.
    pub(super) fn fails(&self, failing: Failing) {
        self.service.send_if_modified(|service| {
            let is_news = !matches!(service, Service::Fails(_));
            *service = Service::Fails(failing);
            is_news
        });
    }

    /// Something that is no sign of life.
    pub(super) fn note(&self, trouble: Option<String>, count: impl FnOnce(&mut WatchStats)) {
        let mut state = self.state();
        count(&mut state.figures);
        if trouble.is_some() {
            state.trouble = trouble;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
