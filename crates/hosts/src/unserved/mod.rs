//! Kinds that this program has no controller for, until each gets one.
//!
//! - `report`: at the start, one warning for each kind with objects.
//! - `plan`: when a finalizer that the Go manager left is removed from an object that is deleted. Without that, the
//!   deletion of the object and of its namespace would never end.
//!
//! Kinds with finalizers are watched by metadata; a key without deletion timestamp costs no request. An object that is
//! deleted costs live reads of the API server and of Ironic, one object of a kind and an Ironic at a time, and again every minute
//! while it waits.
//!
//! Invariants: only finalizers of the Go manager are removed, and only by a patch of the version that was read; no status
//! of an object is written that a running Go manager serves; nothing is changed in Ironic.

mod facts;
mod kinds;
mod observe;
mod plan;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_core::PartialObjectMeta;
use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, PreprovisioningImage};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::patch::{Changes, remove_finalizer};
use metal3_runtime::plan::Observed;
use metal3_runtime::queue::Queue;
use metal3_runtime::watch::{WatchConfig, WatchSet};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{MetadataOf, Writer};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::ironics::{Ironics, Place, Places};
use crate::live::{GoManagerCheck, NodeSearch, Reading};
use crate::needs::UnservedKinds;
use crate::plan::wait;
use facts::Facts;
use kinds::{Finalized, Permitted};
use observe::{Found, Observer};
use plan::{Step, Wait, plan};
use report::Report;

/// Reads per decision, and its end.
const STEPS: usize = 5;

/// Metadata of the kinds with finalizers. Clones share it.
#[derive(Clone, Default)]
pub struct Caches {
    agent_images: SharedCache<PartialObjectMeta<PreprovisioningImage>>,
}

impl Caches {
    /// The watches. The kinds need not be installed.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<UnservedKinds> {
        WatchSet::new(config).optional_metadata(&self.agent_images)
    }
}

/// The dependencies of the controllers.
pub struct Parts {
    /// Reads the API server.
    pub client: kube::Client,
    /// The caches, not filled yet.
    pub caches: Caches,
    /// The hosts, of the controller of hosts.
    pub hosts: SharedCache<BareMetalHost>,
    /// The watched namespace; `None` for all.
    pub namespace: Option<String>,
    /// The Ironics.
    pub ironics: Ironics,
    /// Whether a Go manager runs now.
    pub go_manager: GoManagerCheck,
    /// Whether a node is a host's also by the host's name without the namespace.
    pub plain_node_names: bool,
    /// Whether images of agents are built for hosts, so that their kind is served.
    pub builds_agent_images: bool,
    /// Whether switches are configured, so that their kind is served.
    pub serves_switches: bool,
    /// Whether HostClaims and their policies are served.
    pub serves_claims: bool,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The event recorder.
    pub events: EventRecorder,
    /// The metrics registry.
    pub metrics: Metrics,
}

/// The controllers of the kinds with finalizers, and the report.
#[must_use = "it does nothing until it runs"]
pub struct Running {
    agent_images: Controller<Finalizers<PreprovisioningImage>>,
    report: Report,
    caches: Caches,
}

impl Running {
    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let report = stop.run_until_cancelled(self.report.send(&self.caches));
        futures::join!(self.agent_images.run(stop.clone()), report,);
    }
}

/// Creates the controllers. They subscribe to the caches at once.
pub fn controllers(parts: Parts, writer: &Writer<UnservedKinds>) -> Running {
    let caches = parts.caches.clone();
    Running {
        agent_images: controller(&parts, &caches.agent_images, writer),
        report: Report {
            client: parts.client,
            namespace: parts.namespace,
            events: parts.events,
            builds_agent_images: parts.builds_agent_images,
            serves_switches: parts.serves_switches,
            serves_claims: parts.serves_claims,
        },
        caches,
    }
}

fn controller<K: Finalized>(
    parts: &Parts,
    cache: &SharedCache<PartialObjectMeta<K>>,
    writer: &Writer<UnservedKinds>,
) -> Controller<Finalizers<K>>
where
    UnservedKinds: Permitted<K>,
{
    let queue = Queue::new(Arc::clone(&parts.clock));
    // Each object that is deleted reads from Ironic and a BMC.
    let places = Places::new(&parts.ironics, &parts.hosts, 1, &queue.waker());
    let workers = places.workers();
    let reconciler = Finalizers {
        cache: cache.clone(),
        observer: Observer {
            nodes: NodeSearch {
                ironics: parts.ironics.clone(),
                plain_node_names: parts.plain_node_names,
            },
            go_manager: Arc::clone(&parts.go_manager),
        },
        clock: Arc::clone(&parts.clock),
        seen: Mutex::default(),
        builds_agent_images: parts.builds_agent_images,
        places,
    };
    Controller::with_queue(K::CONTROLLER, queue, writer.clone(), reconciler)
        .watches(cache, |change| change.key())
        .workers(workers)
        .metrics(&parts.metrics)
}

/// The reconciler of one kind.
struct Finalizers<K: Finalized> {
    cache: SharedCache<PartialObjectMeta<K>>,
    observer: Observer,
    clock: Arc<dyn Clock>,
    seen: Mutex<BTreeMap<Key, Seen>>,
    builds_agent_images: bool,
    places: Places,
}

/// When this process first saw what a decision waits for: the clock of the API server may be ahead or behind.
struct Seen {
    deleted: Monotonic,
}

impl<K: Finalized> Reconciler for Finalizers<K>
where
    UnservedKinds: Permitted<K>,
{
    type Key = Key;
    type Role = UnservedKinds;

    async fn reconcile(&self, key: &Key, writer: &Writer<UnservedKinds>) -> Result<Next, Fault> {
        let cached = self.cache.find(key);
        let may_be_deleted = match &cached {
            Observed::Present(object) => object.metadata.deletion_timestamp.is_some(),
            Observed::Absent => false,
            Observed::Unknown(_) => true,
        };
        if !may_be_deleted {
            self.seen.lock().remove(key);
            self.places.leave(key);
            return Ok(Next::Done);
        }
        // It has the name of its host.
        let _seat = match self.places.take(key, key) {
            Place::Taken(seat) => seat,
            Place::None(why) => return Ok(wait::on_node(why)),
        };
        let Some(object) = writer.read::<K>(&MetadataOf(&self.cache), key).await? else {
            return Ok(Next::Done);
        };
        let (mut facts, mut found) = (self.facts(key, &object), Found::default());
        for _ in 0..STEPS {
            match plan(&facts) {
                Step::Done => return Ok(Next::Done),
                Step::Read(read) => {
                    self.observer
                        .read(read, &object, (&mut facts, &mut found), writer)
                        .await;
                }
                Step::Remove(finalizer) => return self.remove(key, &object, finalizer, writer).await,
                Step::Wait(wait) => return self.wait(key, &object, wait, writer).await,
            }
        }
        Err(Fault::bug("a decision about a finalizer does not end"))
    }
}

impl<K: Finalized> Finalizers<K>
where
    UnservedKinds: Permitted<K>,
{
    fn facts(&self, key: &Key, object: &K) -> Facts {
        let meta = object.meta();
        Facts {
            server: object.server(self.builds_agent_images),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            deleted_for: meta.deletion_timestamp.as_ref().map(|_| self.seen_deleted_for(key)),
            go_manager: Reading::NotRead,
            is_moving: meta
                .annotations
                .as_ref()
                .is_some_and(|all| all.contains_key(DELETE_FOR_MOVE_ANNOTATION)),
            host: Reading::NotRead,
            node: Reading::NotRead,
        }
    }

    fn seen_deleted_for(&self, key: &Key) -> Duration {
        let deleted = self.clock.monotonic();
        let mut seen = self.seen.lock();
        let seen = seen.entry(key.clone()).or_insert(Seen { deleted });
        deleted.since(seen.deleted)
    }

    async fn remove(
        &self,
        key: &Key,
        object: &K,
        finalizer: &'static str,
        writer: &Writer<UnservedKinds>,
    ) -> Result<Next, Fault> {
        let at = Identity::of(object).map_err(|error| Fault::bug(format!("{key}: {error}")))?;
        let present = object.meta().finalizers.as_deref().unwrap_or_default();
        let Some(patch) = remove_finalizer(present, finalizer, &at.version) else {
            return Ok(Next::Done);
        };
        writer.patch::<K>(&MetadataOf(&self.cache), key, patch).await?;
        tracing::info!(kind = K::KIND, %key, finalizer, "removed a finalizer that the Go manager left");
        Ok(Next::Requeue)
    }

    async fn wait(&self, key: &Key, object: &K, wait: Wait, writer: &Writer<UnservedKinds>) -> Result<Next, Fault> {
        if wait.is_reported {
            let reporting = object.reporting(wait.reason, &wait.message, Time::new(self.clock.now()));
            let document =
                |object: &K| serde_json::to_value(object).map_err(|error| Fault::bug(format!("{key}: {error}")));
            let changes = Changes::between(&document(object)?, &document(&reporting)?);
            let at = Identity::of(object).map_err(|error| Fault::bug(format!("{key}: {error}")))?;
            if let Some(patch) = changes.status {
                let patch = patch.with_precondition(&at.version);
                writer.patch_status::<K>(&MetadataOf(&self.cache), key, patch).await?;
            }
        }
        Ok(Next::waiting_with_recheck(wait.reason, wait.message, wait.recheck))
    }
}
