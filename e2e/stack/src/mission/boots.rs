//! What boots from a written disk. The image holds no system, so its part is played here: cloud-init, kubeadm and the
//! kubelet, by the facts of the config-drive beside the image. Nothing of the management cluster is looked at.
//!
//! A machine that is off does nothing: its Node says no more that it is ready, and with the last machine of a control
//! plane goes the API server. While one of them is on, the endpoint is its.
//!
//! Where other providers are beside Cluster API, their hosts boot here as well, and so do control planes without machines.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::{Value, json};

use super::drive::{self, Boot, Role};
use super::fleet::{Fleet, ROOT};
use super::guests::brought::{self, Host};
use super::guests::{Grounds, Papers};
use super::workload::Workload;
use crate::claims::world::World;

/// What boots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Iron {
    /// A machine, by its number.
    Machine(u64),
    /// A host that is brought along.
    Brought(Host),
}

/// The machines that run from their disks.
pub(crate) struct Boots<'a> {
    world: &'a World,
    fleet: &'a Fleet,
    on: BTreeMap<Iron, Booted>,
    /// By their endpoint.
    workloads: BTreeMap<String, Workload>,
    /// Endpoints of those that no machine runs.
    hosted: BTreeSet<String>,
    /// What other providers want to run, and are told.
    grounds: Option<Grounds>,
}

struct Booted {
    /// Which time it is: it differs whenever it comes up anew.
    time: String,
    boot: Boot,
    joined: bool,
}

impl<'a> Boots<'a> {
    pub(crate) fn new(world: &'a World, fleet: &'a Fleet) -> Self {
        Self {
            world,
            fleet,
            on: BTreeMap::new(),
            workloads: BTreeMap::new(),
            hosted: BTreeSet::new(),
            grounds: None,
        }
    }

    /// Other providers are there from now on.
    pub(crate) fn with_guests(&mut self, grounds: &Grounds) {
        self.grounds = Some(grounds.clone());
    }

    /// Follows the machines: what came up boots, what went off is gone.
    pub(crate) fn look(&mut self) -> anyhow::Result<()> {
        let mut up = self.machines()?;
        let mut leave = Vec::new();
        if self.grounds.is_some() {
            let (runs, leaving) = brought::look(self.world)?;
            up.extend(runs.into_iter().map(|(host, secret)| (Iron::Brought(host), secret)));
            leave = leaving;
        }
        let is_up = |iron: &Iron, booted: &Booted| up.get(iron) == Some(&booted.time);
        let off: Vec<Iron> = self
            .on
            .iter()
            .filter(|(iron, booted)| !is_up(iron, booted))
            .map(|(iron, _)| iron.clone())
            .collect();
        for iron in &off {
            self.go_off(iron)?;
        }
        for host in leave {
            brought::clear(self.world, &host)?;
        }
        for (iron, time) in up {
            if !self.on.contains_key(&iron) {
                let boot = self.read(&iron, &time);
                let boot = boot.with_context(|| format!("{iron:?} does not boot"))?;
                let joined = false;
                self.on.insert(iron, Booted { time, boot, joined });
            }
        }
        self.host()?;
        self.come_up()
    }

    /// The machines that run from their disks, and how often they have come up.
    fn machines(&self) -> anyhow::Result<BTreeMap<Iron, String>> {
        let mut up = BTreeMap::new();
        for machine in self.fleet.look(self.world)? {
            let runs = json!({"kind": "disk", "disk": ROOT});
            if machine["power"] == "On" && machine["running"] == runs {
                let number = machine["number"].as_u64().context("a machine without number")?;
                let times = machine["boots"].as_u64().context("it never booted")?;
                up.insert(Iron::Machine(number), times.to_string());
            }
        }
        Ok(up)
    }

    fn read(&self, iron: &Iron, time: &str) -> anyhow::Result<Boot> {
        let number = match iron {
            Iron::Machine(number) => *number,
            Iron::Brought(host) => return brought::read(self.world, host, time),
        };
        let file = |name: &str| {
            let found = self.fleet.drive(self.world, number, name)?;
            found.with_context(|| format!("its config-drive holds no {name}"))
        };
        let meta_data = serde_json::from_slice(&file("meta_data.json")?)?;
        drive::read(&String::from_utf8(file("user_data")?)?, &meta_data)
    }

    /// Starts the control planes without machines that are to run, and stops those that no longer are.
    fn host(&mut self) -> anyhow::Result<()> {
        let Some(grounds) = self.grounds.clone() else {
            return Ok(());
        };
        let wanted = grounds.wanted();
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
        for (endpoint, papers) in wanted {
            if !self.hosted.contains(&endpoint) {
                let (boot, cluster) = without_machines(&endpoint, &papers);
                let started = Workload::start(self.world, &boot, &cluster);
                let started = started.with_context(|| format!("nobody answers at {endpoint}"))?;
                self.begin(endpoint.clone(), started)?;
                self.hosted.insert(endpoint);
            }
        }
        Ok(())
    }

    fn begin(&mut self, endpoint: String, workload: Workload) -> anyhow::Result<()> {
        if let Some(grounds) = &self.grounds {
            grounds.answers(&workload.login()?)?;
        }
        self.workloads.insert(endpoint, workload);
        Ok(())
    }

    fn end(&mut self, endpoint: &str) -> anyhow::Result<()> {
        if let Some(grounds) = &self.grounds {
            grounds.is_silent(endpoint);
        }
        let ended = self.workloads.remove(endpoint);
        ended.map_or(Ok(()), |workload| workload.stop(self.world))
    }

    fn go_off(&mut self, iron: &Iron) -> anyhow::Result<()> {
        let Some(Booted { boot, joined, .. }) = self.on.remove(iron) else {
            return Ok(());
        };
        let others = self.on.values().filter(|other| other.joined && other.boot.controls());
        let mut heirs = others.filter(|other| other.boot.endpoint() == boot.endpoint());
        let heir = heirs.next().map(|other| other.boot.name.clone());
        let Some(workload) = self.workloads.get_mut(boot.endpoint()) else {
            return Ok(());
        };
        if workload.name == boot.name {
            match heir {
                Some(heir) => workload.name = heir,
                None => return self.end(boot.endpoint()),
            }
        }
        if joined {
            says_ready(self.world, workload, &boot.name, "Unknown")?;
        }
        Ok(())
    }

    fn come_up(&mut self) -> anyhow::Result<()> {
        let mut begun = Vec::new();
        for booted in self.on.values_mut().filter(|booted| !booted.joined) {
            let (boot, name) = (&booted.boot, &booted.boot.name);
            match (&boot.role, self.workloads.get(boot.endpoint())) {
                (Role::First(cluster), None) => {
                    let started = Workload::start(self.world, boot, cluster);
                    let started = started.with_context(|| format!("{name} starts no cluster"))?;
                    enter(self.world, &started, boot)?;
                    begun.push((boot.endpoint().to_owned(), started));
                    booted.joined = true;
                }
                (Role::Joins { endpoint, token, .. }, Some(workload)) => {
                    let admits = workload.admits(self.world, endpoint, token);
                    admits.with_context(|| format!("{name} does not join"))?;
                    enter(self.world, workload, boot)?;
                    booted.joined = true;
                }
                // A second first machine, or nobody to join: kubeadm would wait.
                (Role::First(_), Some(_)) | (Role::Joins { .. }, None) => {}
            }
        }
        begun
            .into_iter()
            .try_for_each(|(endpoint, workload)| self.begin(endpoint, workload))
    }

    /// Names of the Nodes that machines registered which are up.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let joined = self.on.values().filter(|booted| booted.joined);
        joined.map(|booted| booted.boot.name.clone()).collect()
    }

    /// The workload cluster where there is one alone.
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

/// What a control plane without machines is started by.
fn without_machines(endpoint: &str, papers: &Papers) -> (Boot, Value) {
    let cluster = json!({
        "controlPlaneEndpoint": endpoint, "clusterName": "hosted" });
    let boot = Boot {
        name: format!("hosted-{}", endpoint.replace(':', "-")),
        labels: BTreeMap::new(),
        provider_id: None,
        taints: None,
        pki: papers.files().clone(),
        role: Role::First(cluster.clone()),
    };
    (boot, cluster)
}

/// The machine is one of the cluster.
fn enter(world: &World, workload: &Workload, boot: &Boot) -> anyhow::Result<()> {
    if boot.controls() {
        // Before the Node: who looks at a control plane looks at once, and not soon again.
        components(world, workload, &boot.name)?;
    }
    join(world, workload, boot)
}

/// Registers the Node, as the kubelet does with what it is told.
fn join(world: &World, workload: &Workload, boot: &Boot) -> anyhow::Result<()> {
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
    workload.apply(world, &node)?;
    says_ready(world, workload, &boot.name, "True")
}

fn says_ready(world: &World, workload: &Workload, node: &str, ready: &str) -> anyhow::Result<()> {
    let now = world.run("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ"], None)?;
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Played", "message": "as its machine is",
            "lastHeartbeatTime": now.trim(), "lastTransitionTime": now.trim()})
    };
    let mut conditions = vec![condition("Ready", ready)];
    conditions.extend(["MemoryPressure", "DiskPressure", "PIDPressure"].map(|kind| condition(kind, "False")));
    let status = json!({"status": {"conditions": conditions}}).to_string();
    let words = ["patch", "node", node, "--subresource=status", "--patch", &status];
    match workload.kubectl(world, &words, None) {
        // Its Machine is gone, and Cluster API has deleted it.
        Err(error) if format!("{error:#}").contains("NotFound") => Ok(()),
        done => done.map(drop),
    }
}

/// What the kubelet shows of the static Pods that kubeadm has it run.
fn components(world: &World, workload: &Workload, node: &str) -> anyhow::Result<()> {
    for component in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
        let name = format!("{component}-{node}");
        // The mark of a Pod that comes from a file: nobody drains it.
        let marks = json!({"kubernetes.io/config.mirror": "played"});
        let labels = json!({"tier": "control-plane", "component": component});
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "kube-system", "name": name, "annotations": marks, "labels": labels},
            "spec": {"nodeName": node, "hostNetwork": true,
                "containers": [{"name": component, "image": component}]}});
        workload.apply(world, &pod)?;
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"status": {"phase": "Running", "conditions": ready}}).to_string();
        let words = [
            "--namespace",
            "kube-system",
            "patch",
            "pod",
            &name,
            "--subresource=status",
            "--patch",
            &status,
        ];
        workload.kubectl(world, &words, None)?;
    }
    Ok(())
}
