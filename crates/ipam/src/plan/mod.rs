//! The plan of a pool, from facts alone.
//!
//! One plan serves the claims of both kinds. It writes to the pool at most once and first, and everything else depends
//! on that write: a plan from a stale pool stops there. Invariants, with stale caches and concurrent replicas:
//!
//! - an address is recorded in the pool's status before its object exists, and stays recorded until the object is
//!   observed or a live read reports that the claim does not exist;
//! - absence from the cache proves nothing: every step that releases something depends on a live read, a list, or a
//!   fact that cannot revert (a UID, a deletion without other finalizers);
//! - a failure concerns one claim: its chain of writes ends, the others continue.

mod claims;
mod metadata;
mod missing_pool;
mod orphans;
mod pending;
mod status;

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use metal3_api::ipam::names::POOL_FINALIZER;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_runtime::patch::{MergePatch, remove_finalizer};
use metal3_runtime::version::ResourceVersion;

use crate::action::{Action, Chain, Plan};
use crate::allocator::{Allocation, Allocator};
use crate::documents::PoolOwner;
use crate::facts::{Facts, RequiredReads};
use crate::index::{ClusterFact, IndexEntry};
use crate::ranges::Ranges;
use crate::rules::Rules;

/// Most pending allocations, and most claims that get the finalizer in one reconcile: the limit of the schema.
pub const BATCH: usize = 500;

/// Computes the plan.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    plan_under(facts, &Rules::ALL)
}

/// Computes the plan with some rules disabled, for tests.
pub(crate) fn plan_under(facts: &Facts<'_>, rules: &Rules) -> Plan {
    let empty = IndexEntry::default();
    let entry = facts.index.pool(facts.key).unwrap_or(&empty);
    let Some(pool) = facts.pool else {
        return missing_pool::plan(facts, entry, rules);
    };
    let meta = &pool.metadata;
    let version = meta
        .resource_version
        .as_deref()
        .and_then(|text| ResourceVersion::parse(text).ok());
    let (Some(version), Some(uid)) = (version, meta.uid.as_deref()) else {
        return Plan::default();
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
        Some((name, ClusterFact::Found { paused: true, .. })) => PoolState::Paused(Pause::ByCluster(name.to_owned())),
        Some((_, ClusterFact::Unknown)) => PoolState::Unknown,
        Some((name, ClusterFact::Absent)) if !deleting => PoolState::ClusterMissing(name.to_owned()),
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

/// The plan so far.
#[derive(Default)]
struct Decisions {
    reads: RequiredReads,
    chains: Vec<Chain>,
    /// Address objects without a claim that are kept until a user confirms their release: their number, and one of
    /// them.
    kept_orphans: Option<(usize, String)>,
    /// Whether claims are left for the next reconcile.
    is_cut_short: bool,
    waiting: usize,
}

impl<'a> Planner<'a> {
    fn run(&self) -> Plan {
        if self.state == PoolState::Unknown {
            return Plan::default();
        }
        if let Some(patch) = self.metadata() {
            return Plan::only(Action::PatchPool(patch));
        }
        if let PoolState::Paused(pause) = &self.state {
            let patch = self.paused_status(pause);
            return Plan {
                first: patch.map(Action::PatchPoolStatus),
                ..Plan::default()
            };
        }
        let mut decided = Decisions::default();
        let mut pending = self.pending_allocations(&mut decided);
        let recorded = pending.all().len();
        self.delete_orphans(&mut decided);
        let pool = (self.facts.key, self.pool.spec.name_prefix.as_str());
        let mut allocator = Allocator::new(pool, self.ranges, (self.facts.index, self.entry), pending.all());
        self.serve(&mut pending, &mut allocator, &mut decided);
        self.create(pending.all(), recorded, &mut decided);
        let (status, counts) = self.status(pending.all(), &allocator, &decided);
        let plan = Plan {
            first: status
                .map(Action::PatchPoolStatus)
                .or_else(|| self.release_pool(pending.all(), &mut decided.reads)),
            reads: decided.reads,
            chains: decided.chains,
            counts: Some(counts),
        };
        self.require_fresh_list(plan)
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

    /// Requests a list before anything else when the caches may lack allocations.
    fn require_fresh_list(&self, plan: Plan) -> Plan {
        if self.is_list_fresh() || (plan.is_empty() && plan.reads.is_empty()) {
            return plan;
        }
        Plan {
            reads: RequiredReads {
                list: true,
                ..RequiredReads::default()
            },
            counts: plan.counts,
            ..Plan::default()
        }
    }

    /// Removes the finalizer of a pool that is being deleted and has no allocations.
    fn release_pool(&self, pending: &[Allocation], reads: &mut RequiredReads) -> Option<Action> {
        let recorded = !pending.is_empty() && self.rules.empty_before_release();
        if self.state != PoolState::Deleting || recorded || self.entry.addresses().len() > 0 {
            return None;
        }
        let patch = self.finalizer_removed()?;
        if self.facts.listed || !self.rules.list_before_release() {
            return Some(Action::PatchPool(patch));
        }
        reads.list = true;
        None
    }

    fn finalizer_removed(&self) -> Option<MergePatch> {
        let present = self.pool.metadata.finalizers.as_deref().unwrap_or_default();
        remove_finalizer(present, POOL_FINALIZER, &self.version)
    }

    const fn owner(&self) -> PoolOwner<'a> {
        PoolOwner {
            key: self.facts.key,
            uid: self.uid,
        }
    }
}
