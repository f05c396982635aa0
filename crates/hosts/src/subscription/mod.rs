//! The controller of BMCEventSubscription: an event subscription in the BMC of a host, through Ironic.
//!
//! | Step | Where |
//! |---|---|
//! | map changes of subscriptions, hosts and Secrets | `watches` |
//! | observe: caches, live reads | `observe`, `attempts` |
//! | plan | `plan` |
//! | act | `act` |
//!
//! Nothing is polled: a subscription that exists costs no request, and one that cannot be created is tried again after a
//! delay that grows to an hour, or when its host, its node or its Secret changes.
//!
//! Invariants: the finalizer and the record of the creation are written before the first request; one object has at most one
//! subscription in the BMC, whatever is lost or interrupted; a request is sent only with a live view of the object, the host
//! and its node in the same reconcile, and never for a host that is paused, moved, detached or in another namespace; no
//! header is in a log, an Event or a status.

mod act;
mod attempts;
mod facts;
mod observe;
mod plan;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::BMCEventSubscription;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::queue::Queue;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use crate::ironics::{Ironics, Place, Places};
use crate::live::{GoManagerCheck, NodeSearch, Reading};
use crate::names::wait_reason::OBJECT_UNREADABLE;
use crate::needs::Subscriptions;
use crate::plan::wait;
use crate::reconciler::{Permit, caches::Caches as HostCaches};
use crate::settings::Settings;
use crate::switches::SecretsOfSwitches;
use act::Act;
use attempts::{Circumstances, Memories};
use facts::{Facts, HostView, Object, Read, Sibling};
use observe::{Found, Observer, host_view};
use plan::{Step, plan};
use watches::Turns;
pub use watches::{Caches, SubscriptionIndexes};

/// Reads and writes per reconcile, the details of each subscription of a BMC included.
const STEPS: usize = 256;
/// At once for one Ironic. It waits for the BMC in each request, so that one dead BMC would delay the others.
const WORKERS: usize = 4;
/// How soon a subscription looks again whether another one of its host has its turn.
const TURN: Duration = Duration::from_secs(1);

/// The dependencies of the controller.
pub struct Parts {
    /// Reads the API server.
    pub client: kube::Client,
    /// The subscriptions, not listed yet.
    pub caches: Caches,
    /// The caches of the controller of hosts: hosts and Secrets.
    pub of_hosts: HostCaches,
    /// The Ironics.
    pub ironics: Ironics,
    /// Whether a request to Ironic may be sent now.
    pub permit: Permit,
    /// Whether a Go manager runs now.
    pub go_manager: GoManagerCheck,
    /// The Secrets of switches, if switches are configured.
    pub switches: Option<SecretsOfSwitches>,
    /// The flags of hosts.
    pub settings: Settings,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The event recorder.
    pub events: EventRecorder,
    /// The metrics registry.
    pub metrics: Metrics,
}

/// The reconciler of subscriptions.
pub struct SubscriptionReconciler {
    caches: Caches,
    observer: Observer,
    memories: Memories,
    turns: Turns,
    places: Places,
    permit: Permit,
    events: EventRecorder,
    clock: Arc<dyn Clock>,
}

/// Creates the controller. It subscribes to the caches at once.
pub fn controller(parts: Parts, writer: Writer<Subscriptions>) -> Controller<SubscriptionReconciler> {
    let caches = parts.caches.clone();
    let (of_host, of_secret) = (caches.subscriptions.indexes(), caches.subscriptions.indexes());
    let queue = Queue::new(Arc::clone(&parts.clock));
    let places = Places::new(&parts.ironics, &parts.of_hosts.hosts, WORKERS, &queue.waker());
    let workers = places.workers();
    let reconciler = SubscriptionReconciler {
        observer: Observer {
            nodes: NodeSearch {
                ironics: parts.ironics,
                plain_node_names: parts.settings.plain_node_names,
            },
            go_manager: parts.go_manager,
            secrets: ObjectReader::new(parts.client, &parts.of_hosts.secrets),
            secret_names: parts.of_hosts.secrets.clone(),
            hosts: parts.of_hosts.hosts.clone(),
            bmc_secrets: parts.settings.bmc_secrets,
            switches: parts.switches,
        },
        caches: parts.caches,
        memories: Memories::default(),
        turns: Turns::default(),
        places,
        permit: parts.permit,
        events: parts.events,
        clock: parts.clock,
    };
    Controller::with_queue("bmceventsubscription", queue, writer, reconciler)
        .watches(&caches.subscriptions, |change| change.key())
        .watches(&parts.of_hosts.hosts, move |change| {
            let host = change.key();
            host.map_or_else(Vec::new, |host| of_host.read(|indexes| indexes.of_host(&host)))
        })
        .watches(&parts.of_hosts.secrets, move |change| {
            let secret = change.key();
            secret.map_or_else(Vec::new, |secret| of_secret.read(|indexes| indexes.of_secret(&secret)))
        })
        .workers(workers)
        .metrics(&parts.metrics)
}

impl Reconciler for SubscriptionReconciler {
    type Key = Key;
    type Role = Subscriptions;

    async fn reconcile(&self, key: &Key, writer: &Writer<Subscriptions>) -> Result<Next, Fault> {
        let Some(host) = self
            .caches
            .subscriptions
            .find(key)
            .into_present()
            .map(|one| host_of(key, &one))
        else {
            self.places.leave(key);
            return Ok(self.without_object(key));
        };
        let _seat = match self.places.take(key, &host) {
            Place::Taken(seat) => seat,
            Place::None(why) => return Ok(wait::on_node(why)),
        };
        let Some(_turn) = self.turns.take(&host) else {
            // A worker that waited would be missing to the other hosts.
            return Ok(Next::RequeueAfter(TURN));
        };
        let Observed::Present(object) = self.caches.subscriptions.find(key) else {
            return Ok(self.without_object(key));
        };
        self.reconcile_object(Act::new(self, key, writer, object), &host).await
    }
}

fn host_of(key: &Key, object: &BMCEventSubscription) -> Key {
    key.sibling(object.spec.host_name.as_deref().unwrap_or_default())
}

impl SubscriptionReconciler {
    /// The kind need not be installed, and may not be permitted.
    fn without_object(&self, key: &Key) -> Next {
        match self.caches.subscriptions.find(key) {
            Observed::Unknown(UnknownReason::Unreadable(why)) => Next::waiting(OBJECT_UNREADABLE, why),
            Observed::Unknown(_) | Observed::Present(_) => Next::Done,
            Observed::Absent => {
                self.memories.remove(key);
                Next::Done
            }
        }
    }

    async fn reconcile_object(&self, mut act: Act<'_>, host: &Key) -> Result<Next, Fault> {
        let circumstances = self.circumstances(act.key, host, &act.object);
        let (mut facts, mut found) = (self.facts(&act, host, &circumstances), Found::default());
        for _ in 0..STEPS {
            match plan(&facts) {
                Step::Done => {
                    self.memories.done(act.key);
                    return Ok(Next::Done);
                }
                Step::Wait(wait) => {
                    self.memories
                        .waits(act.key, &wait, circumstances, self.clock.monotonic());
                    return act.wait(wait).await;
                }
                Step::Read(Read::Object) => {
                    let Some(object) = act.read().await? else {
                        return Ok(Next::Requeue);
                    };
                    if object.is_open() && !facts.object.is_open() {
                        // Another process recorded the creation, and the watch has not shown it.
                        let now = self.clock.monotonic();
                        facts.attempts.creation_may_come_for = self.memories.unanswered(act.key, now);
                    }
                    facts.object = object;
                }
                Step::Read(read) => {
                    let keys = (act.key, host);
                    self.observer
                        .read(read, keys, (&mut facts, &mut found), act.writer)
                        .await;
                    let now = self.clock.monotonic();
                    facts.attempts.host_absent_for = self.memories.host_absent_for(act.key, &facts.host, now);
                }
                step => {
                    if let Some(end) = act.perform(step, &mut facts, &found).await? {
                        self.memories.done(act.key);
                        return Ok(end);
                    }
                }
            }
        }
        Err(Fault::bug("a decision about a subscription does not end"))
    }

    fn circumstances(&self, key: &Key, host: &Key, object: &BMCEventSubscription) -> Circumstances {
        let cached = self.observer.hosts.find(host);
        let bmc = cached.present().and_then(|host| host.spec.bmc.as_ref());
        let bmc_address = bmc.map(|bmc| bmc.address.clone());
        let wanted = facts::Wanted::of(object);
        Circumstances {
            is_deleted: object.metadata.deletion_timestamp.is_some(),
            bmc_address,
            headers: self.observer.headers_version(key, &wanted),
            host: match cached {
                Observed::Present(host) => Reading::Known(host_view(&host)),
                Observed::Absent => Reading::Known(HostView::Absent),
                Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => Reading::NotRead,
                Observed::Unknown(why) => Reading::Failed(why.to_string()),
            },
        }
    }

    fn facts(&self, act: &Act<'_>, host: &Key, circumstances: &Circumstances) -> Facts {
        let object = Object::of(&act.object, false);
        let is_open = object.is_open();
        let uid = act.object.metadata.uid.as_deref().unwrap_or_default();
        let now = self.clock.monotonic();
        let siblings = self.caches.siblings(act.key, host);
        Facts {
            attempts: self.memories.view((act.key, uid), is_open, circumstances, now),
            cached_host: circumstances.host.clone(),
            siblings: siblings.iter().map(|other| sibling(&object, other)).collect(),
            object,
            go_manager: Reading::NotRead,
            host: Reading::NotRead,
            headers: Reading::NotRead,
            node: Reading::NotRead,
            list: Reading::NotRead,
            details: BTreeMap::new(),
            refused: None,
            deletion: None,
        }
    }
}

fn sibling(object: &Object, other: &BMCEventSubscription) -> Sibling {
    let other = Object::of(other, false);
    let (own, others) = (&object.wanted, &other.wanted);
    Sibling {
        is_equal: (&own.destination, &own.context) == (&others.destination, &others.context),
        id: other.id,
        record: other.record,
    }
}
