//! The controller: one key per pool, for both kinds of claims.
//!
//! | Step | Where |
//! |---|---|
//! | which pools a change concerns | [`caches`] |
//! | facts: index, live reads | [`caches`], `live` |
//! | plan | [`crate::plan`] |
//! | execution | `act` |
//!
//! It does not rely on leader election, and makes no decisions.

mod act;
pub mod caches;
mod live;
mod metrics;

use std::sync::Arc;

use futures::StreamExt as _;
use metal3_api::cluster::names::WATCH_FILTER_LABEL;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::Time;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use crate::action::{Chain, Plan};
use crate::address::AddressObject;
use crate::claim::Claim;
use crate::facts::{Facts, LiveReads};
use crate::names::reason;
use crate::needs::Ipam;
use crate::plan::{decide, rejected};

use act::{ActError, Executor};
use caches::{Caches, SharedPoolIndex};
use live::LiveReader;
use metrics::PoolMetrics;

/// Most rounds of live reads per reconcile. Each satisfies all requests of the plan; a list, a claim and an address
/// make three.
const ROUNDS: usize = 4;
/// Concurrent chains. This also limits the creates in flight when the process stops.
const AT_ONCE: usize = 16;

/// Components of the controller.
pub struct Parts {
    /// The caches, still empty.
    pub caches: Caches,
    /// The clock for timestamps.
    pub clock: Arc<dyn Clock>,
    /// The event recorder.
    pub events: EventRecorder,
    /// The metrics registry.
    pub metrics: Metrics,
    /// Identity of this process, unique per process start.
    pub identity: String,
    /// The required value of the watch-filter label of a pool, if any.
    pub watch_filter: Option<String>,
    /// Number of workers.
    pub workers: usize,
}

/// The reconciler.
pub struct Pools {
    caches: Caches,
    index: SharedPoolIndex,
    live_reader: LiveReader,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    metrics: PoolMetrics,
    identity: String,
    watch_filter: Option<String>,
}

/// Builds the controller. The caller starts the watches of the caches.
pub fn controller(parts: Parts, writer: Writer<Ipam>) -> Controller<Pools> {
    let Parts {
        caches,
        clock,
        events,
        metrics,
        identity,
        watch_filter,
        workers,
    } = parts;
    let index = caches.index();
    let pools = Pools {
        live_reader: LiveReader::new(caches.clone()),
        caches: caches.clone(),
        index: index.clone(),
        clock: Arc::clone(&clock),
        events,
        metrics: PoolMetrics::register(&metrics),
        identity,
        watch_filter,
    };
    let of_pool = index.clone();
    let (of_address, of_cluster_address, of_cluster) = (index.clone(), index.clone(), index);
    Controller::new("ippool", clock, writer, pools)
        .watches(&caches.pools, move |change| caches::pools_of_pool(&of_pool, change))
        .watches(&caches.claims, |change| caches::pools_of(change, Claim::of_metal3))
        .watches(&caches.cluster_claims, |change| {
            caches::pools_of(change, Claim::of_cluster_api)
        })
        .watches(&caches.addresses, move |change| {
            caches::pools_of_address(&of_address, change, AddressObject::of_metal3)
        })
        .watches(&caches.cluster_addresses, move |change| {
            caches::pools_of_address(&of_cluster_address, change, AddressObject::of_cluster_api)
        })
        .watches(&caches.clusters, move |change| {
            caches::pools_of_cluster(&of_cluster, change)
        })
        .workers(workers)
        .metrics(&metrics)
}

impl Reconciler for Pools {
    type Key = Key;
    type Role = Ipam;

    async fn reconcile(&self, key: &Key, writer: &Writer<Ipam>) -> Result<Next, Fault> {
        let (mut live_reads, mut listed, mut before) = (LiveReads::default(), false, None);
        for _ in 0..ROUNDS {
            let read = self.live_reader.next_sequence();
            let pool = match self.caches.pools.find(key) {
                Observed::Present(pool) => Some(pool),
                Observed::Absent => None,
                Observed::Unknown(UnknownReason::Unreadable(why)) => {
                    return Ok(Next::waiting(reason::OBJECT_UNREADABLE, why));
                }
                Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead) => {
                    return Err(Fault::bug("a reconcile before the first list of pools"));
                }
            };
            if pool
                .as_deref()
                .is_some_and(|pool| !is_managed(pool, self.watch_filter.as_ref()))
            {
                return Ok(Next::Done);
            }
            // Live reads are valid for the version of the pool before them only.
            let version = pool.as_ref().and_then(|pool| pool.metadata.resource_version.clone());
            let (since, known_version) = before.take().unwrap_or((read, version.clone()));
            if known_version != version {
                (live_reads, listed) = (LiveReads::default(), false);
            }
            let since = if known_version == version { since } else { read };
            let plan = self.plan(key, pool.as_deref(), (listed, &live_reads));
            if plan.reads.is_empty() {
                return self.perform(key, plan, writer).await;
            }
            if plan.reads.list {
                self.live_reader.list(writer, &key.namespace, since).await?;
                listed = true;
            }
            self.live_reader
                .read(writer, &key.namespace, &plan.reads, &mut live_reads)
                .await?;
            before = Some((since, version));
        }
        // The pool changed in every round; the change has queued the key.
        Ok(Next::Requeue)
    }
}

impl Pools {
    fn plan(&self, key: &Key, pool: Option<&IPPool>, (listed, live_reads): (bool, &LiveReads)) -> Plan {
        let index = self.index.lock();
        let (plan, counts) = decide(&Facts {
            key,
            pool,
            index: &index,
            identity: &self.identity,
            listed,
            live_reads,
            now: self.now(),
        });
        let is_last = pool.is_none() && index.pools_in_namespace(&key.namespace).is_empty();
        drop(index);
        if is_last {
            self.live_reader.forget(&key.namespace);
        }
        self.metrics.set(key, counts.as_ref(), pool.is_some());
        plan
    }

    /// Performs a plan: first the write to the pool, without which nothing else is written, then all other chains.
    ///
    /// # Errors
    /// The first fault. A fault of one of the other chains does not stop the rest.
    async fn perform(&self, key: &Key, plan: Plan, writer: &Writer<Ipam>) -> Result<Next, Fault> {
        let executor = Executor {
            pool: key,
            caches: &self.caches,
            writer,
            events: &self.events,
        };
        let (required, independent): (Vec<_>, Vec<_>) = plan.actions.into_iter().partition(|chain| chain.is_required);
        for chain in required {
            if !self.run(&executor, chain).await? {
                return Ok(plan.next);
            }
        }
        let chains = independent.into_iter().map(|chain| self.run(&executor, chain));
        let ended: Vec<_> = futures::stream::iter(chains).buffer_unordered(AT_ONCE).collect().await;
        ended.into_iter().collect::<Result<Vec<bool>, Fault>>()?;
        Ok(plan.next)
    }

    /// Performs a chain, and returns whether it ran to its end: an object may differ from the one in the plan.
    async fn run(&self, executor: &Executor<'_>, chain: Chain) -> Result<bool, Fault> {
        for action in &chain.actions {
            match executor.act(action).await {
                Ok(()) => {}
                Err(ActError::Stale) => return Ok(false),
                Err(ActError::Failed(fault)) => return Err(fault),
                Err(ActError::Rejected(claim, error)) => {
                    let report = {
                        let index = self.index.lock();
                        let claim = index.pool(executor.pool).and_then(|pool| pool.claim(&claim));
                        claim.and_then(|claim| rejected(claim, executor.pool, &error, self.now()))
                    };
                    if let Some(report) = report
                        && let Err(ActError::Failed(fault)) = executor.act(&report).await
                    {
                        return Err(fault);
                    }
                    return Err(error.into());
                }
            }
        }
        if let Some((claim, event)) = chain.event {
            executor.record(&claim, event);
        }
        Ok(true)
    }

    fn now(&self) -> Time {
        Time::new(self.clock.now())
    }
}

/// Whether a pool has the label that the watch filter requires.
fn is_managed(pool: &IPPool, filter: Option<&String>) -> bool {
    let labels = pool.metadata.labels.as_ref();
    filter.is_none() || filter == labels.and_then(|labels| labels.get(WATCH_FILTER_LABEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_with_another_label_than_the_watch_filter_is_not_managed() {
        let mut own = IPPool::default();
        own.metadata.labels = Some([(WATCH_FILTER_LABEL.to_owned(), "a".to_owned())].into());
        let (other, a, b) = (IPPool::default(), "a".to_owned(), "b".to_owned());
        assert!(is_managed(&own, None) && is_managed(&other, None) && is_managed(&own, Some(&a)));
        assert!(!is_managed(&own, Some(&b)) && !is_managed(&other, Some(&a)));
    }
}
