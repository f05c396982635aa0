//! Simulates the operating system of a machine with a written disk: cloud-init, kubeadm and the kubelet, using only the
//! config-drive. The image contains no system. Nothing is read from the management cluster.
//!
//! The Node of a powered-off machine is not ready, and the API server stops with the last machine of a control plane.
//! Otherwise one of the control plane's machines serves the endpoint.
//!
//! With other providers in addition to Cluster API, it also simulates their hosts and control planes without machines.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Value, json};

use super::drive::{self, Boot, Role};
use super::fleet::{Fleet, ROOT};
use super::other_providers::byoh_agent::{self, Host};
use super::other_providers::{ControlPlanePki, WorkloadRegistry};
use super::workload::Workload;
use crate::claims::stack::Stack;

/// What boots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum HostId {
    /// A machine by its number.
    Machine(u64),
    /// A BYOH host.
    Byoh(Host),
}

/// The machines that run from their disks, and the workload clusters.
pub(crate) struct MachineSimulator<'a> {
    stack: &'a Stack,
    fleet: &'a Fleet,
    on: BTreeMap<HostId, Booted>,
    /// By their endpoint.
    workloads: BTreeMap<String, Workload>,
    /// Endpoints of control planes without machines.
    hosted: BTreeSet<String>,
    /// The workload clusters of other providers.
    registry: Option<WorkloadRegistry>,
    /// Nodes whose kubelets never report again.
    silent: BTreeSet<String>,
    /// Machines with other systems, which are not simulated.
    others: BTreeSet<u64>,
    /// The systems, by the token of their disk, whose kubelets have a certificate of their own: they need no token any more, and
    /// tokens expire.
    with_certificate: BTreeSet<(HostId, String)>,
}

struct Booted {
    /// Identifies the boot: differs after each reboot.
    time: String,
    boot: Boot,
    joined: bool,
}

impl<'a> MachineSimulator<'a> {
    pub(crate) fn new(stack: &'a Stack, fleet: &'a Fleet) -> Self {
        Self {
            stack,
            fleet,
            on: BTreeMap::new(),
            workloads: BTreeMap::new(),
            hosted: BTreeSet::new(),
            registry: None,
            silent: BTreeSet::new(),
            others: BTreeSet::new(),
            with_certificate: BTreeSet::new(),
        }
    }

    /// The machines of these numbers boot another system than a cluster's.
    pub(crate) fn ignore(&mut self, machines: impl Iterator<Item = u64>) {
        self.others.extend(machines);
    }

    /// The kubelet of a Node stops, until the machine boots again or for ever.
    pub(crate) fn hang(&mut self, node: &str, for_ever: bool) -> anyhow::Result<()> {
        if for_ever {
            self.silent.insert(node.to_owned());
        }
        set_ready(self.stack, self.workload()?, node, "Unknown")
    }

    pub(crate) fn with_other_providers(&mut self, registry: &WorkloadRegistry) {
        self.registry = Some(registry.clone());
    }

    /// Follows the machines: boots those that were switched on, removes those that were switched off.
    pub(crate) fn step(&mut self) -> anyhow::Result<()> {
        let mut up = self.machines()?;
        let mut leave = Vec::new();
        if self.registry.is_some() {
            let (runs, leaving) = byoh_agent::tasks(self.stack)?;
            up.extend(runs.into_iter().map(|(host, secret)| (HostId::Byoh(host), secret)));
            leave = leaving;
        }
        let is_up = |id: &HostId, booted: &Booted| up.get(id) == Some(&booted.time);
        let off: Vec<HostId> = self
            .on
            .iter()
            .filter(|(id, booted)| !is_up(id, booted))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &off {
            self.switch_off(id)?;
        }
        for host in leave {
            byoh_agent::clear(self.stack, &host)?;
        }
        for (id, time) in up {
            if !self.on.contains_key(&id) {
                let boot = self.read(&id, &time);
                let boot = boot.with_context(|| format!("{id:?} does not boot"))?;
                let joined = false;
                self.on.insert(id, Booted { time, boot, joined });
            }
        }
        self.host()?;
        self.join_all()
    }

    /// The machines that run from their disks, with their number of boots.
    fn machines(&self) -> anyhow::Result<BTreeMap<HostId, String>> {
        let mut up = BTreeMap::new();
        for machine in self.fleet.machine_states(self.stack)? {
            let runs = json!({"kind": "disk", "disk": ROOT});
            if machine["power"] == "On" && machine["running"] == runs {
                let number = machine["number"].as_u64().context("a machine without number")?;
                let times = machine["boots"].as_u64().context("a machine without boots")?;
                if self.others.contains(&number) {
                    continue;
                }
                up.insert(HostId::Machine(number), times.to_string());
            }
        }
        Ok(up)
    }

    fn read(&self, id: &HostId, time: &str) -> anyhow::Result<Boot> {
        let number = match id {
            HostId::Machine(number) => *number,
            HostId::Byoh(host) => return byoh_agent::read(self.stack, host, time),
        };
        let file = |name: &str| {
            let found = self.fleet.drive(self.stack, number, name)?;
            found.with_context(|| format!("its config-drive has no {name}"))
        };
        let meta_data = serde_json::from_slice(&file("meta_data.json")?)?;
        drive::read(&String::from_utf8(file("user_data")?)?, &meta_data)
    }

    /// Starts and stops control planes without machines as their providers request.
    fn host(&mut self) -> anyhow::Result<()> {
        let Some(registry) = self.registry.clone() else {
            return Ok(());
        };
        let wanted = registry.wanted();
        let over: Vec<String> = self
            .hosted
            .iter()
            .filter(|at| !wanted.contains_key(*at))
            .cloned()
            .collect();
        for endpoint in over {
            self.hosted.remove(&endpoint);
            self.end(&endpoint)?;
        }
        for (endpoint, credentials) in wanted {
            if !self.hosted.contains(&endpoint) {
                let (boot, cluster) = without_machines(&endpoint, &credentials);
                let started = Workload::start(self.stack, &boot, &cluster);
                let started = started.with_context(|| format!("the control plane at {endpoint} does not start"))?;
                self.begin(endpoint.clone(), started)?;
                self.hosted.insert(endpoint);
            }
        }
        Ok(())
    }

    fn begin(&mut self, endpoint: String, workload: Workload) -> anyhow::Result<()> {
        if let Some(registry) = &self.registry {
            registry.answers(&workload.login()?)?;
        }
        self.workloads.insert(endpoint, workload);
        Ok(())
    }

    fn end(&mut self, endpoint: &str) -> anyhow::Result<()> {
        if let Some(registry) = &self.registry {
            registry.is_silent(endpoint);
        }
        let ended = self.workloads.remove(endpoint);
        ended.map_or(Ok(()), |workload| workload.stop(self.stack))
    }

    fn switch_off(&mut self, id: &HostId) -> anyhow::Result<()> {
        let Some(Booted { boot, joined, .. }) = self.on.remove(id) else {
            return Ok(());
        };
        let others = self.on.values().filter(|other| other.joined && other.boot.controls());
        let mut successors = others.filter(|other| other.boot.endpoint() == boot.endpoint());
        let successor = successors.next().map(|other| other.boot.name.clone());
        let Some(workload) = self.workloads.get_mut(boot.endpoint()) else {
            return Ok(());
        };
        if workload.name == boot.name {
            match successor {
                Some(successor) => workload.name = successor,
                None => return self.end(boot.endpoint()),
            }
        }
        if joined {
            set_ready(self.stack, workload, &boot.name, "Unknown")?;
        }
        Ok(())
    }

    fn join_all(&mut self) -> anyhow::Result<()> {
        let mut new_clusters = Vec::new();
        for (id, booted) in self.on.iter_mut().filter(|(_, booted)| !booted.joined) {
            let (boot, name) = (&booted.boot, &booted.boot.name);
            match (&boot.role, self.workloads.get(boot.endpoint())) {
                (Role::First(cluster), None) => {
                    let started = Workload::start(self.stack, boot, cluster);
                    let started = started.with_context(|| format!("{name} starts no cluster"))?;
                    enter(self.stack, &started, boot, &self.silent)?;
                    new_clusters.push((boot.endpoint().to_owned(), started));
                    booted.joined = true;
                }
                (Role::Joins { endpoint, token, .. }, Some(workload)) => {
                    let system = (id.clone(), token.clone());
                    if !self.with_certificate.contains(&system) {
                        let admits = workload.admits(self.stack, endpoint, token);
                        admits.with_context(|| format!("{name} does not join"))?;
                        self.with_certificate.insert(system);
                    }
                    enter(self.stack, workload, boot, &self.silent)?;
                    booted.joined = true;
                }
                // A second first machine, or no cluster to join: kubeadm would wait.
                (Role::First(_), Some(_)) | (Role::Joins { .. }, None) => {}
            }
        }
        new_clusters
            .into_iter()
            .try_for_each(|(endpoint, workload)| self.begin(endpoint, workload))
    }

    /// The names of the Nodes of running machines.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let joined = self.on.values().filter(|booted| booted.joined);
        joined.map(|booted| booted.boot.name.clone()).collect()
    }

    pub(crate) fn workload(&self) -> anyhow::Result<&Workload> {
        let first = self.workloads.values().next();
        first.context("no machine runs a control plane")
    }

    /// The workload cluster at an endpoint, `address:port`.
    pub(crate) fn workload_at(&self, endpoint: &str) -> anyhow::Result<&Workload> {
        let found = self.workloads.get(endpoint);
        found.with_context(|| format!("no machine runs a control plane at {endpoint}"))
    }
}

/// The boot configuration of a control plane without machines.
fn without_machines(endpoint: &str, credentials: &ControlPlanePki) -> (Boot, Value) {
    let cluster = json!({
        "controlPlaneEndpoint": endpoint, "clusterName": "hosted" });
    let boot = Boot {
        name: format!("hosted-{}", endpoint.replace(':', "-")),
        labels: BTreeMap::new(),
        provider_id: None,
        taints: None,
        pki: credentials.files().clone(),
        role: Role::First(cluster.clone()),
    };
    (boot, cluster)
}

/// Adds the machine to the cluster.
fn enter(stack: &Stack, workload: &Workload, boot: &Boot, silent: &BTreeSet<String>) -> anyhow::Result<()> {
    if boot.controls() {
        // Before the Node: Cluster API inspects a control plane as soon as its Node exists, and later only at long intervals.
        components(stack, workload, &boot.name)?;
    }
    let ready = if silent.contains(&boot.name) { "Unknown" } else { "True" };
    join(stack, workload, boot)?;
    set_ready(stack, workload, &boot.name, ready)
}

/// Registers the Node like the kubelet.
fn join(stack: &Stack, workload: &Workload, boot: &Boot) -> anyhow::Result<()> {
    let mut labels = boot.labels.clone();
    labels.insert("kubernetes.io/hostname".to_owned(), boot.name.clone());
    let mut taints = boot.taints.clone().unwrap_or_default();
    if boot.controls() {
        let role = "node-role.kubernetes.io/control-plane";
        labels.insert(role.to_owned(), String::new());
        if boot.taints.is_none() {
            taints.push(json!({"key": role, "effect": "NoSchedule"}));
        }
    }
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": boot.name, "labels": labels},
        "spec": {"taints": taints}});
    if let Some(id) = &boot.provider_id {
        node["spec"]["providerID"] = id.as_str().into();
    }
    workload.apply(stack, &node)
}

fn set_ready(stack: &Stack, workload: &Workload, node: &str, ready: &str) -> anyhow::Result<()> {
    let now = stack.run("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ"], None)?;
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Simulated", "message": "follows the machine's power state",
            "lastHeartbeatTime": now.trim(), "lastTransitionTime": now.trim()})
    };
    let mut conditions = vec![condition("Ready", ready)];
    conditions.extend(["MemoryPressure", "DiskPressure", "PIDPressure"].map(|kind| condition(kind, "False")));
    let status = json!({"status": {"conditions": conditions}}).to_string();
    let args = ["patch", "node", node, "--subresource=status", "--patch", &status];
    match workload.kubectl(stack, &args, None) {
        // Cluster API deleted the Node together with its Machine.
        Err(error) if format!("{error:#}").contains("NotFound") => Ok(()),
        done => done.map(drop),
    }
}

/// Creates the mirror Pods that the kubelet shows for kubeadm's static Pods.
fn components(stack: &Stack, workload: &Workload, node: &str) -> anyhow::Result<()> {
    for component in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
        let name = format!("{component}-{node}");
        // Marks a static Pod, which is not drained.
        let marks = json!({"kubernetes.io/config.mirror": "simulated"});
        let labels = json!({"tier": "control-plane", "component": component});
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "kube-system", "name": name, "annotations": marks, "labels": labels},
            "spec": {"nodeName": node, "hostNetwork": true,
                "containers": [{"name": component, "image": component}]}});
        workload.apply(stack, &pod)?;
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"status": {"phase": "Running", "conditions": ready}}).to_string();
        let args = [
            "--namespace",
            "kube-system",
            "patch",
            "pod",
            &name,
            "--subresource=status",
            "--patch",
            &status,
        ];
        workload.kubectl(stack, &args, None)?;
    }
    Ok(())
}
