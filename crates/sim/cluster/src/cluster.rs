//! The handle of a simulated API server, cheap to clone.
//!
//! One lock guards the state machine, the fault plan and the counters; it is never held across an await.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use metal3_api::crd::Definition;
use metal3_api::infrastructure::conversion::{self, Version};
use metal3_api::rules::Reviewer;
use metal3_domain::clock::Clock;
use metal3_sim_faults::Plan;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::audit::Audit;
use crate::store::{Convert, May, Mutate, Refusal, Request, Store, Validate};
use crate::time::TokioClock;

/// How a cluster starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed of uids and generated names.
    pub seed: u64,
    /// The number of writes that watches and pages can read back.
    pub history: usize,
    /// The clock of timestamps.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// Options with a tokio clock that starts on a fixed day.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        // 2026-01-01T00:00:00Z.
        let start = DateTime::<Utc>::from_timestamp(1_767_225_600, 0).unwrap_or_default();
        Self {
            seed,
            history: 50_000,
            clock: Arc::new(TokioClock::start_at(start)),
        }
    }
}

/// A simulated API server.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    /// The newest version.
    version: AtomicU64,
    /// Wakes watches in the order in which they wait, so that runs are deterministic.
    written: Notify,
    /// The number of injected crashes.
    crashes: watch::Sender<u64>,
}

pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) faults: Plan,
    /// The users that faults apply to; empty means all users.
    pub(crate) faulted_users: BTreeSet<String>,
    pub(crate) audit: Audit,
    observer: Option<Box<WriteObserver>>,
}

/// A write, as reported to [`Cluster::observe_writes`].
#[derive(Debug, Clone, Copy)]
pub struct WriteEvent<'a> {
    /// Resource version of the write.
    pub version: u64,
    /// The stored object, or its last state when deleted.
    pub object: &'a Value,
    /// Whether the write deleted the object.
    pub deleted: bool,
}

type WriteObserver = dyn FnMut(&WriteEvent<'_>) + Send;

impl State {
    /// Reports the writes after a version to the observer.
    fn notify_observer(&mut self, after: u64) {
        let Some(observer) = &mut self.observer else { return };
        for entry in self.store.since(after) {
            observer(&WriteEvent {
                version: entry.version,
                object: &entry.new,
                deleted: entry.deleted,
            });
        }
    }
}

/// Converts an object of the provider's kinds to an API version.
///
/// # Errors
/// When the version does not exist or the object does not convert.
pub fn provider_conversion(object: &Value, version: &str) -> Result<Value, String> {
    let version = Version::ALL.into_iter().find(|known| known.name() == version);
    let version = version.ok_or("no such version")?;
    conversion::convert(object, version).map_err(|error| error.to_string())
}

impl Cluster {
    /// Starts a cluster with the built-in kinds only.
    #[must_use]
    pub fn start(options: &Options) -> Self {
        Self::of(
            Store::new(options.seed, options.history, options.clock.now()),
            &options.clock,
        )
    }

    /// Copies the server with its kinds, hooks and objects, without faults, counts and watches. Copying a prepared
    /// server is much cheaper than installing its kinds again.
    #[must_use]
    pub fn fork(&self, clock: &Arc<dyn Clock>) -> Self {
        Self::of(self.with(|state| state.store.clone()), clock)
    }

    /// Sets the seed of further uids and generated names, so that two copies of a server differ.
    pub fn reseed(&self, seed: u64) {
        self.with(|state| state.store.reseed(seed));
    }

    fn of(store: Store, clock: &Arc<dyn Clock>) -> Self {
        let version = store.version();
        let state = State {
            store,
            faults: Plan::none(),
            faulted_users: BTreeSet::new(),
            audit: Audit::default(),
            observer: None,
        };
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                clock: Arc::clone(clock),
                version: AtomicU64::new(version),
                written: Notify::new(),
                crashes: watch::Sender::new(0),
            }),
        }
    }

    /// Installs kinds by creating their CRDs, with the conversion of those that have one.
    ///
    /// # Errors
    /// When the server rejects a CRD.
    pub fn install(&self, definitions: &[Definition]) -> Result<(), Refusal> {
        for definition in definitions {
            let request = Request {
                method: "POST".into(),
                path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(),
                content_type: "application/json".into(),
                user: "system:admin".into(),
                body: definition.manifest().to_string().into_bytes(),
                ..Request::default()
            };
            let now = self.now();
            self.with(|state| state.store.handle(&request, now).map(drop))?;
            if definition.conversion.is_some() {
                self.convert(definition.group, definition.kind, Arc::new(provider_conversion));
            }
        }
        Ok(())
    }

    /// Replaces the fault plan.
    pub fn inject(&self, faults: Plan) {
        self.inject_for(&[], faults);
    }

    /// Replaces the fault plan and limits it to requests of these users. The plan does not count other requests.
    pub fn inject_for(&self, users: &[&str], faults: Plan) {
        self.with(|state| {
            state.faults = faults;
            state.faulted_users = users.iter().map(|user| (*user).to_owned()).collect();
        });
    }

    /// The number of faults that the current plan injected.
    pub fn injected(&self) -> u64 {
        self.with(|state| state.faults.injected())
    }

    /// Calls `observer` for every write, in the order of versions and before a client can read it. Replaces an earlier
    /// observer. The server's lock is held: a call of this server from `observer` deadlocks.
    pub fn observe_writes(&self, observer: impl FnMut(&WriteEvent<'_>) + Send + 'static) {
        self.with(|state| state.observer = Some(Box::new(observer)));
    }

    /// Drops all history: watches and pages behind the current version receive 410.
    pub fn compact(&self) {
        self.with(|state| state.store.compact());
    }

    /// Runs one pass of the garbage collector and the namespace controller. Returns the number of deleted objects.
    pub fn collect_garbage(&self) -> usize {
        let now = self.now();
        self.with(|state| state.store.collect(now))
    }

    /// Collects garbage after every write, for ever. A test runs it concurrently with its controllers.
    pub async fn run_collector(&self) {
        let mut seen = self.version();
        loop {
            // Created before the read, so that it reports every write after the read.
            let written = self.written();
            if self.version() == seen {
                written.await;
            }
            seen = self.version();
            while self.collect_garbage() > 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The number of crashes that the fault plan injected. On a change the test drops the crashed caller.
    #[must_use]
    pub fn crashes(&self) -> watch::Receiver<u64> {
        self.inner.crashes.subscribe()
    }

    /// The counters so far.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.with(|state| state.audit.clone())
    }

    /// Resets the counters.
    pub fn reset_audit(&self) {
        self.with(|state| state.audit = Audit::default());
    }

    /// Runs `function` in place of a mutating webhook of a kind.
    pub fn mutate(&self, name: &str, group: &str, kind: &str, function: Arc<Mutate>) {
        self.with(|state| state.store.hooks().mutate(name, group, kind, function));
    }

    /// Runs `function` in place of a validating webhook of a kind.
    pub fn validate(&self, name: &str, group: &str, kind: &str, function: Arc<Validate>) {
        self.with(|state| state.store.hooks().validate(name, group, kind, function));
    }

    /// Runs `function` in place of the conversion webhook of a kind.
    pub fn convert(&self, group: &str, kind: &str, function: Arc<Convert>) {
        self.with(|state| state.store.hooks().convert(group, kind, function));
    }

    /// Runs the rules of a kind in place of its admission webhooks.
    pub fn review(&self, reviewer: Reviewer) {
        self.with(|state| state.store.hooks().review(reviewer));
    }

    /// Switches the admission plugin `OwnerReferencesPermissionEnforcement` on, with these permissions of users.
    pub fn enforce_owner_permissions(&self, may: Arc<May>) {
        self.with(|state| state.store.owner_permissions().enforce(may));
    }

    /// The resource version of the newest write.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.inner.version.load(Ordering::Acquire)
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.inner.clock.now()
    }

    /// The next write after this call.
    pub(crate) fn written(&self) -> Notified<'_> {
        self.inner.written.notified()
    }

    pub(crate) fn crash(&self) {
        self.inner.crashes.send_modify(|count| *count = count.saturating_add(1));
    }

    /// Runs `work` on the state and wakes the watches after a write.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.inner.state.lock();
        let before = state.store.version();
        let done = work(&mut state);
        let version = state.store.version();
        if version != before {
            state.notify_observer(before);
            self.inner.version.store(version, Ordering::Release);
        }
        drop(state);
        if version != before {
            self.inner.written.notify_waiters();
        }
        done
    }
}
