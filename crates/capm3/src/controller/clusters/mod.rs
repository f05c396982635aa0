//! The controller of Metal3Clusters.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::WATCH_FILTER_LABEL;
use metal3_api::infrastructure::conditions::{cluster as words, shared};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::meta::Time;
use metal3_capi::{Sight, owner};
use metal3_domain::clock::Clock;
use metal3_runtime::events::EventSink;
use metal3_runtime::hub::{Found, Key};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{Mode, Writer};

use super::hubs::Hubs;
use super::news::{Row, between};
use crate::cluster::{Action, Facts, Plan, cluster_name, counts_descendants, plan};
use crate::machine::resolve::{Resolved, resolve};
use crate::needs::Machines as Role;

const UNREADABLE: Reason = Reason::new("ObjectUnreadable");

/// What is told by Events.
const NEWS: &[Row] = &[
    Row::good(
        words::INFRASTRUCTURE_READY,
        shared::REASON_READY,
        "the endpoint of the cluster is known",
    ),
    Row::bad(words::INFRASTRUCTURE_READY, words::REASON_INVALID_CONFIGURATION),
    Row::bad(words::READY, words::REASON_NO_OWNER_CLUSTER),
    Row::bad(words::ENDPOINT_READY, words::REASON_ENDPOINT_CONFLICT),
];

/// What the controller is made of.
#[derive(Debug)]
pub struct Parts {
    /// What is watched.
    pub hubs: Hubs,
    /// The time for what is written.
    pub clock: Arc<dyn Clock>,
    /// Where events are told.
    pub events: EventSink,
    /// Where figures are shown.
    pub metrics: Metrics,
    /// The value that the watch-filter label of a Metal3Cluster must have, if any.
    pub watch_filter: Option<String>,
    /// How many Metal3Clusters may be worked on at once.
    pub workers: usize,
}

/// Plans and acts for one Metal3Cluster at a time.
#[derive(Debug)]
pub struct Clusters {
    hubs: Hubs,
    clock: Arc<dyn Clock>,
    events: EventSink,
    watch_filter: Option<String>,
}

/// The controller, ready to run. Whoever calls this starts the watches of the hubs.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Clusters> {
    let hubs = parts.hubs;
    let clusters = Clusters {
        hubs: hubs.clone(),
        clock: Arc::clone(&parts.clock),
        events: parts.events,
        watch_filter: parts.watch_filter,
    };
    let (of_cluster, of_machine) = (hubs.ties(), hubs.ties());
    Controller::new("metal3cluster", parts.clock, writer, clusters)
        .reads(&hubs.metal3_clusters, |change| change.key())
        .reads(&hubs.clusters, move |change| {
            of_cluster.metal3_clusters_of_cluster(change)
        })
        .reads(&hubs.metal3_machines, move |change| {
            of_machine.metal3_clusters_of_machine(change)
        })
        .workers(parts.workers)
        .metrics(&parts.metrics)
}

impl Reconciler for Clusters {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let object = match self.hubs.metal3_clusters.find(key) {
            Found::Live(object) => object,
            Found::Absent => return Ok(Next::Settled),
            Found::Unreadable { why } => return Ok(Next::waiting(UNREADABLE, why)),
            Found::Unknown => return Err(Fault::bug("a pass before the first list of Metal3Clusters")),
        };
        if !is_served(&object.metadata, self.watch_filter.as_deref()) {
            return Ok(Next::Settled);
        }
        let cluster = match cluster_name(&object) {
            Some(name) => self.hubs.clusters.find(&key.beside(name)),
            None => Found::Absent,
        };
        let sight = Sight::from(&cluster);
        let descendant = if counts_descendants(&object, sight) {
            self.descendant(key, &object, sight)
        } else {
            None
        };
        let plan = plan(&Facts {
            object: &object,
            cluster: sight,
            descendant: descendant.as_deref(),
            now: Time::new(self.clock.now()),
        });
        self.act(key, &object, plan, writer).await
    }
}

impl Clusters {
    async fn act(&self, key: &Key, object: &Metal3Cluster, plan: Plan, writer: &Writer<Role>) -> Result<Next, Fault> {
        if plan == Plan::default() {
            return Ok(Next::Settled);
        }
        let home = &self.hubs.metal3_clusters;
        let written = match plan.action {
            None => Some(object.clone()),
            Some(Action::Patch(patch)) => writer.patch(home, key, patch).await?.object(),
            Some(Action::Delete) => writer.delete(home, object).await?.object(),
        };
        if let (Some(before), Some(status)) = (written, plan.status) {
            let mut after = before.clone();
            after.status = *status;
            writer.status(home, &before, &after).await?;
            self.tell(&before, &after);
        }
        // Where nothing is performed, another look would show the same again.
        Ok(if writer.mode() == Mode::ObserveOnly {
            Next::Settled
        } else {
            Next::Again
        })
    }

    fn tell(&self, before: &Metal3Cluster, after: &Metal3Cluster) {
        for (importance, reason, note) in between(NEWS, &before.status.conditions, &after.status.conditions) {
            self.events.tell(after, importance, reason, note);
        }
    }

    /// A machine that belongs to the object. One that cannot be read may.
    fn descendant(&self, key: &Key, object: &Metal3Cluster, cluster: Sight<'_, Cluster>) -> Option<String> {
        let clusters: Vec<Arc<Metal3Cluster>> = self.hubs.metal3_clusters.read(|hub| {
            let all = hub.objects().filter(|(one, _)| one.namespace == key.namespace);
            all.map(|(_, one)| Arc::clone(one)).collect()
        });
        let all: Vec<&Metal3Cluster> = clusters.iter().map(AsRef::as_ref).collect();
        let is_its = |machine: &Metal3Machine| belongs(machine, object, cluster, &all);
        self.hubs.metal3_machines.read(|hub| {
            let mut hidden = hub.unreadable().filter(|one| one.namespace == key.namespace);
            let mut machines = hub.objects().filter(|(one, _)| one.namespace == key.namespace);
            let found = machines.find(|(_, machine)| is_its(machine)).map(|(one, _)| one);
            found.or_else(|| hidden.next()).map(|one| one.name.clone())
        })
    }
}

// differs (`cluster-descendants`): the Go manager counts every Machine of the Cluster.
/// Whether a machine belongs to a Metal3Cluster. Without the Cluster, what the machine recorded counts, and else that it
/// is of the same Cluster.
fn belongs(
    machine: &Metal3Machine,
    object: &Metal3Cluster,
    cluster: Sight<'_, Cluster>,
    all: &[&Metal3Cluster],
) -> bool {
    let name = object.metadata.name.as_deref();
    let of_cluster = owner::cluster_of(&machine.metadata);
    if of_cluster.is_none() || of_cluster != cluster_name(object) {
        return false;
    }
    let recorded = machine.status.metal3_cluster.as_deref();
    match cluster.seen() {
        Some(cluster) => match resolve(machine, recorded, cluster, all) {
            Resolved::One(found) => found.metadata.name.as_deref() == name,
            Resolved::Ambiguous(..) | Resolved::None => false,
        },
        None => recorded.is_none_or(|recorded| Some(recorded) == name),
    }
}

/// Whether an object is one of those that this manager looks after.
pub(super) fn is_served(metadata: &ObjectMeta, filter: Option<&str>) -> bool {
    filter.is_none() || filter == owner::label(metadata, WATCH_FILTER_LABEL)
}
