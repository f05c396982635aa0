//! The controller: one key a pool, for both kinds of claims.
//!
//! | Step | Where |
//! |---|---|
//! | which pools a change concerns | [`caches`] |
//! | what is known: the accounts, live reads | [`caches`], `live` |
//! | what to do | [`crate::plan`] |
//! | doing it | `act` |
//!
//! It needs no leader to be correct. It decides nothing itself.

mod act;
pub mod caches;
mod figures;
mod live;
mod watches;

use std::fmt;
use std::sync::Arc;

use metal3_api::cluster::names::WATCH_FILTER_LABEL;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::Time;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Found, Key};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Mode, Writer};

use crate::action::Plan;
use crate::claim::Claim;
use crate::facts::{Evidence, Facts};
use crate::held::Held;
use crate::names::reason;
use crate::needs::Ipam;
use crate::plan::plan;

use act::Act;
use caches::{Caches, SharedAccounts};
use figures::PoolFigures;
use live::Live;

/// Rounds of live reads in one pass. Each answers all that the one before asked; a list, a claim and an address make
/// three.
const ROUNDS: usize = 4;

/// What the controller is made of.
pub struct Parts {
    /// What is watched. Nothing may have filled them yet.
    pub caches: Caches,
    /// The time for what is written.
    pub clock: Arc<dyn Clock>,
    /// Where events are told.
    pub events: EventRecorder,
    /// Where figures are shown.
    pub metrics: Metrics,
    /// A name of this process that no other and no earlier start has.
    pub identity: String,
    /// The value that the watch-filter label of a pool must have, if any.
    pub watch_filter: Option<String>,
    /// How many pools may be worked on at once.
    pub workers: usize,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Plans and acts for one pool at a time.
pub struct Pools {
    caches: Caches,
    accounts: SharedAccounts,
    live: Live,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    figures: PoolFigures,
    identity: String,
    watch_filter: Option<String>,
}

impl fmt::Debug for Pools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pools")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// The controller, ready to run. Whoever calls this starts the watches of the caches.
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
    let accounts = caches.accounts();
    let pools = Pools {
        live: Live::new(caches.clone()),
        caches: caches.clone(),
        accounts: accounts.clone(),
        clock: Arc::clone(&clock),
        events,
        figures: PoolFigures::register(&metrics),
        identity,
        watch_filter,
    };
    let of_pool = accounts.clone();
    let (of_address, of_cluster_address, of_cluster) = (accounts.clone(), accounts.clone(), accounts);
    Controller::new("ippool", clock, writer, pools)
        .watches(&caches.pools, move |change| caches::pools_of_pool(&of_pool, change))
        .watches(&caches.claims, |change| {
            caches::pools_of_claim(change, Claim::of_metal3)
        })
        .watches(&caches.cluster_claims, |change| {
            caches::pools_of_claim(change, Claim::of_cluster_api)
        })
        .watches(&caches.addresses, move |change| {
            caches::pools_of_address(&of_address, change, Held::of_metal3)
        })
        .watches(&caches.cluster_addresses, move |change| {
            caches::pools_of_address(&of_cluster_address, change, Held::of_cluster_api)
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
        let (mut evidence, mut listed, mut before) = (Evidence::default(), false, None);
        for _ in 0..ROUNDS {
            let read = self.live.now();
            let pool = match self.caches.pools.find(key) {
                Found::Live(pool) => Some(pool),
                Found::Absent => None,
                Found::Unreadable { why } => return Ok(Next::waiting(reason::OBJECT_UNREADABLE, why)),
                Found::Unknown => return Err(Fault::bug("a pass before the first list of pools")),
            };
            if pool.as_deref().is_some_and(|pool| !self.is_ours(pool)) {
                return Ok(Next::Done);
            }
            // What was read live is evidence about the version of the pool it was read after, and about no other.
            let version = pool.as_ref().and_then(|pool| pool.metadata.resource_version.clone());
            let (since, known) = before.take().unwrap_or((read, version.clone()));
            if known != version {
                (evidence, listed) = (Evidence::default(), false);
            }
            let since = if known == version { since } else { read };
            let plan = self.plan(key, pool.as_deref(), (listed, &evidence));
            if plan.reads.is_empty() {
                return self.act(key, plan, writer).await;
            }
            if plan.reads.list {
                self.live.list(writer, &key.namespace, since).await?;
                listed = true;
            }
            self.live
                .answer(writer, &key.namespace, &plan.reads, &mut evidence)
                .await?;
            before = Some((since, version));
        }
        // The pool changes faster than it can be read about; whatever changed it has queued it.
        Ok(Next::Requeue)
    }
}

impl Pools {
    fn plan(&self, key: &Key, pool: Option<&IPPool>, (listed, evidence): (bool, &Evidence)) -> Plan {
        let accounts = self.accounts.lock();
        let plan = plan(&Facts {
            key,
            pool,
            accounts: &accounts,
            me: &self.identity,
            listed,
            evidence,
            now: self.now(),
        });
        drop(accounts);
        self.figures.show(key, plan.figures.as_ref(), pool.is_some());
        plan
    }

    async fn act(&self, key: &Key, plan: Plan, writer: &Writer<Ipam>) -> Result<Next, Fault> {
        if plan.is_empty() {
            return Ok(Next::Done);
        }
        let act = Act {
            pool: key,
            caches: &self.caches,
            accounts: &self.accounts,
            writer,
            events: &self.events,
            now: self.now(),
        };
        act.perform(plan).await?;
        // Where nothing is performed, another look would show the same again.
        Ok(if writer.mode() == Mode::ObserveOnly {
            Next::Done
        } else {
            Next::Requeue
        })
    }

    fn is_ours(&self, pool: &IPPool) -> bool {
        let label = pool
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(WATCH_FILTER_LABEL));
        self.watch_filter.is_none() || self.watch_filter.as_ref() == label
    }

    fn now(&self) -> Time {
        Time::new(self.clock.now())
    }
}
