//! Reads what a plan needs: caches, the Node, and everything live before a step that cannot be undone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::kind::Kind;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{Drained, NodeState, is_busy};
use metal3_capi::{owner, pause};
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{Writable, WriteTarget, Writer};

use super::Remediations;
use super::attempts::Seen;
use crate::cluster::reconciler::is_served;
use crate::machine::facts::associated;
use crate::needs::Remediations as Role;
use crate::remediation::facts::{Facts, Node, power_off_annotation};
use crate::remediation::related::Object;

/// A wait for the requests of others is reported after this time.
const BUSY_REPORTED: Duration = Duration::from_mins(1);

/// The names of the objects of a remediation.
#[derive(Default)]
struct Names {
    machine: Option<Key>,
    metal3_machine: Option<Key>,
    host: Option<Key>,
    cluster: Option<Key>,
}

impl Remediations {
    /// The facts of the caches. Each object is recorded before it is read.
    pub(super) fn observe(&self, key: &Key, remediation: Arc<Metal3Remediation>) -> Facts {
        self.observe_named(key, remediation).0
    }

    fn observe_named(&self, key: &Key, remediation: Arc<Metal3Remediation>) -> (Facts, Names) {
        let caches = &self.caches;
        let mut names = Names::default();
        let reference = owner::first::<Machine>(&remediation.metadata);
        names.machine = reference.map(|reference| key.sibling(&reference.name));
        self.record(key, &names);
        let machine = find(names.machine.as_ref(), |name| caches.machines.find(name));
        let uid = reference.map(|reference| reference.uid.as_str());
        let machine = match machine {
            // Another Machine of the name is not the owner.
            Observed::Present(machine) if machine.metadata.uid.as_deref() != uid => Observed::Absent,
            found => found,
        };
        let found = machine.present();
        let labelled = owner::cluster_of(&remediation.metadata);
        let cluster = found.map(|machine| machine.spec.cluster_name.as_str()).or(labelled);
        names.cluster = cluster.filter(|name| !name.is_empty()).map(|name| key.sibling(name));
        names.metal3_machine = found.and_then(|machine| {
            let reference = &machine.spec.infrastructure_ref;
            let is_ours = reference.kind == Metal3Machine::KIND && reference.api_group == Metal3Machine::GROUP;
            is_ours.then(|| key.sibling(&reference.name))
        });
        self.record(key, &names);
        let cluster = find(names.cluster.as_ref(), |name| caches.clusters.find(name));
        let metal3_machine = find(names.metal3_machine.as_ref(), |name| caches.metal3_machines.find(name));
        let host = metal3_machine.present().and_then(|machine| associated(machine));
        names.host = host.map(|name| key.sibling(name));
        self.record(key, &names);
        let host = find(names.host.as_ref(), |name| caches.hosts.find(name));
        let is_paused = pause::is_cluster_paused(cluster.present().map(|cluster| &**cluster))
            || pause::is_reconcile_skipped(&remediation.metadata);
        let mut facts = Facts {
            is_confirmed: false,
            held: self.held(key, &remediation),
            node: match &machine {
                Observed::Present(machine) if machine.status.node_ref.is_none() => Node::NeverRegistered,
                _ => Node::NotRead,
            },
            drained: None,
            changed: None,
            elapsed: Duration::ZERO,
            off: Duration::ZERO,
            on: Duration::ZERO,
            awaited: Duration::ZERO,
            now: Time::new(self.clock.now()),
            remediation,
            machine,
            cluster,
            metal3_machine,
            host,
        };
        let host = facts.host.present().map(|host| &**host);
        let seen = Seen {
            is_paused,
            is_machine_paused: facts.is_machine_paused(host),
            is_on: host.map(|host| host.status.powered_on),
        };
        let lasted = self.attempts.observe(key, &facts.remediation, seen, &*self.clock);
        (facts.elapsed, facts.off) = (lasted.elapsed, lasted.off);
        (facts.on, facts.awaited) = (lasted.on, lasted.awaited);
        facts.changed = lasted.changed;
        (facts, names)
    }

    fn record(&self, key: &Key, names: &Names) {
        let objects: [Option<Object>; 4] = [
            names.machine.clone().map(Object::Machine),
            names.metal3_machine.clone().map(Object::Metal3Machine),
            names.host.clone().map(Object::Host),
            names.cluster.clone().map(Object::Cluster),
        ];
        self.related
            .set(key, objects.into_iter().flatten().collect::<BTreeSet<_>>());
    }

    /// The hosts of the namespace that are kept off for the remediation.
    fn held(&self, key: &Key, remediation: &Metal3Remediation) -> Vec<Arc<BareMetalHost>> {
        let annotation = power_off_annotation(remediation);
        self.caches.hosts.read(|cache| {
            let near = cache.objects().filter(|(host, _)| host.namespace == key.namespace);
            let held = near.filter(|(_, host)| host.annotation(&annotation).is_some());
            held.map(|(_, host)| Arc::clone(host)).collect()
        })
    }

    /// Whether the remediation, or the machine that it repairs, matches the watch filter. A MachineHealthCheck does not
    /// copy the label.
    ///
    /// differs: `remediation-watch-filter`. The Go manager ignores the filter.
    pub(super) fn is_served(&self, facts: &Facts) -> bool {
        let filter = self.watch_filter.as_deref();
        is_served(&facts.remediation.metadata, filter)
            || match &facts.metal3_machine {
                Observed::Present(machine) => is_served(&machine.metadata, filter),
                Observed::Absent => facts.machine.present().is_none(),
                Observed::Unknown(_) => false,
            }
    }

    /// The Node now. The key is enqueued when Nodes of the cluster appear or disappear.
    pub(super) async fn node(&self, key: &Key, facts: &Facts) -> Result<Node, Fault> {
        let (Some(machine), Some(cluster)) = (facts.machine.present(), facts.cluster.present()) else {
            return Ok(Node::Read(NodeState::Unknown("the Cluster does not exist".to_owned())));
        };
        let Some(node) = &machine.status.node_ref else {
            return Ok(Node::NeverRegistered);
        };
        let cluster = Key::of(&**cluster);
        self.workloads.wait(&cluster, key);
        match self.workloads.node(&cluster, &node.name, key).await {
            Err(fault) if is_busy(&fault) => {
                let waits = self.attempts.not_sent(key, &*self.clock);
                Ok(Node::Busy {
                    is_reported: waits >= BUSY_REPORTED,
                })
            }
            read => Ok(Node::Read(read?)),
        }
    }

    /// What is left on the Node that was read in this reconcile.
    pub(super) async fn drained(&self, key: &Key, facts: &Facts) -> Result<Drained, Fault> {
        match (facts.cluster.present(), &facts.node) {
            (Some(cluster), Node::Read(NodeState::Present(node))) => {
                self.workloads.drained(&Key::of(&**cluster), &node.name, key).await
            }
            _ => Ok(Drained::Unknown),
        }
    }

    /// The facts after live reads of all objects; `None` when the remediation is not the one that was observed.
    pub(super) async fn confirm(
        &self,
        key: &Key,
        facts: &Facts,
        writer: &Writer<Role>,
    ) -> Result<Option<Facts>, Fault> {
        let caches = &self.caches;
        let live: Option<Metal3Remediation> = writer.read(&self.remediations, key).await?;
        let same =
            |live: &Metal3Remediation| live.metadata.resource_version == facts.remediation.metadata.resource_version;
        let Some(live) = live.filter(same) else {
            return Ok(None);
        };
        let (_, names) = self.observe_named(key, Arc::new(live.clone()));
        let machine = read_live::<Machine>(writer, &caches.machines, names.machine.as_ref()).await?;
        let metal3_machine =
            read_live::<Metal3Machine>(writer, &caches.metal3_machines, names.metal3_machine.as_ref()).await?;
        let host = read_live::<BareMetalHost>(writer, &caches.hosts, names.host.as_ref()).await?;
        let cluster = read_live::<Cluster>(writer, &caches.clusters, names.cluster.as_ref()).await?;
        let (mut confirmed, now) = self.observe_named(key, Arc::new(live));
        // An object that was not read live appeared meanwhile.
        let is_same = (now.machine, now.metal3_machine, now.host, now.cluster)
            == (names.machine, names.metal3_machine, names.host, names.cluster);
        if !is_same {
            return Ok(None);
        }
        machine.apply(&mut confirmed.machine);
        metal3_machine.apply(&mut confirmed.metal3_machine);
        host.apply(&mut confirmed.host);
        cluster.apply(&mut confirmed.cluster);
        confirmed.is_confirmed = true;
        confirmed.drained = facts.drained;
        if facts.node != Node::NotRead {
            confirmed.node = facts.node.clone();
        }
        Ok(Some(confirmed))
    }
}

fn find<K>(name: Option<&Key>, find: impl FnOnce(&Key) -> Observed<Arc<K>>) -> Observed<Arc<K>> {
    name.map_or(Observed::Absent, find)
}

/// What a live read of an object showed.
enum Live {
    /// The cache has it, at the version that was read or a later one.
    Cached,
    Absent,
    /// It exists, and this version of the program cannot decode it.
    Unreadable,
}

impl Live {
    fn apply<K>(self, observed: &mut Observed<Arc<K>>) {
        match (self, &*observed) {
            (Self::Cached, _) | (Self::Unreadable, Observed::Unknown(_)) => {}
            (Self::Absent, _) => *observed = Observed::Absent,
            (Self::Unreadable, _) => {
                let why = "it cannot be decoded".to_owned();
                *observed = Observed::Unknown(UnknownReason::Unreadable(why));
            }
        }
    }
}

/// One that cannot be decoded is a wait: its next change enqueues the key. Other faults are retried.
async fn read_live<K: Writable>(
    writer: &Writer<Role>,
    cache: &impl WriteTarget<K>,
    name: Option<&Key>,
) -> Result<Live, Fault>
where
    Role: Permits<verb::Get, K>,
{
    let Some(name) = name else { return Ok(Live::Cached) };
    match writer.read::<K>(cache, name).await {
        Ok(Some(_)) => Ok(Live::Cached),
        Ok(None) => Ok(Live::Absent),
        Err(fault) if fault.category() == Category::UNREADABLE.as_str() => Ok(Live::Unreadable),
        Err(fault) => Err(fault),
    }
}
