//! The server as the outside holds it: a handle that is cheap to clone.
//!
//! One lock guards the state machine, the fault plan and the counters; it is never held across an await.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use metal3_api::crd::Definition;
use metal3_api::infrastructure::conversion::{self, Version};
use metal3_api::rules::Reviewer;
use metal3_domain::clock::Clock;
use metal3_sim_faults::Plan;
use serde_json::Value;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::audit::Audit;
use crate::service::Door;
use crate::store::{Convert, Mutate, Refusal, Request, Store, Validate};
use crate::time::TokioClock;

/// How a cluster starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// What uids and generated names follow from.
    pub seed: u64,
    /// Writes that can be looked back at: the reach of watches and of pages.
    pub history: usize,
    /// Where timestamps come from.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// A cluster whose time is tokio's, starting on a fixed day.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        // 2026-01-01T00:00:00Z, which always exists.
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
    /// What watches wait for. It wakes them in the order in which they came, so that the same run is the same again.
    written: Notify,
    /// Crashes so far.
    crashes: watch::Sender<u64>,
}

pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) faults: Plan,
    /// Whom they strike; nobody is named: everybody.
    pub(crate) struck: BTreeSet<String>,
    pub(crate) audit: Audit,
    witness: Option<Box<Witness>>,
}

/// A write, as a [witness](Cluster::witness) is told of it.
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// Its version.
    pub version: u64,
    /// The object as it is stored now, or as it was when it went.
    pub object: &'a Value,
    /// The object is no more.
    pub gone: bool,
}

type Witness = dyn FnMut(&Written<'_>) + Send;

impl State {
    /// Tells the witness of the writes after a version.
    fn tell(&mut self, after: u64) {
        let Some(witness) = &mut self.witness else { return };
        for entry in self.store.since(after) {
            witness(&Written {
                version: entry.version,
                object: &entry.new,
                gone: entry.gone,
            });
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

/// The conversion of the provider's own kinds.
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

    /// Another server that holds the same kinds, hooks and objects, and goes its own way from here on. It begins without
    /// faults, counts and watchers. To prepare one and copy it costs a fraction of what installing kinds does.
    #[must_use]
    pub fn fork(&self, clock: &Arc<dyn Clock>) -> Self {
        Self::of(self.with(|state| state.store.clone()), clock)
    }

    /// From here on uids and generated names follow from this seed: what two copies of one server need that are to differ.
    pub fn reseed(&self, seed: u64) {
        self.with(|state| state.store.reseed(seed));
    }

    fn of(store: Store, clock: &Arc<dyn Clock>) -> Self {
        let version = store.version();
        let state = State {
            store,
            faults: Plan::none(),
            struck: BTreeSet::new(),
            audit: Audit::default(),
            witness: None,
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

    /// A client of this cluster that asks as `user`.
    #[must_use]
    pub fn client(&self, user: &str) -> kube::Client {
        kube::Client::new(self.door(user), "default")
    }

    /// The service under a client, for those who bring their own layers.
    #[must_use]
    pub fn door(&self, user: &str) -> Door {
        Door::new(self.clone(), user)
    }

    /// Installs kinds as an administrator would: by creating their CRDs. Those that convert bring their conversion along.
    ///
    /// # Errors
    /// When the server refuses one.
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

    /// From now on requests suffer these faults.
    pub fn suffer(&self, faults: Plan) {
        self.suffer_as(&[], faults);
    }

    /// From now on requests of these users suffer these faults, and nobody else's. The plan does not see the others.
    pub fn suffer_as(&self, users: &[&str], faults: Plan) {
        self.with(|state| {
            state.faults = faults;
            state.struck = users.iter().map(|user| (*user).to_owned()).collect();
        });
    }

    /// How many requests the present faults have struck.
    pub fn struck(&self) -> u64 {
        self.with(|state| state.faults.struck())
    }

    /// From now on `witness` is told of every write, in the order of their versions and before anybody else can see it.
    /// It takes the place of an earlier one. It is called inside the server: asking this server anything waits for ever.
    pub fn witness(&self, witness: impl FnMut(&Written<'_>) + Send + 'static) {
        self.with(|state| state.witness = Some(Box::new(witness)));
    }

    /// Forgets all history: watches and pages that lag behind are told to start again.
    pub fn compact(&self) {
        self.with(|state| state.store.compact());
    }

    /// One pass of the controllers that delete dependents and empty namespaces. Says how many objects it deleted.
    pub fn collect_garbage(&self) -> usize {
        let now = self.now();
        self.with(|state| state.store.collect(now))
    }

    /// Collects garbage after every write, for ever: what a test runs beside its controllers.
    pub async fn run_collector(&self) {
        let mut seen = self.version();
        loop {
            // Made before the look, it hears of what comes after the look.
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

    /// Counts that change whenever the fault plan crashes a caller. Whoever runs the caller drops it then.
    #[must_use]
    pub fn crashes(&self) -> watch::Receiver<u64> {
        self.inner.crashes.subscribe()
    }

    /// The counters so far.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.with(|state| state.audit.clone())
    }

    /// Starts counting anew.
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

    /// Runs the rules of a kind in place of its webhooks.
    pub fn review(&self, reviewer: Reviewer) {
        self.with(|state| state.store.hooks().review(reviewer));
    }

    /// The version of the newest write.
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

    /// Works on the state and wakes the watches if it wrote.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        // A panic inside leaves a test that fails anyway; the state itself is written in small whole steps.
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.store.version();
        let done = work(&mut state);
        let version = state.store.version();
        if version != before {
            state.tell(before);
            self.inner.version.store(version, Ordering::Release);
        }
        drop(state);
        if version != before {
            self.inner.written.notify_waiters();
        }
        done
    }
}
