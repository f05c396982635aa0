//! The plan of a pool, from facts alone.
//!
//! One plan serves the claims of both kinds. It writes to the pool at most once and first, and everything else depends
//! on that write: a plan from a stale pool stops there. Invariants, with stale caches and concurrent replicas:
//!
//! - an address is recorded in the pool's status before its object exists, and stays recorded until the object is
//!   observed or a live read reports that the claim does not exist or has another address;
//! - absence from the cache proves nothing: every step that releases something depends on a live read, a list, or a
//!   fact that cannot revert (a UID, a deletion without other finalizers);
//! - an address is granted to no other claim while a claim names its object, whether or not the object exists;
//! - a failure concerns one claim: its chain of writes ends, the others continue.

mod claims;
mod counts;
mod lost;
mod metadata;
mod missing_pool;
mod orphans;
mod pending;
mod status;

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use metal3_api::ipam::names::POOL_FINALIZER;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_runtime::patch::remove_finalizer;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;

use crate::action::{Action, Chain, Plan};
use crate::allocator::{Allocator, PendingAllocations, Refusal};
use crate::documents::PoolOwner;
use crate::facts::{Facts, RequiredReads};
use crate::index::IndexEntry;
use crate::names::reason;
use crate::ranges::Ranges;
use crate::rules::Rules;

use claims::unreadable_cluster;

pub use claims::rejected;
pub use counts::PoolCounts;

/// Most pending allocations, and most claims that get the finalizer in one reconcile: the limit of the schema.
pub const BATCH: usize = 500;

/// Computes the plan, and the address counts of a pool that allocates.
#[must_use]
pub fn decide(facts: &Facts<'_>) -> (Plan, Option<PoolCounts>) {
    decide_under(facts, &Rules::ALL)
}

/// The same with some rules disabled, for tests.
pub(crate) fn decide_under(facts: &Facts<'_>, rules: &Rules) -> (Plan, Option<PoolCounts>) {
    let empty = IndexEntry::default();
    let entry = facts.index.pool(facts.key).unwrap_or(&empty);
    let Some(pool) = facts.pool else {
        return (missing_pool::plan(facts, entry, rules), None);
    };
    let meta = &pool.metadata;
    let version = meta
        .resource_version
        .as_deref()
        .and_then(|text| ResourceVersion::parse(text).ok());
    let (Some(version), Some(uid)) = (version, meta.uid.as_deref()) else {
        return (Plan::default(), None);
    };
    let ranges = Ranges::of(&pool.spec);
    let planner = Planner {
        facts,
        rules,
        pool,
        version,
        uid,
        ranges: &ranges,
        entry,
        state: pool_state(facts, pool),
    };
    planner.run()
}

/// State of a pool, before any claim is considered.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PoolState {
    /// It allocates.
    Serving,
    /// It is being deleted: nothing new is allocated.
    Deleting,
    /// It is paused.
    Paused(Pause),
    /// Its Cluster does not exist.
    ClusterMissing(String),
    /// It is not known whether its Cluster exists.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pause {
    ByAnnotation,
    ByCluster(String),
}

impl Pause {
    fn message(&self) -> String {
        match self {
            Self::ByAnnotation => "the annotation cluster.x-k8s.io/paused is set; remove it to continue".to_owned(),
            Self::ByCluster(name) => {
                format!("Cluster {name} is paused; the pool continues when the Cluster is unpaused")
            }
        }
    }
}

fn pool_state(facts: &Facts<'_>, pool: &IPPool) -> PoolState {
    let deleting = pool.metadata.deletion_timestamp.is_some();
    if pool
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|all| all.contains_key(PAUSED_ANNOTATION))
    {
        // differs: ipam-pause-without-cluster. The Go manager reads the annotation only with a Cluster.
        return PoolState::Paused(Pause::ByAnnotation);
    }
    let cluster = cluster_name(pool).map(|name| (name, facts.index.cluster(&facts.key.namespace, name)));
    match cluster {
        Some((name, Observed::Present(cluster))) if cluster.paused => {
            PoolState::Paused(Pause::ByCluster(name.to_owned()))
        }
        Some((_, Observed::Unknown(_))) => PoolState::Unknown,
        Some((name, Observed::Absent)) if !deleting => PoolState::ClusterMissing(name.to_owned()),
        _ if deleting => PoolState::Deleting,
        _ => PoolState::Serving,
    }
}

fn cluster_name(pool: &IPPool) -> Option<&str> {
    // differs: ipam-empty-cluster-name. The Go manager takes an empty text as a name, and waits for ever.
    pool.spec.cluster_name.as_deref().filter(|name| !name.is_empty())
}

/// Input of the plan of one pool.
struct Planner<'a> {
    facts: &'a Facts<'a>,
    rules: &'a Rules,
    pool: &'a IPPool,
    version: ResourceVersion,
    uid: &'a str,
    ranges: &'a Ranges,
    entry: &'a IndexEntry,
    state: PoolState,
}

/// The decisions so far.
#[derive(Default)]
struct Decisions {
    reads: RequiredReads,
    pending: PendingAllocations,
    chains: Vec<Chain>,
    /// Address objects without a claim that are kept until a user confirms their release: their number, and one of
    /// them.
    kept_orphans: Option<(usize, String)>,
    /// Whether claims are left for the next reconcile.
    is_cut_short: bool,
    waiting: usize,
    /// The first claim that waits, and why.
    refused: Option<Refusal>,
}

impl Decisions {
    /// The plan. Without a fresh list of addresses, that comes before anything else.
    fn into_plan(self, first: Option<Action>, is_list_fresh: bool) -> Plan {
        let first = first.map(Chain::required).into_iter();
        let actions: Vec<Chain> = first.chain(self.chains).collect();
        if actions.is_empty() && self.reads.is_empty() {
            // The conditions of the pool and of the claims show it.
            let waiting = |why: Refusal| Next::waiting(why.reason, why.message).quiet();
            return Plan {
                next: self.refused.map_or(Next::Done, waiting),
                ..Plan::default()
            };
        }
        if !is_list_fresh {
            return Plan::reading(RequiredReads {
                list: true,
                ..RequiredReads::default()
            });
        }
        if !self.reads.is_empty() {
            return Plan::reading(self.reads);
        }
        Plan {
            actions,
            next: Next::Requeue,
            ..Plan::default()
        }
    }
}

impl<'a> Planner<'a> {
    fn run(&self) -> (Plan, Option<PoolCounts>) {
        let mut decided = Decisions::default();
        if self.state == PoolState::Unknown {
            return (self.without_cluster(decided), None);
        }
        if let Some(patch) = self.metadata() {
            return (decided.into_plan(Some(Action::PatchPool(patch)), true), None);
        }
        if let PoolState::Paused(pause) = &self.state {
            let why = pause.message();
            let patch = self.paused_status(&why);
            if self.entry.unsettled().next().is_some() {
                decided.refused = Some(Refusal::waiting(reason::PAUSED, why));
            }
            return (decided.into_plan(patch.map(Action::PatchPoolStatus), true), None);
        }
        decided.pending = self.pending_allocations(&mut decided.reads);
        let recorded = decided.pending.all().len();
        self.delete_orphans(&mut decided);
        let pool = (self.facts.key, self.pool.spec.name_prefix.as_str());
        let mut allocator = Allocator::new(pool, self.ranges, (self.facts.index, self.entry), decided.pending.all());
        self.hold_lost(&mut allocator);
        self.serve(&mut allocator, &mut decided);
        self.create(recorded, &mut decided);
        let counts = self.counts(&allocator, &decided);
        let first = self
            .status(&counts, &decided)
            .map(Action::PatchPoolStatus)
            .or_else(|| self.release_pool(&mut decided));
        (decided.into_plan(first, self.is_list_fresh()), Some(counts))
    }

    /// The plan while the state of the pool's Cluster is unknown: a condition, if a user must correct it.
    fn without_cluster(&self, mut decided: Decisions) -> Plan {
        let namespace = &self.facts.key.namespace;
        let name = cluster_name(self.pool).filter(|name| self.facts.index.is_cluster_unreadable(namespace, name));
        let Some(why) = name.map(unreadable_cluster) else {
            return Plan::default();
        };
        let patch = self.not_ready_status(&why);
        decided.refused = Some(why);
        decided.into_plan(patch.map(Action::PatchPoolStatus), true)
    }

    /// Whether the caches contain all allocations: this process wrote the record last, or a list is younger than the
    /// pool's version.
    fn is_list_fresh(&self) -> bool {
        let writer = self
            .pool
            .status
            .allocator
            .as_ref()
            .and_then(|allocator| allocator.writer.as_deref());
        writer == Some(self.facts.identity) || self.facts.listed || !self.rules.list_on_takeover()
    }

    /// Removes the finalizer of a pool that is being deleted and has no allocations.
    fn release_pool(&self, decided: &mut Decisions) -> Option<Action> {
        let recorded = !decided.pending.all().is_empty() && self.rules.empty_before_release();
        if self.state != PoolState::Deleting || recorded || self.entry.addresses().len() > 0 {
            return None;
        }
        let present = self.pool.metadata.finalizers.as_deref().unwrap_or_default();
        let patch = remove_finalizer(present, POOL_FINALIZER, &self.version)?;
        if self.facts.listed || !self.rules.list_before_release() {
            return Some(Action::PatchPool(patch));
        }
        decided.reads.list = true;
        None
    }

    const fn owner(&self) -> PoolOwner<'a> {
        PoolOwner {
            key: self.facts.key,
            uid: self.uid,
        }
    }
}
