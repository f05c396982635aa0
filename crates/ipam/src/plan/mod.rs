//! What to do for a pool: the decision, from facts alone.
//!
//! One pass serves the claims of both kinds. It writes to the pool at most once and first, and everything else relies
//! on that write: a pass whose view of the pool is old stops there. Invariants, whatever the caches lag and whoever
//! else runs:
//!
//! - an address is promised in the pool's status before its object exists, and stays promised until the object has been
//!   seen or a live read has shown that the claim is gone;
//! - what the cache does not show is not therefore absent: every step that frees something rests on a live read, a list
//!   or a positive fact that cannot change back (an UID, a deletion that waits for us alone);
//! - one claim's failure is that claim's: its chain of writes ends, the others go on.

mod claims;
mod gone;
mod metadata;
mod orphans;
mod pending;
mod promises;
mod status;

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use metal3_api::ipam::names::POOL_FINALIZER;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_runtime::patch::{MergePatch, remove_finalizer};
use metal3_runtime::version::ResourceVersion;

use crate::accounts::{Account, ClusterFact};
use crate::action::{Action, Chain, Plan};
use crate::choice::{Allotment, Grant};
use crate::documents::PoolOwner;
use crate::facts::{Facts, Reads};
use crate::ranges::Ranges;
use crate::rules::Rules;

/// Most addresses that are promised at once, and most claims that one pass protects: the schema's limit of the record.
pub const BATCH: usize = 500;

/// What to do, given the facts.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    plan_under(facts, &Rules::ALL)
}

/// The same under a part of the rules. Only tests leave any out.
pub(crate) fn plan_under(facts: &Facts<'_>, rules: &Rules) -> Plan {
    let nothing = Account::default();
    let account = facts.accounts.pool(facts.key).unwrap_or(&nothing);
    let Some(pool) = facts.pool else {
        return gone::plan(facts, account, rules);
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
    let pass = Pass {
        facts,
        rules,
        pool,
        version,
        uid,
        ranges: &ranges,
        account,
        standing: standing(facts, pool),
    };
    pass.run()
}

/// How a pool stands, before any claim is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// It grants.
    Serving,
    /// It goes away: nothing new is granted.
    Leaving,
    /// It is told to rest.
    Paused(Pause),
    /// Its Cluster does not exist.
    WithoutCluster(String),
    /// Whether its Cluster exists is not known yet.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pause {
    ByAnnotation,
    ByCluster(String),
}

fn standing(facts: &Facts<'_>, pool: &IPPool) -> Standing {
    let leaving = pool.metadata.deletion_timestamp.is_some();
    if pool
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|all| all.contains_key(PAUSED_ANNOTATION))
    {
        // differs: ipam-pause-without-cluster. The Go manager reads the annotation only beside a Cluster.
        return Standing::Paused(Pause::ByAnnotation);
    }
    let cluster = cluster_name(pool).map(|name| (name, facts.accounts.cluster(&facts.key.namespace, name)));
    match cluster {
        Some((name, ClusterFact::Found { paused: true, .. })) => Standing::Paused(Pause::ByCluster(name.to_owned())),
        Some((_, ClusterFact::Unknown)) => Standing::Unknown,
        Some((name, ClusterFact::Absent)) if !leaving => Standing::WithoutCluster(name.to_owned()),
        _ if leaving => Standing::Leaving,
        _ => Standing::Serving,
    }
}

/// The Cluster a pool belongs to.
fn cluster_name(pool: &IPPool) -> Option<&str> {
    // differs: ipam-empty-cluster-name. The Go manager takes empty text for a name, and then waits for ever.
    pool.spec.cluster_name.as_deref().filter(|name| !name.is_empty())
}

/// One pass over one pool: what it sees.
struct Pass<'a> {
    facts: &'a Facts<'a>,
    rules: &'a Rules,
    pool: &'a IPPool,
    version: ResourceVersion,
    uid: &'a str,
    ranges: &'a Ranges,
    account: &'a Account,
    standing: Standing,
}

/// One pass over one pool: what it has decided so far.
#[derive(Default)]
struct Decisions {
    reads: Reads,
    chains: Vec<Chain>,
    /// Address objects without a claim that are kept until somebody confirms, and one of them.
    held_orphans: Option<(usize, String)>,
    /// Claims that this pass did not come to.
    is_cut_short: bool,
    waiting: usize,
}

impl<'a> Pass<'a> {
    fn run(&self) -> Plan {
        if self.standing == Standing::Unknown {
            return Plan::default();
        }
        if let Some(patch) = self.metadata() {
            return Plan::only(Action::PatchPool(patch));
        }
        if let Standing::Paused(pause) = &self.standing {
            let patch = self.paused_status(pause);
            return Plan {
                first: patch.map(Action::PatchPoolStatus),
                ..Plan::default()
            };
        }
        let mut decided = Decisions::default();
        let mut pending = self.still_pending(&mut decided);
        let recorded = pending.all().len();
        self.sweep(&mut decided);
        let place = (self.facts.key, self.pool.spec.name_prefix.as_str());
        let mut allotment = Allotment::new(place, self.ranges, (self.facts.accounts, self.account), pending.all());
        self.serve(&mut pending, &mut allotment, &mut decided);
        self.create(pending.all(), recorded, &mut decided);
        let (status, figures) = self.status(pending.all(), &allotment, &decided);
        let plan = Plan {
            first: status
                .map(Action::PatchPoolStatus)
                .or_else(|| self.release(pending.all(), &mut decided.reads)),
            reads: decided.reads,
            chains: decided.chains,
            figures: Some(figures),
        };
        self.on_solid_ground(plan)
    }

    /// Whether everything granted before is in the cache: this process wrote the record last, or a list has been
    /// reached that is younger than the pool's version.
    fn ground_is_solid(&self) -> bool {
        let writer = self
            .pool
            .status
            .allocator
            .as_ref()
            .and_then(|allocator| allocator.writer.as_deref());
        writer == Some(self.facts.me) || self.facts.listed || !self.rules.list_on_takeover
    }

    fn on_solid_ground(&self, plan: Plan) -> Plan {
        if self.ground_is_solid() || (plan.is_empty() && plan.reads.is_empty()) {
            return plan;
        }
        Plan {
            reads: Reads {
                list: true,
                ..Reads::default()
            },
            figures: plan.figures,
            ..Plan::default()
        }
    }

    /// Lets go of a pool that is on its way out and has nothing left.
    fn release(&self, pending: &[Grant], reads: &mut Reads) -> Option<Action> {
        let recorded = !pending.is_empty() && self.rules.empty_before_release;
        if self.standing != Standing::Leaving || recorded || self.account.addresses().len() > 0 {
            return None;
        }
        let patch = self.finalizer_removed()?;
        if self.facts.listed || !self.rules.list_before_release {
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
