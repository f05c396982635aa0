//! Runs the stand-ins: watch, decide, write, until nothing is due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::Clock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::kinds::{ALL, Kind, MANAGED_CONTROL_PLANE};
use crate::view::{Object, Snapshot, WorkloadView};
use crate::watch::{WatchEvent, follow};
use crate::workload::WorkloadServers;
use crate::write::Write;
use crate::{bootstrap, byoh, control_plane, core, kinds, openstack};

mod perform;

pub(crate) use perform::{perform, request};

/// Pause after a failed write whose cause no watch reports.
const RETRY: Duration = Duration::from_secs(1);
const NODE: &Kind = &Kind {
    group: "",
    version: "v1",
    kind: "Node",
    plural: "nodes",
};

/// Dependencies of the stand-ins.
#[derive(Clone)]
pub struct Parts {
    /// The API server of the management cluster.
    pub client: kube::Client,
    /// The API servers of the workload clusters.
    pub workloads: Arc<dyn WorkloadServers>,
    /// Clock for timestamps.
    pub clock: Arc<dyn Clock>,
}

/// Which providers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Providers {
    /// Cluster API and the other providers.
    All,
    /// Only the other providers, next to the real Cluster API.
    Other,
}

impl Providers {
    /// The kinds that these providers watch.
    fn kinds(self) -> impl Iterator<Item = &'static Kind> {
        // The real management cluster does not define this kind.
        ALL.iter()
            .copied()
            .filter(move |kind| self == Providers::All || *kind != MANAGED_CONTROL_PLANE)
    }
}

/// An input of the program.
enum Trigger {
    Management(&'static Kind, WatchEvent),
    Workload(String, WatchEvent),
    WorkloadsChanged,
    Retry,
}

/// The writes that are due for one object.
type Reconcile = fn(&Snapshot, &Object) -> Vec<Write>;

/// The controllers of Cluster API.
const CLUSTER_API: [(&Kind, Reconcile); 6] = [
    (kinds::CLUSTER, core::cluster::reconcile),
    (kinds::DEPLOYMENT, core::deployment::reconcile),
    (kinds::SET, core::machine_set::reconcile),
    (kinds::MACHINE, core::machine::reconcile),
    (kinds::CONFIG, bootstrap::reconcile),
    (kinds::CONTROL_PLANE, control_plane::kubeadm::reconcile),
];
/// The controllers of the other providers.
const OTHERS: [(&Kind, Reconcile); 5] = [
    (kinds::HOSTED_CONTROL_PLANE, control_plane::hosted::reconcile),
    (kinds::MANAGED_CONTROL_PLANE, control_plane::managed::reconcile),
    (kinds::BYO_CLUSTER, byoh::cluster::reconcile),
    (kinds::BYO_MACHINE, byoh::machine::reconcile),
    (kinds::OPENSTACK_CLUSTER, openstack::reconcile),
];

/// Every write that is due.
#[must_use]
pub fn writes(snapshot: &Snapshot, providers: Providers) -> Vec<Write> {
    let of_cluster_api = CLUSTER_API.iter().filter(|_| providers == Providers::All);
    of_cluster_api
        .chain(&OTHERS)
        .flat_map(|(kind, reconcile)| snapshot.all(kind).flat_map(|object| reconcile(snapshot, object)))
        .collect()
}

/// Runs the stand-ins until the future is dropped.
pub async fn run(parts: Parts, providers: Providers) {
    let (to, events) = unbounded_channel();
    let mut program = Program {
        snapshot: Snapshot::default(),
        unlisted: providers.kinds().map(|kind| kind.kind).collect(),
        nodes: BTreeMap::new(),
        tasks: JoinSet::new(),
        to,
        parts,
        providers,
    };
    program.start();
    program.run(events).await;
}

struct Program {
    parts: Parts,
    providers: Providers,
    snapshot: Snapshot,
    /// Kinds without a complete list; no decision is made before all are listed.
    unlisted: BTreeSet<&'static str>,
    /// The watches of Nodes, by endpoint.
    nodes: BTreeMap<String, tokio::task::AbortHandle>,
    tasks: JoinSet<()>,
    to: UnboundedSender<Trigger>,
}

impl Program {
    fn start(&mut self) {
        for kind in self.providers.kinds() {
            let wrap = move |event| Trigger::Management(kind, event);
            let watch = follow(self.parts.client.clone(), kind.clone(), None, self.to.clone(), wrap);
            self.tasks.spawn(watch);
        }
        let (mut changes, to) = (self.parts.workloads.changes(), self.to.clone());
        self.tasks.spawn(async move {
            while to.send(Trigger::WorkloadsChanged).is_ok() {
                changes.changed().await;
            }
        });
    }

    async fn run(&mut self, mut events: UnboundedReceiver<Trigger>) {
        while let Some(trigger) = events.recv().await {
            self.apply(trigger);
            while let Ok(trigger) = events.try_recv() {
                self.apply(trigger);
            }
            if self.unlisted.is_empty() {
                self.reconcile(&mut events).await;
            }
        }
    }

    /// Decides and writes until nothing is due or the writes changed nothing.
    async fn reconcile(&mut self, events: &mut UnboundedReceiver<Trigger>) {
        loop {
            self.snapshot.now = self.parts.clock.now();
            let mut is_new = false;
            for write in writes(&self.snapshot, self.providers) {
                match perform(&self.parts, &write).await {
                    Ok(Some((kind, object))) => is_new |= self.snapshot.put(kind, object),
                    Ok(None) => {}
                    Err(why) => {
                        tracing::debug!(?write, "not written: {why}");
                        self.retry_later();
                    }
                }
            }
            while let Ok(trigger) = events.try_recv() {
                is_new = true;
                self.apply(trigger);
            }
            if !is_new {
                return;
            }
        }
    }

    fn retry_later(&mut self) {
        let to = self.to.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(RETRY).await;
            drop(to.send(Trigger::Retry));
        });
    }

    fn apply(&mut self, trigger: Trigger) {
        // Removes finished tasks.
        while self.tasks.try_join_next().is_some() {}
        match trigger {
            Trigger::Management(kind, WatchEvent::Applied(object)) => drop(self.snapshot.put(kind, object)),
            Trigger::Management(kind, WatchEvent::Deleted(object)) => drop(self.snapshot.remove(kind, &object.key())),
            Trigger::Management(kind, WatchEvent::Listed(keys)) => {
                self.snapshot.keep(kind, &keys);
                self.unlisted.remove(kind.kind);
            }
            Trigger::Workload(at, event) => {
                if let Some(workload) = self.snapshot.workloads.get_mut(&at) {
                    apply_node_event(workload, event);
                }
            }
            Trigger::WorkloadsChanged => self.follow_workloads(),
            Trigger::Retry => {}
        }
    }

    /// Watches the Nodes of each running workload cluster.
    fn follow_workloads(&mut self) {
        let endpoints = self.parts.workloads.endpoints();
        self.snapshot.workloads.retain(|at, _| endpoints.contains(at));
        self.nodes.retain(|at, watch| {
            let is_running = endpoints.contains(at);
            if !is_running {
                watch.abort();
            }
            is_running
        });
        for at in endpoints {
            if self.nodes.contains_key(&at) {
                continue;
            }
            let Some(client) = self.parts.workloads.client(&at, "cluster-api") else {
                continue;
            };
            let of = at.clone();
            let wrap = move |event| Trigger::Workload(of.clone(), event);
            let watch = self
                .tasks
                .spawn(follow(client, NODE.clone(), None, self.to.clone(), wrap));
            self.nodes.insert(at.clone(), watch);
            let workload = WorkloadView {
                is_up: true,
                nodes: Vec::new(),
            };
            self.snapshot.workloads.insert(at, workload);
        }
    }
}

fn apply_node_event(workload: &mut WorkloadView, event: WatchEvent) {
    let mut remove = |name: &str| workload.nodes.retain(|node| node.name() != name);
    match event {
        WatchEvent::Applied(node) => {
            remove(node.name());
            workload.nodes.push(node);
            workload.nodes.sort_by_key(Object::creation_order);
        }
        WatchEvent::Deleted(node) => remove(node.name()),
        WatchEvent::Listed(keys) => workload
            .nodes
            .retain(|node| keys.iter().any(|key| key.name == node.name())),
    }
}
