//! The controller of Metal3Remediations: observes one remediation, and carries its plan out.
//!
//! It watches remediations, their Machines, hosts and Clusters, and the Nodes of a workload cluster while a remediation
//! waits for one. Its timers are the time of an attempt, Pods and volumes of a Node that is out of service, a
//! workload cluster that does not answer, and another program that changes the Node.

mod act;
mod attempts;
mod observe;
mod orphans;

use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3Remediation;
use metal3_api::kind::Kind as _;
use metal3_capi::workload::{NodeRepair, NodeState};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::watch::{WatchConfig, WatchSet};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use super::action::Reads;
use super::facts::{Facts, Node};
use super::plan::plan;
use super::related::Related;
use crate::controller::caches::Caches;
use crate::data::reason;
use crate::needs::Remediations as Role;

use attempts::Attempts;

/// Plans per reconcile: the reads of Node, Pods and everything each require another one, and a change of the Node that
/// does not succeed too.
const ROUNDS: usize = 9;

/// How often a reconcile reads a Node again whose change is rejected with a conflict.
const MOST_STALE: usize = 1;

/// A Node that is never at the version that was read.
fn contended() -> Node {
    let why = "the workload cluster rejects each change with a conflict";
    Node::Read(NodeState::Unknown(why.to_owned()))
}

/// Dependencies of the controller.
pub struct Parts {
    /// The remediations.
    pub remediations: SharedCache<Metal3Remediation>,
    /// The caches of machines.
    pub caches: Caches,
    /// Access to workload clusters.
    pub workloads: Arc<dyn NodeRepair>,
    /// Clock for timestamps and for the time of an attempt.
    pub clock: Arc<dyn Clock>,
    /// Receives Events.
    pub events: EventRecorder,
    /// Receives metrics.
    pub metrics: Metrics,
    /// The required value of the watch-filter label, if any.
    pub watch_filter: Option<String>,
    /// Number of workers.
    pub workers: usize,
}

/// Reconciles one remediation at a time.
pub struct Remediations {
    remediations: SharedCache<Metal3Remediation>,
    caches: Caches,
    workloads: Arc<dyn NodeRepair>,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    watch_filter: Option<String>,
    related: Related,
    attempts: Attempts,
}

/// The watch of the kind that only this controller reads.
#[must_use]
pub fn own_watches(remediations: &SharedCache<Metal3Remediation>, config: &WatchConfig) -> WatchSet<Role> {
    WatchSet::new(config).whole(remediations)
}

/// The controller. The caller starts the watches of the caches.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Remediations> {
    let (caches, related) = (parts.caches, Related::default());
    let remediations = Remediations {
        remediations: parts.remediations.clone(),
        caches: caches.clone(),
        workloads: Arc::clone(&parts.workloads),
        clock: Arc::clone(&parts.clock),
        events: parts.events,
        watch_filter: parts.watch_filter,
        related: related.clone(),
        attempts: Attempts::default(),
    };
    let [of_machine, of_metal3_machine, of_host, of_cluster] = std::array::from_fn(|_| related.clone());
    let controller = Controller::new("metal3remediation", parts.clock, writer, remediations)
        .watches(&parts.remediations, |change| change.key())
        .watches(&caches.machines, move |change| of_machine.of_machine(change))
        .watches(&caches.metal3_machines, move |change| {
            of_metal3_machine.of_metal3_machine(change)
        })
        .watches(&caches.hosts, move |change| of_host.of_host(change))
        .watches(&caches.clusters, move |change| of_cluster.of_cluster(change))
        .workers(parts.workers)
        .metrics(&parts.metrics);
    let waker = controller.queue().waker();
    let wake = Box::new(move |remediation: &Key| waker.enqueue(remediation.clone()));
    parts.workloads.set_wake(wake, parts.workers);
    controller
}

impl Reconciler for Remediations {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let remediation = match self.remediations.find(key) {
            Observed::Present(remediation) => remediation,
            Observed::Absent => {
                return self.without_remediation(key, writer).await;
            }
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of Metal3Remediations"));
            }
            Observed::Unknown(why) => return Ok(reason::unreadable(Metal3Remediation::KIND, key, &why)),
        };
        let facts = self.observe(key, remediation);
        if !self.is_served(&facts) {
            self.workloads.remove_waiter(key);
            return Ok(Next::Done);
        }
        let _requests = self.workloads.reconciled(key);
        self.perform(key, facts, writer).await
    }
}

impl Remediations {
    /// Plans, reads what a plan requires, and performs the one that requires nothing.
    async fn perform(&self, key: &Key, mut facts: Facts, writer: &Writer<Role>) -> Result<Next, Fault> {
        let mut stale: usize = 0;
        for _ in 0..ROUNDS {
            let plan = plan(&facts);
            match plan.reads {
                Reads::Nothing => match self.act(key, &facts, plan, writer).await? {
                    act::Acted::Next(next) => return Ok(next),
                    act::Acted::Again(changed) => {
                        facts = *changed;
                        stale = stale.saturating_add(usize::from(facts.node == Node::NotRead));
                        if stale > MOST_STALE {
                            facts.node = contended();
                        }
                    }
                },
                Reads::Node => facts.node = self.node(key, &facts).await?,
                Reads::Drained => facts.drained = Some(self.drained(key, &facts).await?),
                Reads::Everything => match self.confirm(key, &facts, writer).await? {
                    Some(confirmed) => facts = confirmed,
                    None => return Ok(Next::Requeue),
                },
            }
        }
        Ok(Next::Requeue)
    }

    fn forget(&self, key: &Key) {
        self.workloads.remove_waiter(key);
        self.related.set(key, std::collections::BTreeSet::new());
        self.attempts.remove(key);
    }
}
