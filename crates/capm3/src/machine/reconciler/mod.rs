//! The controller of Metal3Machines: observes one machine, and maps changes to machines.

mod act;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_capi::workload::{NodeList, Workloads};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::reason::Reason;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler, StatusDebounce};
use metal3_runtime::write::Writer;

use crate::cluster::reconciler::is_served;
use crate::controller::caches::{Caches, host_of, machines_of_data, machines_of_machine};
use crate::machine::action::Plan;
use crate::machine::cleanup::{self, Orphans};
use crate::machine::facts::{Facts, Hosts, Nodes, Settings, associated};
use crate::machine::plan::plan;
use crate::needs::Machines as Role;
use crate::node::NodeFacts;

/// Plans per reconcile: live reads and the Nodes of the workload cluster each require another one.
const ROUNDS: usize = 4;
/// Recheck of a deleted machine: no index maps an unreadable host to it.
const RECHECK: Duration = Duration::from_secs(60);
const UNREADABLE: Reason = Reason::new("ObjectUnreadable");

/// Dependencies of the controller.
#[derive(Debug)]
pub struct Parts {
    /// The caches.
    pub caches: Caches,
    /// Access to workload clusters.
    pub workloads: Arc<dyn Workloads>,
    /// Clock for timestamps.
    pub clock: Arc<dyn Clock>,
    /// Receives Events.
    pub events: EventRecorder,
    /// Receives metrics.
    pub metrics: Metrics,
    /// The administrator's settings.
    pub settings: Settings,
    /// The required value of the watch-filter label, if any.
    pub watch_filter: Option<String>,
    /// Number of workers.
    pub workers: usize,
}

/// Reconciles one machine at a time.
#[derive(Debug)]
pub struct Machines {
    caches: Caches,
    workloads: Arc<dyn Workloads>,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    settings: Settings,
    watch_filter: Option<String>,
    debounce: StatusDebounce<Key>,
}

/// The controller. The caller starts the watches of the caches.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Machines> {
    let caches = parts.caches;
    let machines = Machines {
        caches: caches.clone(),
        workloads: Arc::clone(&parts.workloads),
        clock: Arc::clone(&parts.clock),
        events: parts.events,
        settings: parts.settings,
        watch_filter: parts.watch_filter,
        debounce: StatusDebounce::new(Arc::clone(&parts.clock)),
    };
    let (of_host, of_cluster, of_metal3_cluster) =
        (caches.related_keys(), caches.related_keys(), caches.related_keys());
    let controller = Controller::new("metal3machine", parts.clock, writer, machines)
        .watches(&caches.metal3_machines, |change| change.key())
        .watches(&caches.machines, machines_of_machine)
        .watches(&caches.clusters, move |change| of_cluster.machines_of_cluster(change))
        .watches(&caches.metal3_clusters, move |change| {
            of_metal3_cluster.machines_of_metal3_cluster(change)
        })
        .watches(&caches.hosts, move |change| of_host.machines_of_host(change))
        .watches(&caches.claims, |change| change.key())
        .watches(&caches.data, machines_of_data)
        .workers(parts.workers)
        .metrics(&parts.metrics);
    let waker = controller.queue().waker();
    parts
        .workloads
        .set_wake(Box::new(move |machine| waker.enqueue(machine.clone())));
    controller
}

type ObservedHosts = (Vec<Arc<BareMetalHost>>, Vec<Arc<BareMetalHost>>, Option<String>);

/// Everything that the plan for one machine reads, observed at one time.
struct Snapshot {
    machine: Option<Arc<Metal3Machine>>,
    owner: Observed<Arc<Machine>>,
    cluster: Observed<Arc<Cluster>>,
    cluster_key: Key,
    metal3_clusters: Vec<Arc<Metal3Cluster>>,
    unreadable_cluster: Option<String>,
    named: Observed<Arc<BareMetalHost>>,
    named_is_live: bool,
    claimed: Vec<Arc<BareMetalHost>>,
    all: Vec<Arc<BareMetalHost>>,
    unreadable: Option<String>,
    claim: Observed<Arc<Metal3DataClaim>>,
    data: Observed<Arc<Metal3Data>>,
    nodes: NodeList,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("cluster", &self.cluster_key)
            .finish_non_exhaustive()
    }
}

impl Reconciler for Machines {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let machine = match self.caches.metal3_machines.find(key) {
            Observed::Present(machine) => Some(machine),
            Observed::Absent => None,
            Observed::Unknown(UnknownReason::Unreadable(why)) => return Ok(Next::waiting(UNREADABLE, why)),
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of Metal3Machines"));
            }
        };
        let filter = self.watch_filter.as_deref();
        if machine
            .as_ref()
            .is_some_and(|machine| !is_served(&machine.metadata, filter))
        {
            self.workloads.remove_waiter(key);
            return Ok(Next::Done);
        }
        let mut snapshot = self.observe(key, machine);
        let (mut confirmed, mut nodes_read) = (false, false);
        for _ in 0..ROUNDS {
            let plan = self.plan(&snapshot, confirmed);
            if plan.confirm && !confirmed {
                // The hosts must be those observed before the live read, so that it confirms them.
                let live = writer.read::<Metal3Machine>(&self.caches.metal3_machines, key).await?;
                match (&snapshot.machine, live) {
                    (_, None) => snapshot.machine = None,
                    (Some(old), Some(now)) if is_same_version(old, &now) => {}
                    // The rest of the snapshot belongs to another version.
                    _ => return Ok(Next::Requeue),
                }
                confirmed = true;
            } else if let Some(host) = plan.confirm_host.as_deref().filter(|_| !snapshot.named_is_live) {
                writer
                    .read::<BareMetalHost>(&self.caches.hosts, &key.sibling(host))
                    .await?;
                // The live read is in the cache, unless the cache has a newer version.
                snapshot = self.observe(key, snapshot.machine);
                (snapshot.named_is_live, confirmed) = (true, false);
            } else if plan.needs_nodes && !nodes_read {
                snapshot.nodes = self.workloads.nodes(&snapshot.cluster_key, key);
                nodes_read = true;
            } else {
                if !plan.needs_nodes {
                    self.workloads.remove_waiter(key);
                }
                let blocking_host = (snapshot.machine.is_none() && plan.is_idle())
                    .then(|| with_orphans(&snapshot, confirmed, |left| left.blocking_host().map(ToOwned::to_owned)))
                    .flatten();
                if let Some(host) = blocking_host {
                    let why = format!("BareMetalHost {host} cannot be read and may run with the data; correct it");
                    return Ok(Next::waiting_with_recheck(UNREADABLE, why, RECHECK));
                }
                return self.act(key, &snapshot, plan, writer).await;
            }
        }
        Ok(Next::Requeue)
    }
}

impl Machines {
    fn observe(&self, key: &Key, machine: Option<Arc<Metal3Machine>>) -> Snapshot {
        let caches = &self.caches;
        let owner = machine
            .as_ref()
            .and_then(|machine| owner::first::<Machine>(&machine.metadata));
        let owner = owner.map_or(Observed::Absent, |owner| {
            caches.machines.find(&key.sibling(&owner.name))
        });
        let stated = owner
            .as_deref()
            .present()
            .copied()
            .map(|owner| owner.spec.cluster_name.clone());
        let labelled = machine
            .as_ref()
            .and_then(|machine| owner::cluster_of(&machine.metadata))
            .map(ToOwned::to_owned);
        let cluster = labelled.or(stated).filter(|name| !name.is_empty()).unwrap_or_default();
        let cluster_key = key.sibling(&cluster);
        let claim = caches.claims.find(key);
        let answer = claim
            .as_deref()
            .present()
            .copied()
            .and_then(|claim| claim.status.rendered_data.clone());
        let recorded = || {
            machine
                .as_ref()
                .and_then(|machine| machine.status.rendered_data.clone())
        };
        let data = answer.or_else(recorded).and_then(|data| data.name);
        let named = machine.as_deref().and_then(host_of);
        let (claimed, all, unreadable) = self.hosts(key, machine.as_deref());
        let (metal3_clusters, unreadable_cluster) = self.metal3_clusters(key);
        Snapshot {
            owner,
            cluster: if cluster.is_empty() {
                Observed::Absent
            } else {
                caches.clusters.find(&cluster_key)
            },
            cluster_key,
            metal3_clusters,
            unreadable_cluster,
            named: named.map_or(Observed::Absent, |host| caches.hosts.find(&host)),
            named_is_live: false,
            claimed,
            all,
            unreadable,
            claim,
            data: data.map_or(Observed::Absent, |name| caches.data.find(&key.sibling(&name))),
            nodes: NodeList::Unknown("the Nodes of the workload cluster are not read yet".to_owned()),
            machine,
        }
    }

    /// The Metal3Clusters of the namespace, and the name of an unreadable one.
    fn metal3_clusters(&self, key: &Key) -> (Vec<Arc<Metal3Cluster>>, Option<String>) {
        let is_in_namespace = |one: &Key| one.namespace == key.namespace;
        self.caches.metal3_clusters.read(|cache| {
            let all = cache.objects().filter(|(one, _)| is_in_namespace(one));
            let unreadable = cache.unreadable().find(|one| is_in_namespace(one));
            (
                all.map(|(_, one)| Arc::clone(one)).collect(),
                unreadable.map(|one| one.name.clone()),
            )
        })
    }

    /// The hosts of a machine, all hosts that it may choose from, and an unreadable one.
    fn hosts(&self, key: &Key, machine: Option<&Metal3Machine>) -> ObservedHosts {
        let needs_all = machine.is_some_and(|machine| associated(machine).is_none());
        let is_in_namespace = |one: &Key| one.namespace == key.namespace;
        self.caches.hosts.read(|cache| {
            let claimed = cache
                .indexes()
                .of_machine(key)
                .filter_map(|host| cache.get(host).into_present().cloned());
            let all = needs_all.then(|| cache.objects().filter(|(one, _)| is_in_namespace(one)));
            let unreadable = cache
                .unreadable()
                .find(|one| is_in_namespace(one))
                .map(|one| one.name.clone());
            (
                claimed.collect(),
                all.into_iter().flatten().map(|(_, host)| Arc::clone(host)).collect(),
                unreadable,
            )
        })
    }

    fn plan(&self, snapshot: &Snapshot, confirmed: bool) -> Plan {
        self.with_facts(snapshot, confirmed, plan)
            .unwrap_or_else(|| with_orphans(snapshot, confirmed, cleanup::plan))
    }

    fn with_facts<T>(&self, snapshot: &Snapshot, confirmed: bool, decide: impl FnOnce(&Facts<'_>) -> T) -> Option<T> {
        let machine = snapshot.machine.as_deref()?;
        let metal3_clusters: Vec<&Metal3Cluster> = snapshot.metal3_clusters.iter().map(AsRef::as_ref).collect();
        let claimed: Vec<&BareMetalHost> = snapshot.claimed.iter().map(AsRef::as_ref).collect();
        let all: Vec<&BareMetalHost> = snapshot.all.iter().map(AsRef::as_ref).collect();
        let nodes: Vec<NodeFacts<'_>> = match &snapshot.nodes {
            NodeList::Listed(nodes) => nodes.iter().map(node_facts).collect(),
            NodeList::Unknown(_) => Vec::new(),
        };
        Some(decide(&Facts {
            machine,
            confirmed,
            owner: snapshot.owner.as_deref(),
            cluster: snapshot.cluster.as_deref(),
            metal3_clusters: &metal3_clusters,
            unreadable_cluster: snapshot.unreadable_cluster.as_deref(),
            hosts: Hosts {
                named: snapshot.named.as_deref(),
                named_is_live: snapshot.named_is_live,
                claimed: &claimed,
                all: &all,
                unreadable: snapshot.unreadable.as_deref(),
            },
            claim: snapshot.claim.as_deref(),
            data: snapshot.data.as_deref(),
            nodes: match &snapshot.nodes {
                NodeList::Listed(_) => Nodes::Listed(&nodes),
                NodeList::Unknown(why) => Nodes::Unknown(why),
            },
            settings: self.settings,
            now: Time::new(self.clock.now()),
        }))
    }
}

fn is_same_version(one: &Metal3Machine, other: &Metal3Machine) -> bool {
    let is = |machine: &Metal3Machine| (machine.metadata.uid.clone(), machine.metadata.resource_version.clone());
    is(one) == is(other)
}

/// Calls `decide` with the objects of a machine that does not exist.
fn with_orphans<T>(snapshot: &Snapshot, confirmed: bool, decide: impl FnOnce(&Orphans<'_>) -> T) -> T {
    let hosts: Vec<&BareMetalHost> = snapshot.claimed.iter().map(AsRef::as_ref).collect();
    decide(&Orphans {
        confirmed,
        hosts: &hosts,
        unreadable: snapshot.unreadable.as_deref(),
        claim: snapshot.claim.as_deref(),
    })
}

fn node_facts(node: &metal3_capi::workload::Node) -> NodeFacts<'_> {
    NodeFacts {
        name: &node.name,
        provider_id: &node.provider_id,
        host_uid: &node.host_uid,
        hostname: &node.hostname,
    }
}
