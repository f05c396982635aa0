//! The controller of Metal3Clusters.

mod act;
mod claims;
mod join;
mod observe;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::WATCH_FILTER_LABEL;
use metal3_capi::owner;
use metal3_capi::workload::join::JoinChecks;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::queue::Queue;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use crate::cluster::sources::{ControlPlaneTouch, Sources};
use crate::cluster::watches::{metal3_cluster_of_address, metal3_cluster_of_claim};
use crate::cluster::{Facts, WriteResult, plan, plan_deleted};
use crate::controller::caches::Caches;
use crate::data::reconciler::caches::Caches as Pools;
use crate::endpoint::rendered::Rendered;
use crate::endpoint::source::WantedSources;
use crate::needs::Machines as Role;
use crate::reasons::cluster as reasons;

use join::Joins;

/// A reconcile plans once, once more after the live list of machines, and after each result that changes the facts: those of
/// claim, endpoint and Secret.
const MOST_PLANS: usize = 5;

/// Components of the controller.
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
    /// Looks at workload clusters before machines join them, if enabled.
    pub join_checks: Option<Arc<dyn JoinChecks>>,
    /// Number of workers.
    pub workers: usize,
}

/// The reconciler.
pub struct Clusters {
    parts: Parts,
    rendered: Rendered,
    joins: Option<Joins>,
}

/// How far a plan was performed.
enum Acted {
    /// Every write is done.
    Done,
    /// The next reconcile reads the result from the caches.
    Requeue,
    /// This result decides on the rest.
    Changed(WriteResult),
}

/// Builds the controller. The caller starts the watches of the caches, and the sources.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Clusters> {
    let queue: Queue<Key> = Queue::new(Arc::clone(&parts.clock));
    let waker = queue.waker();
    parts.sources.set_wake(Box::new(move |key| waker.enqueue(key.clone())));
    let (caches, pools) = (parts.caches.clone(), parts.pools.clone());
    let (workers, metrics) = (parts.workers, parts.metrics.clone());
    let [of_cluster, of_machine, of_secret, of_template, of_owner] = std::array::from_fn(|_| caches.related_keys());
    let looks = parts.join_checks.is_some();
    if let Some(checks) = &parts.join_checks {
        let waker = queue.waker();
        checks.set_wake(Box::new(move |key| waker.enqueue(key.clone())), workers);
    }
    let clusters = Clusters {
        joins: parts.join_checks.clone().map(Joins::new),
        parts,
        rendered: Rendered::default(),
    };
    // Without looks, no change of what only they depend on wakes a key.
    let if_looking = move |keys: &dyn Fn() -> Vec<Key>| if looks { keys() } else { Vec::new() };
    Controller::with_queue("metal3cluster", queue, writer, clusters)
        .watches(&caches.metal3_clusters, |change| change.key())
        .watches(&caches.clusters, move |change| {
            let mut keys = of_cluster.metal3_clusters_of_cluster(change);
            keys.extend(if_looking(&|| of_cluster.metal3_clusters_of_control_plane(change)));
            keys
        })
        .watches(&caches.metal3_machines, move |change| {
            let mut keys = of_machine.metal3_clusters_of_machine(change);
            keys.extend(if_looking(&|| of_machine.metal3_clusters_of_owned(change)));
            keys
        })
        .watches(&caches.machines, move |change| {
            if_looking(&|| of_owner.metal3_clusters_of_bootstrap(change))
        })
        .watches(&pools.metal3_claims, metal3_cluster_of_claim)
        .watches(&pools.general_claims, metal3_cluster_of_claim)
        .watches(&pools.metal3_addresses, |change| {
            metal3_cluster_of_address(change, |address| address.spec.claim.name.as_deref())
        })
        .watches(&pools.general_addresses, |change| {
            metal3_cluster_of_address(change, |address| Some(&address.spec.claim_ref.name))
        })
        .watches(&pools.templates, move |change| {
            of_template.metal3_clusters_of_data_template(change)
        })
        .watches(&pools.secrets, move |change| {
            let mut keys = of_secret.metal3_clusters_of_secret(change);
            keys.extend(if_looking(&|| of_secret.metal3_clusters_of_kubeconfig(change)));
            keys
        })
        .workers(workers)
        .metrics(&metrics)
}

impl Reconciler for Clusters {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let parts = &self.parts;
        let object = match parts.caches.metal3_clusters.find(key) {
            Observed::Present(object) => object,
            Observed::Absent => {
                parts.sources.read(key, &WantedSources::default());
                self.rendered.remove(key);
                self.joins.iter().for_each(|joins| joins.remove(key));
                return self.reconcile_deleted(key, writer).await;
            }
            Observed::Unknown(UnknownReason::Unreadable(why)) => return Ok(Next::waiting(reasons::UNREADABLE, why)),
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of Metal3Clusters"));
            }
        };
        if !is_served(&object.metadata, parts.watch_filter.as_deref()) {
            parts.sources.read(key, &WantedSources::default());
            return Ok(Next::Done);
        }
        match self.observe(key, object).await? {
            Ok(facts) => self.reconcile_object(key, facts, writer).await,
            Err(waiting) => Ok(waiting),
        }
    }
}

impl Clusters {
    /// Plans and acts, and plans again after each result that changes the facts.
    async fn reconcile_object(&self, key: &Key, mut facts: Facts, writer: &Writer<Role>) -> Result<Next, Fault> {
        for _ in 0..MOST_PLANS {
            let plan = plan(&facts);
            if !plan.reads.is_empty() {
                writer.list(&self.parts.caches.metal3_machines, &key.namespace).await?;
                facts.descendant = self.descendant(key, &facts.object, facts.cluster());
                facts.machines_are_live = true;
                continue;
            }
            let next = plan.next.clone();
            match self.act(key, &mut facts.object, plan, writer).await? {
                Acted::Done => return Ok(next),
                Acted::Requeue => return Ok(Next::Requeue),
                Acted::Changed(result) => facts.add(result),
            }
        }
        Err(Fault::bug("a plan repeats a write of the same reconcile"))
    }

    /// Releases the claims of an object that is not in the cache, once a live read confirms its deletion.
    async fn reconcile_deleted(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let held_claims = self.held_claims(key);
        let mut plan = plan_deleted(&held_claims, &Observed::Unknown(UnknownReason::NotRead));
        if !plan.reads.is_empty() {
            let object = writer.read(&self.parts.caches.metal3_clusters, key).await?;
            plan = plan_deleted(&held_claims, &object.into());
        }
        for claim in plan.actions {
            self.release(claim, writer).await?;
        }
        Ok(plan.next)
    }
}

/// Whether an object matches the watch filter.
pub(crate) fn is_served(metadata: &ObjectMeta, filter: Option<&str>) -> bool {
    filter.is_none() || filter == owner::label(metadata, WATCH_FILTER_LABEL)
}
