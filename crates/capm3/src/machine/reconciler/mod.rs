//! The controller of Metal3Machines: observes one machine, and carries its plan out.

mod act;
mod live;
mod owners;
mod set;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3DataTemplate, Metal3Machine};
use metal3_api::meta::Time;
use metal3_capi::owner;
use metal3_capi::workload::{BUSY_POLL, Workloads, is_busy};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Controller, Fault, Next, Reconciler, StatusDebounce};
use metal3_runtime::write::{WriteError, WriteErrorKind, Writer};

use owners::{RefusedOwners, disowned};
use parking_lot::Mutex;

use crate::cluster::reconciler::is_served;
use crate::cluster::zones::templates_of;
use crate::controller::caches::{Caches, host_of};
use crate::label_sync::CopiedLabels;
use crate::machine::action::{Action, Plan, Reads};
use crate::machine::facts::{Facts, Hosts, LabelFacts, Settings, associated, template_of};
use crate::machine::plan::{Undone, after_failure, plan};
use crate::machine::states;
use crate::machine::watches::{machines_of_data, machines_of_machine};
use crate::needs::Machines as Role;
use crate::reasons::machine as reasons;

/// Plans per reconcile: live reads and the Nodes of the workload cluster each require another one.
const ROUNDS: usize = 5;

/// Dependencies of the controller.
pub struct Parts {
    /// The caches.
    pub caches: Caches,
    /// The templates of data, which zones name.
    pub data_templates: SharedCache<Metal3DataTemplate>,
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
pub struct Machines {
    caches: Caches,
    data_templates: SharedCache<Metal3DataTemplate>,
    workloads: Arc<dyn Workloads>,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    settings: Settings,
    watch_filter: Option<String>,
    debounce: StatusDebounce<Key>,
    /// The labels that this process copied to Nodes, and when. Lost with it: each Node is then read once more.
    copied: Mutex<HashMap<Key, (CopiedLabels, Monotonic)>>,
    /// The owners of hosts that may not be removed. Lost with the process, which then tries again.
    refused: RefusedOwners,
}

/// The controller. The caller starts the watches of the caches.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Machines> {
    let caches = parts.caches;
    states::report(&caches.metal3_machines, &parts.metrics, &parts.clock);
    let machines = Machines {
        caches: caches.clone(),
        data_templates: parts.data_templates.clone(),
        workloads: Arc::clone(&parts.workloads),
        clock: Arc::clone(&parts.clock),
        events: parts.events,
        settings: parts.settings,
        watch_filter: parts.watch_filter,
        debounce: StatusDebounce::new(Arc::clone(&parts.clock)),
        copied: Mutex::default(),
        refused: RefusedOwners::default(),
    };
    let [of_host, of_cluster, of_metal3_cluster, of_template, of_data_template] =
        std::array::from_fn(|_| caches.related_keys());
    let controller = Controller::new("metal3machine", parts.clock, writer, machines)
        .watches(&caches.metal3_machines, |change| change.key())
        .watches(&caches.machines, machines_of_machine)
        .watches(&caches.clusters, move |change| of_cluster.machines_of_cluster(change))
        .watches(&caches.metal3_clusters, move |change| {
            of_metal3_cluster.machines_of_metal3_cluster(change)
        })
        .watches(&caches.machine_templates, move |change| {
            of_template.machines_of_template(change)
        })
        .watches(&parts.data_templates, move |change| {
            of_data_template.machines_of_data_template(change)
        })
        .watches(&caches.hosts, move |change| of_host.machines_of_host(change))
        .watches(&caches.claims, |change| change.key())
        .watches(&caches.data, machines_of_data)
        .workers(parts.workers)
        .metrics(&parts.metrics);
    let waker = controller.queue().waker();
    parts
        .workloads
        .set_wake(Box::new(move |machine| waker.enqueue(machine.clone())), parts.workers);
    controller
}

impl Reconciler for Machines {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let machine = match self.caches.metal3_machines.find(key) {
            Observed::Present(machine) => Some(machine),
            Observed::Absent => None,
            Observed::Unknown(UnknownReason::Unreadable(why)) => return Ok(Next::waiting(reasons::UNREADABLE, why)),
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of Metal3Machines"));
            }
        };
        let filter = self.watch_filter.as_deref();
        if machine
            .as_ref()
            .is_some_and(|machine| !is_served(&machine.metadata, filter))
        {
            self.workloads.remove_waiter(key);
            self.copied.lock().remove(key);
            self.refused.remove(key);
            return Ok(Next::Done);
        }
        let _requests = self.workloads.reconciled(key);
        let mut facts = self.observe(key, machine);
        let mut unread = None;
        for _ in 0..ROUNDS {
            facts.now = self.now();
            let plan = plan(&facts);
            match &plan.reads {
                Reads::Nothing => {
                    let next = self.perform(key, facts, plan, writer).await?;
                    // The status says what could not be read; the fault retries it.
                    return unread.map_or(Ok(next), Err);
                }
                Reads::Machine => {
                    if !self.confirm(key, &mut facts, writer).await? {
                        return Ok(Next::Requeue);
                    }
                }
                Reads::Host(_) | Reads::Metal3Cluster(_) => {
                    facts = self.observe_again(key, facts, &plan.reads, writer).await?;
                }
                Reads::Template(name) => {
                    let template = key.sibling(name);
                    facts.template = self.read_template(&template, writer).await?;
                    facts.template_is_live = true;
                }
                Reads::Set => facts.set = self.read_set(key, &facts, writer).await?,
                Reads::Nodes => facts.nodes = self.workloads.nodes(&facts.cluster_key, key),
                Reads::Node(name) => facts.labels.node = self.workloads.node(&facts.cluster_key, name, key),
                Reads::NodeLabels(name) => unread = self.read_labels(key, &mut facts, name).await,
            }
        }
        Ok(Next::Requeue)
    }
}

impl Machines {
    /// Performs a plan without reads. When the API server rejects a write, the status reports what only the user can
    /// correct.
    async fn perform(&self, key: &Key, mut facts: Facts, plan: Plan, writer: &Writer<Role>) -> Result<Next, Fault> {
        if facts.machine.is_none() {
            self.copied.lock().remove(key);
            if plan.actions.is_empty() {
                self.refused.remove(key);
            }
        }
        let is_unread = |why: Option<&UnknownReason>| why == Some(&UnknownReason::NotRead);
        if is_unread(facts.nodes.unknown()) && is_unread(facts.labels.node.unknown()) {
            self.workloads.remove_waiter(key);
        }
        let (action, why, latest, fault) = match self.act(key, &facts, plan, writer).await {
            Ok(next) => return Ok(next),
            Err(ActError::Other(fault)) => return Err(fault),
            Err(ActError::Workload { action, fault, latest }) => (action, Some(fault.report()), latest, fault),
            Err(ActError::Write { action, error, latest }) => {
                let is_for_user = matches!(error.kind, WriteErrorKind::Invalid | WriteErrorKind::Forbidden);
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let why = is_for_user.then(|| format!("{error}: {}", source.unwrap_or_default()));
                if let (Some(host), Some(why)) = (disowned(&action), &why) {
                    self.report_owner(key, &facts, host, why);
                    // What else the machine needs is planned without this write.
                    return Ok(Next::Requeue);
                }
                (action, why, latest, Fault::from(error))
            }
        };
        // A request that waits for others is no failure, and reported only if it lasts.
        let waits = is_busy(&fault);
        let is_reported = !waits || self.debounce.remaining(key, act::RECOUNT).is_none();
        if let Some(why) = why.filter(|_| is_reported) {
            facts.now = self.now();
            let why = if waits { Undone::Busy } else { Undone::Failed(&why) };
            let plan = after_failure(&facts, &action, why);
            if let (Some(before), Some(write)) = (latest, plan.status) {
                self.write_status(&before, write, &plan.events, writer).await?;
            }
        }
        if waits {
            return Ok(Next::RequeueAfter(BUSY_POLL));
        }
        Err(fault)
    }

    fn now(&self) -> Time {
        Time::new(self.clock.now())
    }

    fn observe(&self, key: &Key, machine: Option<Arc<Metal3Machine>>) -> Facts {
        let caches = &self.caches;
        let own = machine.as_deref();
        let owner = own.and_then(|machine| owner::first::<Machine>(&machine.metadata));
        let owner = owner.map_or(Observed::Absent, |owner| {
            caches.machines.find(&key.sibling(&owner.name))
        });
        let stated = owner.present().map(|owner| owner.spec.cluster_name.as_str());
        let labelled = own.and_then(|machine| owner::cluster_of(&machine.metadata));
        let cluster = labelled.or(stated).unwrap_or_default();
        let cluster_key = key.sibling(cluster);
        let template = own.and_then(template_of);
        let claim = caches.claims.find(key);
        let answer = claim.present().and_then(|claim| claim.status.rendered_data.as_ref());
        let recorded = || own.and_then(|machine| machine.status.rendered_data.as_ref());
        let data = answer.or_else(recorded).and_then(|data| data.name.as_deref());
        let (metal3_clusters, unreadable_cluster) = self.metal3_clusters(key);
        let hosts = self.hosts(key, own);
        let copied = self.copied.lock().get(key).cloned();
        let since_copy = copied.as_ref().map(|(_, at)| self.clock.monotonic().since(*at));
        Facts {
            confirmed: false,
            cluster: if cluster.is_empty() {
                Observed::Absent
            } else {
                caches.clusters.find(&cluster_key)
            },
            cluster_key,
            zone_templates: own
                .map(|machine| self.zone_templates(key, machine, &metal3_clusters))
                .unwrap_or_default(),
            metal3_clusters,
            metal3_clusters_are_live: false,
            unreadable_cluster,
            template_is_live: false,
            template: template.map_or(Observed::Absent, |name| {
                caches.machine_templates.find(&key.sibling(name))
            }),
            asks_for_reuse: own.is_some_and(|machine| machine.metadata.deletion_timestamp.is_some())
                && self.asks_for_reuse(key),
            owner_refused: self.refused.of(key, self.clock.monotonic()),
            has_namesake: owner.present().is_some_and(|owner| self.has_namesake(owner, &hosts)),
            set: Observed::Unknown(UnknownReason::NotRead),
            hosts,
            data: data.map_or(Observed::Absent, |name| caches.data.find(&key.sibling(name))),
            claim,
            owner,
            nodes: Observed::Unknown(UnknownReason::NotRead),
            labels: LabelFacts {
                node: Observed::Unknown(UnknownReason::NotRead),
                live: Observed::Unknown(UnknownReason::NotRead),
                is_busy: false,
                copied: copied.map(|(copied, _)| copied),
                since_copy: since_copy.unwrap_or_default(),
            },
            settings: self.settings,
            now: self.now(),
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

    /// Whether the data templates exist that zones name, for a machine that takes its data from a zone.
    fn zone_templates(
        &self,
        key: &Key,
        machine: &Metal3Machine,
        near: &[Arc<Metal3Cluster>],
    ) -> BTreeMap<String, Observed<()>> {
        let near = near.iter().filter(|_| machine.spec.takes_zone_data());
        let named = near.flat_map(|one| templates_of(one));
        let find = |name: &str| self.data_templates.find(&key.sibling(name)).map(|_| ());
        named.map(|name| (name.to_owned(), find(name))).collect()
    }

    /// Whether a template of the namespace asks for node reuse, or cannot be read.
    fn asks_for_reuse(&self, key: &Key) -> bool {
        let is_in_namespace = |one: &Key| one.namespace == key.namespace;
        self.caches.machine_templates.read(|cache| {
            let mut all = cache.objects().filter(|(one, _)| is_in_namespace(one));
            all.any(|(_, one)| one.spec.node_reuse == Some(true)) || cache.unreadable().any(is_in_namespace)
        })
    }

    /// The hosts of a machine, all hosts that it may choose from, and an unreadable one.
    fn hosts(&self, key: &Key, machine: Option<&Metal3Machine>) -> Hosts {
        let named = machine.and_then(host_of);
        let named = named.map_or(Observed::Absent, |host| self.caches.hosts.find(&host));
        let needs_all = machine.is_some_and(|machine| associated(machine).is_none());
        let is_in_namespace = |one: &Key| one.namespace == key.namespace;
        self.caches.hosts.read(|cache| {
            let claimed = cache
                .indexes()
                .of_machine(key)
                .filter_map(|host| cache.get(host).into_present().cloned());
            let all = needs_all.then(|| cache.objects().filter(|(one, _)| is_in_namespace(one)));
            let unreadable = cache.unreadable().find(|one| is_in_namespace(one));
            Hosts {
                named,
                named_is_live: false,
                claimed: claimed.collect(),
                all: all.into_iter().flatten().map(|(_, host)| Arc::clone(host)).collect(),
                unreadable: unreadable.map(|one| one.name.clone()),
            }
        })
    }
}

/// Why the actions of a plan ended early.
enum ActError {
    /// The API server rejected the write of an action, or its outcome is unknown.
    Write {
        action: Action,
        error: WriteError,
        /// The machine at its last version in this reconcile.
        latest: Option<Box<Metal3Machine>>,
    },
    /// A request to the workload cluster failed.
    Workload {
        action: Action,
        fault: Fault,
        /// The machine at its last version in this reconcile.
        latest: Option<Box<Metal3Machine>>,
    },
    /// A read, or the write of the status, failed.
    Other(Fault),
}

impl From<Fault> for ActError {
    fn from(fault: Fault) -> Self {
        Self::Other(fault)
    }
}

fn is_same_version(one: &Metal3Machine, other: &Metal3Machine) -> bool {
    let is = |machine: &Metal3Machine| (machine.metadata.uid.clone(), machine.metadata.resource_version.clone());
    is(one) == is(other)
}
