//! The controller: one key a host.
//!
//! | Step | Where |
//! |---|---|
//! | which hosts a change concerns | [`caches`], `records`, `metal` |
//! | what is known: caches, change feed, live reads | `evidence`, `look` |
//! | what to do | [`crate::plan`] |
//! | doing it | `act` |
//!
//! A pass looks, plans and acts in rounds until its plan neither asks nor goes on. It decides nothing itself.

mod act;
pub mod caches;
mod evidence;
mod figures;
mod logins;
mod look;
mod metal;
mod records;

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::Clock;
use metal3_ironic::Client;
use metal3_runtime::cache::{Change, Found, Key, SharedCache};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::live::Live;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::queue::Queue;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::{Category, Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;
use tokio_util::sync::CancellationToken;

use crate::action::{Place, Plan, Wait};
use crate::facts::{Facts, NodeSeen, Read};
use crate::needs::Hosts;
use crate::plan::plan;
use crate::settings::Settings;

pub use act::Permit;
pub use records::Brake;

use act::{Act, Ended};
use caches::Caches;
use evidence::{Evidence, NodeView};
use figures::HostFigures;
use logins::Logins;
use look::Look;
use metal::Metal;
use records::Records;

/// Rounds of looking and acting in one pass: enough for a host's longest way without a wait.
const ROUNDS: usize = 16;
/// How long a host that waits for the change feed to come by stays asleep when nothing of its node changes: a little
/// longer than the feed takes when all is calm.
const COME_BY: Duration = Duration::from_secs(12);
/// Why a pass waits.
const OBJECT_UNREADABLE: Reason = Reason::new("ObjectUnreadable");
/// Ironic did not take what a pass asked for.
const REFUSED: Category = Category::new("ironic_refused");

/// What the controller is made of.
pub struct Parts {
    /// To read Secrets.
    pub client: kube::Client,
    /// What is watched. Nothing may have filled them yet.
    pub caches: Caches,
    /// Ironic.
    pub ironic: Client,
    /// Whether a request to Ironic may leave now.
    pub permit: Permit,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where events are told.
    pub events: EventRecorder,
    /// Where figures are shown.
    pub metrics: Metrics,
    /// Flags that decisions turn on.
    pub settings: Settings,
    /// How many provisioned hosts may be torn down in a period.
    pub brake: Brake,
    /// How many hosts may load the provisioning network at once.
    pub slots: usize,
    /// Hosts at once.
    pub workers: usize,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("settings", &self.settings)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// The reconciler of hosts.
pub struct Reconcile {
    look: Look,
    records: Records,
    logins: Logins,
    permit: Permit,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    figures: HostFigures,
    settings: Settings,
    brake: Brake,
}

impl fmt::Debug for Reconcile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconcile")
            .field("look", &self.look)
            .finish_non_exhaustive()
    }
}

/// The controller, and the task that follows Ironic beside it.
#[must_use = "it does nothing until it runs"]
#[derive(Debug)]
pub struct Running {
    controller: Controller<Reconcile>,
    metal: Metal,
    hosts: SharedCache<BareMetalHost>,
}

impl Running {
    /// Works until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let following = stop.child_token();
        let hosts = self.hosts;
        let follow = self
            .metal
            .follow(async move { hosts.synced().await }, following.clone());
        let work = async {
            self.controller.run(stop).await;
            // Passes under way at the stop may still look at Ironic.
            following.cancel();
        };
        futures::future::join(work, follow).await;
    }
}

/// The controller of hosts, ready to run. It follows the caches from now on.
pub fn controller(parts: Parts, writer: Writer<Hosts>) -> Running {
    let records = Records::following(&parts.caches.hosts, Arc::clone(&parts.clock));
    let queue = Queue::new(Arc::clone(&parts.clock));
    let metal = Metal::new(
        parts.ironic,
        Arc::clone(&parts.clock),
        records.clone(),
        queue.waker(),
        parts.slots,
    );
    let look = Look {
        secrets: Live::new(parts.client, &parts.caches.secrets),
        caches: parts.caches.clone(),
        metal: metal.clone(),
    };
    let of_secret = records.clone();
    let reconcile = Reconcile {
        look,
        records,
        logins: Logins::default(),
        permit: parts.permit,
        clock: parts.clock,
        events: parts.events,
        figures: HostFigures::register(&parts.metrics),
        settings: parts.settings,
        brake: parts.brake,
    };
    let own = |key: Option<Key>| key.into_iter().collect::<Vec<_>>();
    let controller = Controller::on("baremetalhost", queue, writer, reconcile)
        .reads(&parts.caches.hosts, move |change| own(change.key()))
        .reads(&parts.caches.hardware, move |change| own(change.key()))
        .reads(&parts.caches.secrets, move |change: &Change<'_, _>| {
            change
                .key()
                .map(|secret| of_secret.hosts_of_secret(&secret))
                .unwrap_or_default()
        })
        .after(metal.clone().listed())
        .workers(parts.workers)
        .metrics(&parts.metrics);
    Running {
        controller,
        metal,
        hosts: parts.caches.hosts,
    }
}

impl Reconciler for Reconcile {
    type Key = Key;
    type Role = Hosts;

    async fn reconcile(&self, key: &Key, writer: &Writer<Hosts>) -> Result<Next, Fault> {
        let host = match self.look.caches.hosts.find(key) {
            Found::Live(host) => host,
            Found::Absent => {
                self.gone(key);
                return Ok(Next::Done);
            }
            Found::Unreadable { why } => return Ok(Next::waiting(OBJECT_UNREADABLE, why)),
            Found::Unknown => return Err(Fault::bug("a pass before the first list of hosts")),
        };
        let refused = self.records.refused(key, host.metadata.generation);
        let mut seen = self.look.glance(host, refused);
        let mut was_refused = false;
        for _ in 0..ROUNDS {
            let plan = self.plan(key, &seen);
            if !plan.reads.is_empty() {
                for read in &plan.reads {
                    if !self.look.answer(*read, &mut seen, writer).await? {
                        return Ok(Next::Requeue);
                    }
                }
                continue;
            }
            if plan.spends_budget && !self.records.spend(key, &self.brake, self.clock.now()) {
                // Another host took the last one since the plan was made.
                continue;
            }
            let wait = plan.wait.clone();
            match self.act(key, plan, &mut seen, writer).await? {
                Ended::Done if wait == Wait::Again => {}
                Ended::Done => return Ok(next(&wait, &seen)),
                Ended::Shown => return Ok(Next::Done),
                // Once more with what is known then; twice in one pass would be a loop.
                Ended::Refused if !was_refused => was_refused = true,
                Ended::Refused => return Err(not_taken(&seen)),
            }
        }
        Ok(Next::Requeue)
    }
}

impl Reconcile {
    fn plan(&self, key: &Key, seen: &Evidence) -> Plan {
        let now = self.clock.now();
        let outage = self.look.metal.outage();
        let facts = Facts {
            outage: outage.as_ref(),
            host: &seen.host,
            host_seen: seen.host_seen,
            before: self.records.before(key),
            credentials: seen.secret(Read::Credentials),
            same_login: self.same_login(key, seen),
            user_data: seen.secret(Read::UserData),
            network_data: seen.secret(Read::NetworkData),
            meta_data: seen.secret(Read::MetaData),
            agent_network: seen.secret(Read::AgentNetwork),
            hardware_data: seen.hardware_sight(),
            node: seen.node_sight(),
            ports: seen.ports_sight(),
            inventory: seen.inventory_sight(),
            validation: seen.validation_sight(),
            last_history_error: seen.history_sight(),
            refused: seen.refused.as_ref(),
            turn: seen.turn,
            budget: self.records.budget(key, &self.brake, now),
            settings: &self.settings,
            jitter: jitter(key),
            now: Time::new(now),
        };
        plan(&facts)
    }

    fn same_login(&self, key: &Key, seen: &Evidence) -> Option<Duration> {
        let recorded = seen.host.status.tried_credentials.credentials_version.as_deref();
        let (secret, now) = (seen.secret(Read::Credentials).found()?, self.clock.monotonic());
        self.logins
            .unchanged_for(key, recorded.unwrap_or_default(), secret, now)
    }

    async fn act(&self, key: &Key, plan: Plan, seen: &mut Evidence, writer: &Writer<Hosts>) -> Result<Ended, Fault> {
        let hands = Act {
            key,
            caches: &self.look.caches,
            metal: &self.look.metal,
            records: &self.records,
            permit: &self.permit,
            writer,
        };
        let ended = hands.perform(plan.steps, seen).await?;
        if ended == Ended::Done {
            for event in plan.events {
                self.events
                    .tell(&*seen.host, event.importance, event.reason, event.message);
            }
            self.figures.count(key, &plan.counts);
            if plan.place == Place::Leave {
                self.look.metal.leave(key);
            }
        }
        Ok(ended)
    }

    /// Nothing is kept of a host that is gone.
    fn gone(&self, key: &Key) {
        self.look.metal.leave(key);
        self.logins.forget(key);
        self.figures.forget(key);
    }
}

fn next(wait: &Wait, seen: &Evidence) -> Next {
    match wait {
        Wait::After(pause, _) => Next::RequeueAfter(*pause),
        // The feed wakes the host when the node changed; that it did not change has to be looked at.
        Wait::OnNode(_) if matches!(seen.node, NodeView::Found(_, NodeSeen::Stale)) => Next::RequeueAfter(COME_BY),
        Wait::Again => Next::Requeue,
        Wait::Settled | Wait::OnNode(_) | Wait::OnSecret(_) | Wait::OnTurn | Wait::OnUser(_) => Next::Done,
    }
}

fn not_taken(seen: &Evidence) -> Fault {
    let refused = seen.refused.as_ref();
    let (request, message) = refused.map_or(("a request", ""), |refused| (refused.request, refused.message.as_str()));
    Fault::transient(format!("ask Ironic: {request}"), REFUSED, message.to_owned())
}

/// A number of the host's own, the same on every pass and in every process.
fn jitter(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
