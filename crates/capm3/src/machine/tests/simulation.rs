//! A simulation: machines of one Cluster, a few hosts and their controller, a controller that renders data, users, and
//! replicas with outdated caches and without leader election.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::DateTime;
use metal3_api::cluster::names::DEPLOYMENT_NAME_LABEL;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::{FAILURE_DOMAIN_LABEL, NODE_REUSE_LABEL, REUSE_AFTER_CLEANING_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use metal3_sim_faults::Random;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::api_server::{
    CLUSTER, NAMESPACE, OBJECT_KINDS, OWNER, ObjectKind, Objects, Server, ZONES, Zoning, associated, consumer,
    domain_of, is_deleting, text,
};
use super::case::unread_labels;
use crate::machine::action::{Action, Plan, Reads};
use crate::machine::facts::{Facts, Hosts, Settings, named};
use crate::machine::plan::plan_under;
use crate::machine::reuse::Set;
use crate::machine::rules::Rules;

pub(super) fn read<K: DeserializeOwned>(document: &Value) -> K {
    serde_json::from_value(document.clone()).unwrap()
}

/// All rules but the one that `disable` switches off.
pub(super) fn without(disable: fn(&mut Rules)) -> Rules {
    let mut rules = Rules::ALL;
    disable(&mut rules);
    rules
}

/// A complete read: what it did not find is absent.
pub(super) fn observed<K: Clone>(found: Option<&K>) -> Observed<Arc<K>> {
    Observed::from(found.cloned().map(Arc::new))
}

pub(super) fn cluster_key() -> Key {
    Key {
        namespace: NAMESPACE.to_owned(),
        name: CLUSTER.to_owned(),
    }
}

pub(super) fn at(seconds: i64) -> Time {
    Time::new(DateTime::from_timestamp(seconds, 0).unwrap())
}

pub(super) fn cluster(paused: bool) -> Cluster {
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": CLUSTER });
    read(&json!({
        "metadata": { "name": CLUSTER, "namespace": NAMESPACE },
        "spec": { "infrastructureRef": reference, "paused": paused },
        "status": { "initialization": { "infrastructureProvisioned": true } },
    }))
}

pub(super) fn metal3_cluster() -> Metal3Cluster {
    read(&json!({ "metadata": { "name": CLUSTER, "namespace": NAMESPACE } }))
}

/// A set that keeps its hosts, cleaned.
fn set() -> Set {
    let annotations = json!({ REUSE_AFTER_CLEANING_ANNOTATION: "" });
    Set {
        owner: OWNER.to_owned(),
        template: Arc::new(read(&json!({
            "metadata": { "name": "workers", "annotations": annotations },
            "spec": { "nodeReuse": true, "template": { "spec": {} } },
        }))),
        replaces: true,
    }
}

pub(super) fn owner(name: &str) -> Machine {
    read(&json!({
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "clusterName": CLUSTER,
            "bootstrap": { "configRef": { "kind": "KubeadmConfig", "name": name }, "dataSecretName": format!("{name}-boot") },
        },
    }))
}

pub(super) fn machine_document() -> Value {
    json!({
        "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": CLUSTER } },
        "spec": {
            "image": { "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256", "checksumType": "sha256" },
            "dataTemplate": { "name": "template" },
        },
    })
}

pub(super) fn host_document() -> Value {
    json!({
        "spec": { "online": false, "bmc": { "address": "redfish://192.0.2.7/redfish/v1/Systems/1", "credentialsName": "bmc" } },
        "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "available", "ID": "node", "image": { "url": "" } } },
    })
}

/// A reconcile in progress.
#[derive(Debug, Clone)]
struct Planner {
    machine: String,
    version: String,
    todo: VecDeque<Action>,
    status: Option<Value>,
}

#[derive(Debug, Clone, Default)]
struct Replica {
    cache: Objects,
    /// The zones of the Metal3Cluster.
    zones: Vec<&'static str>,
    pass: Option<Planner>,
}

/// What a reconcile has read live.
#[derive(Debug, Clone, Copy, Default)]
struct Live {
    machine: bool,
    host: bool,
    zones: bool,
}

/// The state of the simulation.
#[derive(Debug, Clone)]
pub(super) struct Simulation {
    pub(super) server: Server,
    replicas: Vec<Replica>,
    /// Delayed requests whose sender has stopped.
    delayed: Vec<(String, String, Action)>,
    rules: Rules,
}

pub(super) const MACHINES: [&str; 3] = ["m0", "m1", "m2"];
pub(super) const HOSTS: [&str; 3] = ["h0", "h1", "h2"];

impl Simulation {
    pub(super) fn new(rules: Rules, replicas: usize, hosts: usize) -> Self {
        let mut server = Server::default();
        for host in HOSTS.iter().take(hosts) {
            server.create(ObjectKind::Host, host, host_document()).unwrap();
        }
        Self {
            server,
            replicas: vec![Replica::default(); replicas],
            delayed: Vec::new(),
            rules,
        }
    }

    /// The machines take their data from zones from now on, of which each is in one.
    pub(super) fn zone(&mut self, is_required: bool) {
        self.server.zoning = Some(Zoning {
            zones: ZONES.to_vec(),
            is_required,
        });
        for (at, host) in HOSTS.into_iter().enumerate() {
            self.label(host, ZONES[at % ZONES.len()]);
        }
    }

    fn label(&mut self, host: &str, zone: &str) {
        let labels = json!({ "metadata": { "labels": { FAILURE_DOMAIN_LABEL: zone } } });
        let _ = self.server.patch(ObjectKind::Host, host, labels);
    }

    /// The user edits the zones or the labels of a host, or the watch of Metal3Clusters of a replica goes on. One zone always stays,
    /// so no machine may ever be written without data.
    pub(super) fn edit_zones(&mut self, random: &mut Random) {
        match random.below(8) {
            0 => self.label(
                HOSTS[pick(random, HOSTS.len())],
                ["a", "b", "elsewhere"][pick(random, 3)],
            ),
            1 => {
                let left = [&ZONES[..], &ZONES[..1], &ZONES[1..]][pick(random, 3)];
                self.server.zoning.as_mut().unwrap().zones = left.to_vec();
            }
            2..=3 => {
                let replica = pick(random, self.replicas.len());
                self.refresh_zones(replica);
            }
            _ => {}
        }
    }

    fn refresh_zones(&mut self, replica: usize) {
        let live = self.server.zoning.as_ref();
        self.replicas[replica].zones = live.map(|live| live.zones.clone()).unwrap_or_default();
    }

    /// The user ends all edits: each zone exists, and each host is in one.
    pub(super) fn restore_zones(&mut self) {
        let is_required = self.server.zoning.as_ref().unwrap().is_required;
        let lost = |host: &&str| {
            let host = self.server.get(ObjectKind::Host, host);
            host.is_some_and(|host| host["metadata"]["labels"][FAILURE_DOMAIN_LABEL] == json!("elsewhere"))
        };
        let lost: Vec<&str> = HOSTS.into_iter().filter(lost).collect();
        lost.into_iter().for_each(|host| self.label(host, "a"));
        self.server.zoning = Some(Zoning {
            zones: ZONES.to_vec(),
            is_required,
        });
    }

    /// All hosts are kept for the set of the machines from now on, as after their release.
    pub(super) fn keep_hosts(&mut self) {
        self.server.reuses = true;
        let consumer = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": CLUSTER, "namespace": NAMESPACE,
        });
        let kept =
            json!({ "metadata": { "labels": { NODE_REUSE_LABEL: OWNER } }, "spec": { "consumerRef": consumer } });
        for host in HOSTS {
            let _ = self.server.patch(ObjectKind::Host, host, kept.clone());
        }
    }

    pub(super) fn make(&mut self, name: &str) {
        let mut document = machine_document();
        if self.server.is_bare || self.server.zoning.is_some() {
            document["spec"].as_object_mut().unwrap().remove("dataTemplate");
        }
        let _ = self.server.create(ObjectKind::Machine, name, document);
    }

    /// A random step of a random actor.
    pub(super) fn step(&mut self, random: &mut Random) {
        match random.below(21) {
            0 => self.make(MACHINES[pick(random, MACHINES.len())]),
            1 => drop(
                self.server
                    .delete(ObjectKind::Machine, MACHINES[pick(random, MACHINES.len())], None),
            ),
            2..=4 => self.reconcile_host(HOSTS[pick(random, HOSTS.len())]),
            5..=6 => self.reconcile_data(MACHINES[pick(random, MACHINES.len())]),
            7..=10 => {
                // Caches of different kinds are outdated to different degrees.
                let sorts = if random.below(2) == 0 {
                    &OBJECT_KINDS[..1]
                } else {
                    &OBJECT_KINDS[..]
                };
                let (replica, sort) = (pick(random, self.replicas.len()), sorts[pick(random, sorts.len())]);
                self.refresh(replica, sort);
            }
            11 if !self.delayed.is_empty() => {
                let (machine, version, action) = self.delayed.remove(pick(random, self.delayed.len()));
                let _ = self.server.perform(&machine, &version, &action);
            }
            12 => {
                let replica = pick(random, self.replicas.len());
                self.crash(replica);
            }
            13 if random.below(4) == 0 => self.force(MACHINES[pick(random, MACHINES.len())]),
            _ => {
                let (replica, machine) = (
                    pick(random, self.replicas.len()),
                    MACHINES[pick(random, MACHINES.len())],
                );
                self.reconcile(replica, machine);
            }
        }
    }

    /// The user removes the finalizers of a machine long after it entered deletion.
    fn force(&mut self, machine: &str) {
        if !self.server.get(ObjectKind::Machine, machine).is_some_and(is_deleting) {
            return;
        }
        self.delayed.retain(|(of, _, _)| of != machine);
        for replica in 0..self.replicas.len() {
            let pass = &mut self.replicas[replica].pass;
            pass.take_if(|pass| pass.machine == machine);
            self.refresh(replica, ObjectKind::Host);
        }
        self.server.forced.insert(machine.to_owned());
        let _ = self.server.patch(
            ObjectKind::Machine,
            machine,
            json!({ "metadata": { "finalizers": null } }),
        );
    }

    /// The replica crashes; its current request may still arrive.
    fn crash(&mut self, replica: usize) {
        let mut crashed = std::mem::take(&mut self.replicas[replica]);
        if let Some(pass) = &mut crashed.pass
            && let Some(action) = pass.todo.pop_front()
        {
            self.delayed.push((pass.machine.clone(), pass.version.clone(), action));
        }
        self.refresh_all(replica);
    }

    pub(super) fn refresh(&mut self, replica: usize, sort: ObjectKind) {
        let cache = &mut self.replicas[replica].cache;
        cache.retain(|(one, _), _| *one != sort);
        let fresh = self.server.objects.iter().filter(|((one, _), _)| *one == sort);
        cache.extend(fresh.map(|(key, document)| (key.clone(), document.clone())));
    }

    /// Refreshes all caches of a replica.
    pub(super) fn refresh_all(&mut self, replica: usize) {
        OBJECT_KINDS.into_iter().for_each(|sort| self.refresh(replica, sort));
        self.refresh_zones(replica);
    }

    /// Starts a reconcile and makes that many of its writes. The rest is delayed.
    pub(super) fn begin_and_make(&mut self, replica: usize, machine: &str, writes: usize) {
        self.replicas[replica].pass = None;
        self.begin(replica, machine);
        (0..writes).for_each(|_| self.reconcile(replica, machine));
    }

    /// Reconciles a machine until nothing changes, with only the replica's own writes observed.
    pub(super) fn reconcile_until_idle(&mut self, replica: usize, machine: &str) {
        (0..24).for_each(|_| self.reconcile(replica, machine));
        self.replicas[replica].pass = None;
    }

    /// Every controller reconciles a machine, with fresh caches.
    pub(super) fn reconcile_everywhere(&mut self, replica: usize, machine: &str) {
        for _ in 0..8 {
            self.reconcile_data(machine);
            self.refresh_all(replica);
            self.reconcile_until_idle(replica, machine);
            HOSTS.into_iter().for_each(|host| self.reconcile_host(host));
        }
    }

    /// Continues the replica's reconcile, or starts one.
    pub(super) fn reconcile(&mut self, replica: usize, machine: &str) {
        let Some(mut pass) = self.replicas[replica].pass.take() else {
            self.begin(replica, machine);
            return;
        };
        let Some(action) = pass.todo.pop_front() else {
            if let Some(status) = &pass.status {
                let change = json!({ "metadata": { "resourceVersion": pass.version }, "status": status });
                if let Ok(Some(document)) = self.server.patch(ObjectKind::Machine, &pass.machine, change) {
                    let key = (ObjectKind::Machine, pass.machine.clone());
                    self.replicas[replica].cache.insert(key, document);
                }
            }
            return;
        };
        match self.server.perform(&pass.machine, &pass.version, &action) {
            Ok(left) => {
                if let Some((sort, document)) = left {
                    if sort == ObjectKind::Machine {
                        text(&document, "/metadata/resourceVersion").clone_into(&mut pass.version);
                    }
                    let key = (sort, text(&document, "/metadata/name").to_owned());
                    self.replicas[replica].cache.insert(key, document);
                } else {
                    self.refresh(replica, ObjectKind::Machine);
                    self.refresh(replica, ObjectKind::Claim);
                }
                self.replicas[replica].pass = Some(pass);
            }
            // A rejection shows that the cache is outdated.
            Err(_) => self.refresh_all(replica),
        }
    }

    fn begin(&mut self, replica: usize, machine: &str) {
        let mut cache = self.replicas[replica].cache.clone();
        let mut zones = self.replicas[replica].zones.clone();
        let mut live = Live::default();
        let mut plan = self.plan(&cache, &zones, machine, live);
        let key = (ObjectKind::Machine, machine.to_owned());
        if let Reads::Host(host) = &plan.reads {
            copy(&mut cache, &self.server, ObjectKind::Host, host);
            live.host = true;
            plan = self.plan(&cache, &zones, machine, live);
        }
        if let Reads::Metal3Cluster(_) = &plan.reads {
            self.refresh_zones(replica);
            zones.clone_from(&self.replicas[replica].zones);
            live.zones = true;
            plan = self.plan(&cache, &zones, machine, live);
        }
        if plan.reads == Reads::Machine {
            let is_current = self.server.get(ObjectKind::Machine, machine) == cache.get(&key);
            copy(&mut cache, &self.server, ObjectKind::Machine, machine);
            if !is_current && cache.contains_key(&key) {
                copy(
                    &mut self.replicas[replica].cache,
                    &self.server,
                    ObjectKind::Machine,
                    machine,
                );
                return;
            }
            live.machine = true;
            plan = self.plan(&cache, &zones, machine, live);
        }
        let version = cache
            .get(&key)
            .map(|document| text(document, "/metadata/resourceVersion").to_owned());
        self.replicas[replica].pass = Some(Planner {
            machine: machine.to_owned(),
            version: version.unwrap_or_default(),
            todo: plan.actions.into(),
            status: plan.status.map(|write| serde_json::to_value(write.status).unwrap()),
        });
    }

    fn plan(&self, cache: &Objects, zones: &[&str], name: &str, live: Live) -> Plan {
        let of = |sort: ObjectKind, name: &str| cache.get(&(sort, name.to_owned()));
        let all: Vec<Arc<BareMetalHost>> = cache
            .iter()
            .filter(|((sort, _), _)| *sort == ObjectKind::Host)
            .map(|(_, host)| Arc::new(read(host)))
            .collect();
        let is_claimed = |host: &&Arc<BareMetalHost>| {
            let consumer = host.spec.consumer_ref.as_ref();
            consumer.is_some_and(|one| one.name.as_deref() == Some(name))
        };
        let machine = of(ObjectKind::Machine, name).map(read::<Metal3Machine>);
        let named = machine.as_ref().and_then(named);
        let named_host = all
            .iter()
            .find(|host| named.is_some() && host.metadata.name.as_deref() == named);
        let mut owner = owner(name);
        if self.server.reuses {
            let labels = owner.metadata.labels.get_or_insert_default();
            labels.insert(DEPLOYMENT_NAME_LABEL.to_owned(), "workers".to_owned());
        }
        if self.server.zoning.is_some() {
            owner.spec.failure_domain = Some(domain_of(name).to_owned());
        }
        let facts = Facts {
            confirmed: live.machine,
            owner: Observed::Present(Arc::new(owner)),
            cluster: Observed::Present(Arc::new(cluster(false))),
            cluster_key: cluster_key(),
            metal3_clusters: vec![Arc::new(self.metal3_cluster(zones))],
            metal3_clusters_are_live: live.zones || self.server.zoning.is_none(),
            zone_templates: zones
                .iter()
                .map(|zone| (format!("net-{zone}"), Observed::Present(())))
                .collect(),
            unreadable_cluster: None,
            template: Observed::Absent,
            template_is_live: false,
            asks_for_reuse: self.server.reuses,
            owner_refused: None,
            has_namesake: false,
            set: Observed::Present(set()),
            hosts: Hosts {
                named: Observed::from(named_host.cloned()),
                named_is_live: live.host,
                claimed: all.iter().filter(is_claimed).cloned().collect(),
                all,
                unreadable: None,
            },
            claim: observed(of(ObjectKind::Claim, name).map(read).as_ref()),
            data: observed(of(ObjectKind::Data, &format!("data-{name}")).map(read).as_ref()),
            nodes: Observed::Present(Arc::from([])),
            labels: unread_labels(),
            settings: Settings::default(),
            now: at(0),
            machine: machine.map(Arc::new),
        };
        plan_under(&facts, &self.rules)
    }

    /// With these zones, as a replica knows them.
    fn metal3_cluster(&self, zones: &[&str]) -> Metal3Cluster {
        let mut cluster = metal3_cluster();
        let Some(zoning) = &self.server.zoning else {
            return cluster;
        };
        let zone = |zone: &&str| json!({ "name": zone, "dataTemplate": { "name": format!("net-{zone}") } });
        let zones: Vec<Value> = zones.iter().map(zone).collect();
        let policy = if zoning.is_required { "Required" } else { "Preferred" };
        cluster.spec = read(&json!({ "failureDomainPolicy": policy, "deploymentZones": zones }));
        cluster
    }

    /// A reconcile of the host controller.
    fn reconcile_host(&mut self, host: &str) {
        let Some(document) = self.server.get(ObjectKind::Host, host) else {
            return;
        };
        let next = match (
            text(document, "/status/provisioning/state"),
            document["spec"]["image"].is_null(),
        ) {
            ("available", false) => "provisioned",
            ("provisioned", true) => "deprovisioning",
            ("deprovisioning", true) => "available",
            _ => return,
        };
        let _ = self.server.patch(
            ObjectKind::Host,
            host,
            json!({ "status": { "provisioning": { "state": next } } }),
        );
    }

    /// A reconcile of the data controller.
    pub(super) fn reconcile_data(&mut self, machine: &str) {
        let data = format!("data-{machine}");
        let Some(claim) = self.server.get(ObjectKind::Claim, machine).cloned() else {
            let _ = self.server.delete(ObjectKind::Data, &data, None);
            return;
        };
        let uid = text(&claim, "/metadata/uid");
        if is_deleting(&claim) {
            return;
        }
        let owner = self.server.get(ObjectKind::Machine, machine);
        if owner.is_none_or(|owner| text(owner, "/metadata/uid") != text(&claim, "/metadata/ownerReferences/0/uid")) {
            // The garbage collector.
            let _ = self.server.delete(ObjectKind::Claim, machine, None);
            return;
        }
        match self.server.get(ObjectKind::Data, &data) {
            None => {
                let owners = json!([{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataClaim", "name": machine, "uid": uid }]);
                let spec =
                    json!({ "index": 0, "metaData": { "name": format!("{data}-metadata"), "namespace": NAMESPACE } });
                let _ = self.server.create(
                    ObjectKind::Data,
                    &data,
                    json!({ "metadata": { "ownerReferences": owners }, "spec": spec }),
                );
                let answer = json!({ "status": { "renderedData": { "name": data, "namespace": NAMESPACE } } });
                let _ = self.server.patch(ObjectKind::Claim, machine, answer);
            }
            Some(found) if text(found, "/metadata/ownerReferences/0/uid") != uid => {
                let _ = self.server.delete(ObjectKind::Data, &data, None);
            }
            Some(_) => {
                let answer = json!({ "status": { "renderedData": { "name": data, "namespace": NAMESPACE } } });
                let _ = self.server.patch(ObjectKind::Claim, machine, answer);
                let _ = self
                    .server
                    .patch(ObjectKind::Data, &data, json!({ "status": { "ready": true } }));
            }
        }
    }

    /// Reconciles with one replica and fresh caches until nothing changes.
    pub(super) fn settle(&mut self) {
        for (machine, version, action) in std::mem::take(&mut self.delayed) {
            let _ = self.server.perform(&machine, &version, &action);
        }
        for _ in 0..40 {
            let before = self.server.objects.clone();
            for machine in MACHINES {
                self.reconcile_data(machine);
                self.refresh_all(0);
                for _ in 0..8 {
                    self.reconcile(0, machine);
                }
                self.replicas[0].pass = None;
            }
            HOSTS.into_iter().for_each(|host| self.reconcile_host(host));
            if self.server.objects == before {
                return;
            }
        }
        self.server.wrong.push("the writes never end".to_owned());
    }

    /// The violations of the final state.
    pub(super) fn final_violations(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let mut served = 0;
        for (name, machine) in self.server.all(ObjectKind::Machine) {
            if is_deleting(machine) {
                missing.push(format!("{name} does not go"));
            }
            let hosts = self
                .server
                .all(ObjectKind::Host)
                .filter(|(_, host)| consumer(host) == name);
            if hosts.count() > 1 {
                missing.push(format!("{name} keeps more than one host"));
            }
            let host = self.server.get(ObjectKind::Host, associated(machine));
            served += usize::from(host.is_some_and(|host| {
                consumer(host) == name && text(host, "/status/provisioning/state") == "provisioned"
            }));
        }
        let (machines, hosts) = (
            self.server.all(ObjectKind::Machine).count(),
            self.server.all(ObjectKind::Host).count(),
        );
        // A host whose machine was removed by force while it ran keeps running.
        let is_left = |host: &Value| {
            let user = consumer(host);
            let ran = self.server.forced.contains(user) && !host["spec"]["image"].is_null();
            ran && self.server.get(ObjectKind::Machine, user).is_none()
        };
        let hosts = hosts
            - self
                .server
                .all(ObjectKind::Host)
                .filter(|(_, host)| is_left(host))
                .count();
        if let Some(zoning) = &self.server.zoning {
            missing.extend(self.idle_in_zones(zoning));
        } else if served != machines.min(hosts) {
            missing.push(format!("{served} of {machines} machines run on {hosts} hosts"));
        }
        for (name, host) in self.server.all(ObjectKind::Host) {
            let user = consumer(host);
            if !user.is_empty() && self.server.get(ObjectKind::Machine, user).is_none() && !is_left(host) {
                missing.push(format!("{name} is held by the deleted {user}"));
            }
        }
        missing
    }
}

impl Simulation {
    /// Machines that wait although their host, or a free one, is in a place that they can use.
    fn idle_in_zones(&self, zoning: &Zoning) -> Vec<String> {
        let hosts = || self.server.all(ObjectKind::Host);
        let is_usable = |host: &Value, name: &str| {
            let zone = &host["metadata"]["labels"][FAILURE_DOMAIN_LABEL];
            *zone == json!(domain_of(name)) || !zoning.is_required
        };
        let is_free = |host: &Value, name: &str| {
            host["spec"]["consumerRef"].is_null() && host["spec"]["image"].is_null() && is_usable(host, name)
        };
        let runs = |host: &Value, name: &str| {
            consumer(host) == name && text(host, "/status/provisioning/state") == "provisioned"
        };
        let machines = self.server.all(ObjectKind::Machine);
        let waiting = machines.filter(|(name, _)| !hosts().any(|(_, host)| runs(host, name)));
        let held = |name: &str| hosts().map(|(_, host)| host).find(|host| consumer(host) == name);
        // One that left the zone of its machine is kept for it, and not written.
        let could_run = |name: &str| match held(name) {
            Some(host) => is_usable(host, name),
            None => hosts().any(|(_, host)| is_free(host, name)),
        };
        let idle = waiting.filter(|(name, _)| could_run(name));
        idle.map(|(name, _)| format!("{name} waits although it could run"))
            .collect()
    }
}

/// Copies the current object to a cache.
fn copy(cache: &mut Objects, server: &Server, sort: ObjectKind, name: &str) {
    let key = (sort, name.to_owned());
    match server.get(sort, name) {
        Some(live) => drop(cache.insert(key, live.clone())),
        None => drop(cache.remove(&key)),
    }
}

fn pick(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.below(u64::try_from(count).unwrap())).unwrap()
}
