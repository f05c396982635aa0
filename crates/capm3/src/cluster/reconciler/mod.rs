//! The controller of Metal3Clusters.

mod act;
mod held_claims;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::WATCH_FILTER_LABEL;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::meta::Time;
use metal3_capi::{owner, pause};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::queue::Queue;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use crate::cluster::{
    ClusterLink, Facts, Plan, Refused, cluster_link, cluster_name, counts_descendants, is_namesake, is_secondary, plan,
};
use crate::controller::caches::{Caches, metal3_cluster_of_address, metal3_cluster_of_claim};
use crate::controller::sources::{ControlPlaneTouch, Sources};
use crate::data::reconciler::caches::Caches as Pools;
use crate::endpoint::held_claims::HeldClaims;
use crate::endpoint::render::ExistingSecret;
use crate::endpoint::source::{WantedSources, wanted_sources};
use crate::machine::resolve::{Resolved, resolve};
use crate::needs::Machines as Role;

const UNREADABLE: Reason = Reason::new("ObjectUnreadable");
/// Retry interval after a rejected write. No event reports when it is accepted.
const RETRY_REFUSED: Duration = Duration::from_mins(1);
const SOURCE_PENDING: Reason = Reason::new("EndpointSourcePending");

/// Components of the controller.
#[derive(Debug)]
pub struct Parts {
    /// The caches.
    pub caches: Caches,
    /// The endpoint sources.
    pub sources: Arc<dyn Sources>,
    /// The caches of claims, addresses and Secrets.
    pub pools: Pools,
    /// The reader of Secrets.
    pub secrets: ObjectReader<Role, Secret>,
    /// The event recorder.
    pub events: EventRecorder,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The metrics registry.
    pub metrics: Metrics,
    /// Required value of the watch-filter label, if any.
    pub watch_filter: Option<String>,
    /// Whether a Cluster adopts an object with the name of its infrastructure.
    pub adopts_namesakes: bool,
    /// The writer that touches idle control planes, if enabled.
    pub touch_writer: Option<Writer<ControlPlaneTouch>>,
    /// Number of workers.
    pub workers: usize,
}

/// The reconciler.
#[derive(Debug)]
pub struct Clusters {
    caches: Caches,
    sources: Arc<dyn Sources>,
    pools: Pools,
    secrets: ObjectReader<Role, Secret>,
    events: EventRecorder,
    clock: Arc<dyn Clock>,
    watch_filter: Option<String>,
    adopts_namesakes: bool,
    touch_writer: Option<Writer<ControlPlaneTouch>>,
}

/// Builds the controller. The caller starts the watches of the caches, and the sources.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Clusters> {
    let queue: Queue<Key> = Queue::new(Arc::clone(&parts.clock));
    let waker = queue.waker();
    parts.sources.set_wake(Box::new(move |key| waker.enqueue(key.clone())));
    let caches = parts.caches.clone();
    let clusters = Clusters {
        caches: parts.caches,
        sources: parts.sources,
        pools: parts.pools,
        secrets: parts.secrets,
        events: parts.events,
        clock: parts.clock,
        watch_filter: parts.watch_filter,
        adopts_namesakes: parts.adopts_namesakes,
        touch_writer: parts.touch_writer,
    };
    let (of_cluster, of_machine, of_secret) = (caches.related_keys(), caches.related_keys(), caches.related_keys());
    let pools = clusters.pools.clone();
    Controller::with_queue("metal3cluster", queue, writer, clusters)
        .watches(&caches.metal3_clusters, |change| change.key())
        .watches(&caches.clusters, move |change| {
            of_cluster.metal3_clusters_of_cluster(change)
        })
        .watches(&caches.metal3_machines, move |change| {
            of_machine.metal3_clusters_of_machine(change)
        })
        .watches(&pools.metal3_claims, metal3_cluster_of_claim)
        .watches(&pools.general_claims, metal3_cluster_of_claim)
        .watches(&pools.metal3_addresses, |change| {
            metal3_cluster_of_address(change, |address| address.spec.claim.name.as_deref())
        })
        .watches(&pools.general_addresses, |change| {
            metal3_cluster_of_address(change, |address| Some(&address.spec.claim_ref.name))
        })
        .watches(&pools.secrets, move |change| {
            of_secret.metal3_clusters_of_secret(change)
        })
        .workers(parts.workers)
        .metrics(&parts.metrics)
}

impl Reconciler for Clusters {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let object = match self.caches.metal3_clusters.find(key) {
            Observed::Present(object) => object,
            Observed::Absent => {
                self.sources.read(key, &WantedSources::default());
                let has_released = self.release_leftover_claims(key, writer).await?;
                return Ok(if has_released { Next::Requeue } else { Next::Done });
            }
            Observed::Unknown(UnknownReason::Unreadable(why)) => return Ok(Next::waiting(UNREADABLE, why)),
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of Metal3Clusters"));
            }
        };
        if !is_served(&object.metadata, self.watch_filter.as_deref()) {
            self.sources.read(key, &WantedSources::default());
            return Ok(Next::Done);
        }
        self.reconcile_object(key, &object, &self.held_claims(key), writer)
            .await
    }
}

impl Clusters {
    /// Plans and executes for an object that this manager reconciles.
    async fn reconcile_object(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        held_claims: &HeldClaims,
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let cluster = match cluster_name(object) {
            Some(name) => self.caches.clusters.find(&key.sibling(name)),
            None => Observed::Absent,
        };
        let cluster = cluster.as_deref();
        let descendant = if counts_descendants(object, &cluster) {
            self.descendant(key, object, &cluster)
        } else {
            None
        };
        let wanted = sources_of(object, &cluster);
        let Some(mut source_values) = self.sources.read(key, &wanted) else {
            return Ok(Next::waiting(
                SOURCE_PENDING,
                "waiting for the first list of the source of the endpoint",
            ));
        };
        let is_held = cluster
            .present()
            .copied()
            .is_some_and(|cluster| held_claims.keeps_deleted(object, cluster));
        source_values.pool = match self.claimed(key, object, &wanted, is_held) {
            Ok(value) => value,
            Err(waiting) => return Ok(waiting),
        };
        let secret = match self.rendered(key, object, &wanted).await? {
            Ok(secret) => secret,
            Err(waiting) => return Ok(waiting),
        };
        let namesake = self.namesake(key, object);
        let facts = Facts {
            object,
            cluster,
            descendant: descendant.as_deref(),
            namesake: namesake.as_deref(),
            adopts_namesakes: self.adopts_namesakes,
            source_values: &source_values,
            held_claims,
            secret: secret.as_deref().map(ExistingSecret),
            refused: Refused::default(),
            now: Time::new(self.clock.now()),
        };
        self.execute(key, (facts, &wanted), writer).await
    }

    /// Executes the plan in its order. After a result that changes the facts, the rest follows a new plan.
    async fn execute(
        &self,
        key: &Key,
        (facts, wanted): (Facts<'_>, &WantedSources),
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let mut current = plan(&facts);
        if current.is_idle() {
            self.touch(key, current.touch, wanted).await?;
            return Ok(requeue(current.requeue_after));
        }
        let action = current.action.take();
        let Some(object) = self.write_object(key, facts.object, action, writer).await? else {
            return Ok(Next::Requeue);
        };
        // The status describes the object as written.
        let (mut facts, mut is_refused) = (
            Facts {
                object: &object,
                ..facts
            },
            false,
        );
        let without_claim;
        if let Some(claim) = &current.claim {
            let Some(state) = self.claim(key, claim, writer).await? else {
                return Ok(Next::Requeue);
            };
            without_claim = facts.source_values.with_claim_state(&state);
            facts.source_values = &without_claim;
            (current, is_refused) = (plan(&facts), true);
        }
        let has_derived = current.derive.is_some();
        let with_endpoint;
        if let Some(derived) = &current.derive {
            match self.derive(key, facts.object, derived, writer).await? {
                None => facts.refused.endpoint = true,
                Some(written) => {
                    let Some(written) = written.object() else {
                        return Ok(Next::Requeue);
                    };
                    with_endpoint = written;
                    facts.object = &with_endpoint;
                }
            }
            current = plan(&facts);
        }
        let refused_secret;
        if let Some(write) = &current.render
            && let Some(why) = self.render(key, write, writer).await?
        {
            refused_secret = why;
            facts.refused.secret = Some(&refused_secret);
            (current, is_refused) = (plan(&facts), true);
        }
        if let Some(status) = current.status.take() {
            self.write_status(facts.object, *status, writer).await?;
        }
        self.finish(key, current, wanted, (has_derived, is_refused), writer)
            .await
    }

    /// The rest of a plan after its status is written.
    async fn finish(
        &self,
        key: &Key,
        plan: Plan,
        wanted: &WantedSources,
        (has_derived, is_refused): (bool, bool),
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        // No idle reconcile follows a write of the endpoint, or a rejected write that is retried.
        let is_last = has_derived || is_refused;
        if is_last {
            self.touch(key, plan.touch, wanted).await?;
        }
        if !plan.release.is_empty() {
            self.release_claims(plan.release, writer).await?;
            return Ok(Next::Requeue);
        }
        Ok(if is_refused {
            let requeue_after = plan.requeue_after.unwrap_or(RETRY_REFUSED);
            Next::RequeueAfter(requeue_after.min(RETRY_REFUSED))
        } else if is_last {
            requeue(plan.requeue_after)
        } else {
            Next::Requeue
        })
    }

    /// A Cluster that references another kind by the name of an object, when the object names no Cluster.
    fn namesake(&self, key: &Key, object: &Metal3Cluster) -> Option<Arc<Cluster>> {
        if cluster_link(object) != ClusterLink::None {
            return None;
        }
        self.caches.clusters.read(|cache| {
            let mut of_namespace = cache.objects().filter(|(one, _)| one.namespace == key.namespace);
            let found = of_namespace.find(|(_, cluster)| is_namesake(&key.name, cluster));
            found.map(|(_, cluster)| Arc::clone(cluster))
        })
    }

    /// A machine that belongs to the object. An unreadable machine counts.
    fn descendant(&self, key: &Key, object: &Metal3Cluster, cluster: &Observed<&Cluster>) -> Option<String> {
        let clusters: Vec<Arc<Metal3Cluster>> = self.caches.metal3_clusters.read(|cache| {
            let all = cache.objects().filter(|(one, _)| one.namespace == key.namespace);
            all.map(|(_, one)| Arc::clone(one)).collect()
        });
        let all: Vec<&Metal3Cluster> = clusters.iter().map(AsRef::as_ref).collect();
        let is_descendant = |machine: &Metal3Machine| belongs(machine, object, cluster, &all);
        self.caches.metal3_machines.read(|cache| {
            let mut unreadable = cache.unreadable().filter(|one| one.namespace == key.namespace);
            let mut machines = cache.objects().filter(|(one, _)| one.namespace == key.namespace);
            let found = machines.find(|(_, machine)| is_descendant(machine)).map(|(one, _)| one);
            found.or_else(|| unreadable.next()).map(|one| one.name.clone())
        })
    }
}

fn requeue(after: Option<Duration>) -> Next {
    after.map_or(Next::Done, Next::RequeueAfter)
}

// differs (`cluster-descendants`): the Go manager counts every Machine of the Cluster.
/// Whether a machine belongs to a Metal3Cluster. Without the Cluster, the Metal3Cluster in the machine's status
/// decides, and else any machine of the same Cluster counts.
fn belongs(
    machine: &Metal3Machine,
    object: &Metal3Cluster,
    cluster: &Observed<&Cluster>,
    all: &[&Metal3Cluster],
) -> bool {
    let name = object.metadata.name.as_deref();
    let of_cluster = owner::cluster_of(&machine.metadata);
    if of_cluster.is_none() || of_cluster != cluster_name(object) {
        return false;
    }
    let recorded = machine.status.metal3_cluster.as_deref();
    match cluster.present().copied() {
        Some(cluster) => match resolve(machine, recorded, cluster, all) {
            Resolved::One(found) => found.metadata.name.as_deref() == name,
            Resolved::Ambiguous(..) | Resolved::None => false,
        },
        None => recorded.is_none_or(|recorded| Some(recorded) == name),
    }
}

/// The sources to read. A deleted or paused object needs none.
fn sources_of(object: &Metal3Cluster, cluster: &Observed<&Cluster>) -> WantedSources {
    let needs_sources = object.metadata.deletion_timestamp.is_none() && !pause::is_reconcile_skipped(&object.metadata);
    match cluster.present().copied().filter(|_| needs_sources) {
        Some(cluster) => wanted_sources(object, cluster, is_secondary(object, cluster)),
        None => WantedSources::default(),
    }
}

/// Whether an object matches the watch filter.
pub(crate) fn is_served(metadata: &ObjectMeta, filter: Option<&str>) -> bool {
    filter.is_none() || filter == owner::label(metadata, WATCH_FILTER_LABEL)
}
