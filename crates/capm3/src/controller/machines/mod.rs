//! The controller of Metal3Machines: what is known of one, and who is woken by what.

mod act;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{NodeList, Workloads};
use metal3_capi::{Sight, owner};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Found, Key};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler, StatusDebounce};
use metal3_runtime::write::Writer;

use super::caches::{Caches, host_of, machines_of_data, machines_of_machine};
use super::clusters::is_served;
use crate::machine::action::Plan;
use crate::machine::facts::{Facts, Hosts, Nodes, Settings, associated};
use crate::machine::gone::{self, Leftovers};
use crate::machine::plan::plan;
use crate::needs::Machines as Role;
use crate::node::NodeFacts;

/// Looks in one pass: a live read and the Nodes of the workload cluster may each call for another.
const ROUNDS: usize = 4;
/// Until a machine that is gone is looked at again: no index leads from a host that cannot be read to it.
const RECHECK: Duration = Duration::from_secs(60);
const UNREADABLE: Reason = Reason::new("ObjectUnreadable");

/// What the controller is made of.
#[derive(Debug)]
pub struct Parts {
    /// What is watched.
    pub caches: Caches,
    /// The way into workload clusters.
    pub workloads: Arc<dyn Workloads>,
    /// The time for what is written.
    pub clock: Arc<dyn Clock>,
    /// Where events are told.
    pub events: EventRecorder,
    /// Where figures are shown.
    pub metrics: Metrics,
    /// What the administrator chose.
    pub settings: Settings,
    /// The value that the watch-filter label of a machine must have, if any.
    pub watch_filter: Option<String>,
    /// How many machines may be worked on at once.
    pub workers: usize,
}

/// Plans and acts for one machine at a time.
#[derive(Debug)]
pub struct Machines {
    caches: Caches,
    workloads: Arc<dyn Workloads>,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    settings: Settings,
    watch_filter: Option<String>,
    patience: StatusDebounce<Key>,
}

/// The controller, ready to run. Whoever calls this starts the watches of the caches.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Machines> {
    let caches = parts.caches;
    let machines = Machines {
        caches: caches.clone(),
        workloads: Arc::clone(&parts.workloads),
        clock: Arc::clone(&parts.clock),
        events: parts.events,
        settings: parts.settings,
        watch_filter: parts.watch_filter,
        patience: StatusDebounce::new(Arc::clone(&parts.clock)),
    };
    let (of_host, of_cluster, of_metal3_cluster) = (caches.ties(), caches.ties(), caches.ties());
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

type HostsSeen = (Vec<Arc<BareMetalHost>>, Vec<Arc<BareMetalHost>>, Option<String>);

/// Everything around one machine, at one look.
struct Seen {
    machine: Option<Arc<Metal3Machine>>,
    owner: Found<Machine>,
    cluster: Found<Cluster>,
    cluster_key: Key,
    metal3_clusters: Vec<Arc<Metal3Cluster>>,
    unreadable_cluster: Option<String>,
    named: Found<BareMetalHost>,
    named_is_live: bool,
    claimed: Vec<Arc<BareMetalHost>>,
    all: Vec<Arc<BareMetalHost>>,
    unreadable: Option<String>,
    claim: Found<Metal3DataClaim>,
    data: Found<Metal3Data>,
    nodes: NodeList,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen")
            .field("cluster", &self.cluster_key)
            .finish_non_exhaustive()
    }
}

impl Reconciler for Machines {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let machine = match self.caches.metal3_machines.find(key) {
            Found::Live(machine) => Some(machine),
            Found::Absent => None,
            Found::Unreadable { why } => return Ok(Next::waiting(UNREADABLE, why)),
            Found::Unknown => return Err(Fault::bug("a pass before the first list of Metal3Machines")),
        };
        let filter = self.watch_filter.as_deref();
        if machine
            .as_ref()
            .is_some_and(|machine| !is_served(&machine.metadata, filter))
        {
            self.workloads.remove_waiter(key);
            return Ok(Next::Done);
        }
        let mut seen = self.look(key, machine);
        let (mut confirmed, mut asked) = (false, false);
        for _ in 0..ROUNDS {
            let plan = self.plan(&seen, confirmed);
            if plan.confirm && !confirmed {
                // The hosts stay as they were seen before: that is what the live read is good for.
                let live = writer.read::<Metal3Machine>(&self.caches.metal3_machines, key).await?;
                match (&seen.machine, live) {
                    (_, None) => seen.machine = None,
                    (Some(old), Some(now)) if is_same_version(old, &now) => {}
                    // What was looked up around it belongs to what it was.
                    _ => return Ok(Next::Requeue),
                }
                confirmed = true;
            } else if let Some(host) = plan.confirm_host.as_deref().filter(|_| !seen.named_is_live) {
                writer
                    .read::<BareMetalHost>(&self.caches.hosts, &key.sibling(host))
                    .await?;
                // What was read is in the cache, unless the cache knows better by now.
                seen = self.look(key, seen.machine);
                (seen.named_is_live, confirmed) = (true, false);
            } else if plan.wants_nodes && !asked {
                seen.nodes = self.workloads.nodes(&seen.cluster_key, key);
                asked = true;
            } else {
                if !plan.wants_nodes {
                    self.workloads.remove_waiter(key);
                }
                let obscured = (seen.machine.is_none() && plan.is_idle())
                    .then(|| with_leftovers(&seen, confirmed, |left| left.obscured().map(ToOwned::to_owned)))
                    .flatten();
                if let Some(host) = obscured {
                    let why = format!("BareMetalHost {host} cannot be read and may run with the data; correct it");
                    return Ok(Next::waiting_with_recheck(UNREADABLE, why, RECHECK));
                }
                return self.act(key, &seen, plan, writer).await;
            }
        }
        Ok(Next::Requeue)
    }
}

impl Machines {
    fn look(&self, key: &Key, machine: Option<Arc<Metal3Machine>>) -> Seen {
        let caches = &self.caches;
        let is_near = |one: &Key| one.namespace == key.namespace;
        let owner = machine
            .as_ref()
            .and_then(|machine| owner::first::<Machine>(&machine.metadata));
        let owner = owner.map_or(Found::Absent, |owner| caches.machines.find(&key.sibling(&owner.name)));
        let stated = Sight::from(&owner).seen().map(|owner| owner.spec.cluster_name.clone());
        let labelled = machine
            .as_ref()
            .and_then(|machine| owner::cluster_of(&machine.metadata))
            .map(ToOwned::to_owned);
        let cluster = labelled.or(stated).filter(|name| !name.is_empty()).unwrap_or_default();
        let cluster_key = key.sibling(&cluster);
        let claim = caches.claims.find(key);
        let answer = Sight::from(&claim)
            .seen()
            .and_then(|claim| claim.status.rendered_data.clone());
        let recorded = || {
            machine
                .as_ref()
                .and_then(|machine| machine.status.rendered_data.clone())
        };
        let data = answer.or_else(recorded).and_then(|data| data.name);
        let named = machine.as_deref().and_then(host_of);
        let (claimed, all, unreadable) = self.hosts(key, machine.as_deref());
        let (metal3_clusters, unreadable_cluster) = caches.metal3_clusters.read(|cache| {
            let all = cache.objects().filter(|(one, _)| is_near(one));
            let hidden = cache.unreadable().find(|one| is_near(one)).map(|one| one.name.clone());
            (all.map(|(_, one)| Arc::clone(one)).collect(), hidden)
        });
        Seen {
            owner,
            cluster: if cluster.is_empty() {
                Found::Absent
            } else {
                caches.clusters.find(&cluster_key)
            },
            cluster_key,
            metal3_clusters,
            unreadable_cluster,
            named: named.map_or(Found::Absent, |host| caches.hosts.find(&host)),
            named_is_live: false,
            claimed,
            all,
            unreadable,
            claim,
            data: data.map_or(Found::Absent, |name| caches.data.find(&key.sibling(&name))),
            nodes: NodeList::Unknown("the Nodes of the workload cluster were not looked at yet".to_owned()),
            machine,
        }
    }

    /// The hosts of a machine, all that it may choose among, and one that cannot be read.
    fn hosts(&self, key: &Key, machine: Option<&Metal3Machine>) -> HostsSeen {
        let needs_all = machine.is_some_and(|machine| associated(machine).is_none());
        let is_near = |one: &Key| one.namespace == key.namespace;
        self.caches.hosts.read(|cache| {
            let claimed = cache
                .indexes()
                .of_machine(key)
                .filter_map(|host| match cache.get(host).into() {
                    Found::Live(host) => Some(host),
                    Found::Unreadable { .. } | Found::Absent | Found::Unknown => None,
                });
            let all = needs_all.then(|| cache.objects().filter(|(one, _)| is_near(one)));
            let hidden = cache.unreadable().find(|one| is_near(one)).map(|one| one.name.clone());
            (
                claimed.collect(),
                all.into_iter().flatten().map(|(_, host)| Arc::clone(host)).collect(),
                hidden,
            )
        })
    }

    fn plan(&self, seen: &Seen, confirmed: bool) -> Plan {
        self.with_facts(seen, confirmed, plan)
            .unwrap_or_else(|| with_leftovers(seen, confirmed, gone::plan))
    }

    /// The facts of a machine that exists, for a decision.
    fn with_facts<T>(&self, seen: &Seen, confirmed: bool, decide: impl FnOnce(&Facts<'_>) -> T) -> Option<T> {
        let machine = seen.machine.as_deref()?;
        let metal3_clusters: Vec<&Metal3Cluster> = seen.metal3_clusters.iter().map(AsRef::as_ref).collect();
        let claimed: Vec<&BareMetalHost> = seen.claimed.iter().map(AsRef::as_ref).collect();
        let all: Vec<&BareMetalHost> = seen.all.iter().map(AsRef::as_ref).collect();
        let nodes: Vec<NodeFacts<'_>> = match &seen.nodes {
            NodeList::Listed(nodes) => nodes.iter().map(node_facts).collect(),
            NodeList::Unknown(_) => Vec::new(),
        };
        Some(decide(&Facts {
            machine,
            confirmed,
            owner: Sight::from(&seen.owner),
            cluster: Sight::from(&seen.cluster),
            metal3_clusters: &metal3_clusters,
            unreadable_cluster: seen.unreadable_cluster.as_deref(),
            hosts: Hosts {
                named: Sight::from(&seen.named),
                named_is_live: seen.named_is_live,
                claimed: &claimed,
                all: &all,
                unreadable: seen.unreadable.as_deref(),
            },
            claim: Sight::from(&seen.claim),
            data: Sight::from(&seen.data),
            nodes: match &seen.nodes {
                NodeList::Listed(_) => Nodes::Seen(&nodes),
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

/// What is left of a machine that does not exist, for a decision.
fn with_leftovers<T>(seen: &Seen, confirmed: bool, decide: impl FnOnce(&Leftovers<'_>) -> T) -> T {
    let hosts: Vec<&BareMetalHost> = seen.claimed.iter().map(AsRef::as_ref).collect();
    decide(&Leftovers {
        confirmed,
        hosts: &hosts,
        unreadable: seen.unreadable.as_deref(),
        claim: Sight::from(&seen.claim),
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
