//! What a step does on this world.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};
use metal3_scenario::{Apply, Nodes, Step, Wish, kind_and_name};
use serde_json::{Value, json};

use super::kinds::Kinds;
use super::{Script, quiet, terms};
use crate::claims::world::World;
use crate::mission::audit::MANAGERS;
use crate::mission::{Scene, install};
use crate::products::load::list;
use crate::wait::{Stopwatch, until};

/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(900);
/// What one cause brings about comes a moment apart where requests take their time: so late may be what is true now.
const MOMENT: Duration = Duration::from_secs(15);
/// The namespace that nobody can delete.
pub(super) const OLDEST: &str = "default";
const GLANCE: Duration = Duration::from_secs(1);

/// Where a script plays.
pub(super) struct Stage<'a, 's> {
    scene: &'a Scene<'s>,
    kinds: &'a Kinds,
    script: &'a Script,
    namespace: &'a str,
    hosts: u32,
    /// How often disks were written before.
    written: u64,
}

impl<'a, 's> Stage<'a, 's> {
    pub(super) fn new(scene: &'a Scene<'s>, kinds: &'a Kinds, script: &'a Script) -> anyhow::Result<Self> {
        Ok(Self {
            scene,
            kinds,
            script,
            namespace: script.namespace(),
            hosts: 0,
            written: scene.fleet.written(scene.world)?,
        })
    }

    pub(super) fn add_hosts(&mut self, count: u32) -> anyhow::Result<()> {
        let mut items = Vec::new();
        for _ in 0..count {
            let machine = self.scene.fleet.machines.get(usize::try_from(self.hosts)?);
            let machine = machine.context("there is no such machine")?;
            items.extend(install::of_machine(self.scene.fleet, machine)?);
            self.hosts = self.hosts.saturating_add(1);
        }
        // kubectl takes no empty list.
        if items.is_empty() {
            return Ok(());
        }
        install::create(self.scene.world, self.namespace, &items)
    }

    pub(super) fn take(&mut self, step: &Step) -> anyhow::Result<()> {
        match step {
            Step::Apply(apply) => self.apply(apply),
            Step::Published(file) => self.publish(file),
            Step::Change { object, patch } => {
                let patch = patch.to_string();
                self.on(object, "patch", &["--type=merge", "--patch", &patch])
            }
            Step::Delete(object) => self.on(object, "delete", &["--wait=false"]),
            Step::Wait(wish) => until(PATIENCE, "what the script waits for", || self.check(wish).map(Some)),
            Step::Check(wish) => until(MOMENT, "what is to be true now", || self.check(wish).map(Some)),
            Step::Holds { wish, during } => {
                until(MOMENT, "what is to hold from now on", || self.check(wish).map(Some))?;
                let (watch, span) = (Stopwatch::start(), terms::span(during.0));
                while watch.elapsed() < span {
                    self.check(wish)?;
                    sleep(GLANCE);
                }
                Ok(())
            }
            Step::Nodes(nodes) => until(MOMENT, "what is to be true now", || self.nodes(nodes).map(Some)),
            Step::Hosts(count) => self.add_hosts(*count),
            Step::Fault { host, has } => self.scene.fleet.break_machine(self.scene.world, *host, has),
            Step::Mend(host) => self.scene.fleet.break_machine(self.scene.world, *host, &[]),
            // Before the first step, this world has refused the script.
            Step::IronicDown(_) => anyhow::bail!("the Ironic of this world stays where it is"),
            Step::Restart => restart(self.scene.world),
            Step::Quiet(span) => quiet::holds(self.scene.world, terms::span(span.0)),
            Step::Written(times) => {
                let written = self.scene.fleet.written(self.scene.world)?;
                let found = written.saturating_sub(self.written);
                ensure!(
                    found == u64::from(*times),
                    "disks were written {found} times, not {times}"
                );
                Ok(())
            }
        }
    }

    /// kubectl with an object, `Kind/name`.
    fn on(&self, object: &str, verb: &str, words: &[&str]) -> anyhow::Result<()> {
        let (kind, name) = kind_and_name(object)?;
        let resource = self.kinds.of(kind)?.resource();
        let mut all = vec!["--namespace", self.namespace, verb, &resource, name];
        all.extend(words);
        self.scene.world.kubectl(&all).map(drop)
    }

    /// clusterctl fills in the variables.
    fn apply(&self, apply: &Apply) -> anyhow::Result<()> {
        let (world, file) = (self.scene.world, self.script.folder.join(&apply.file));
        let file = file.to_str().context("the file's name is not text")?;
        let values: Vec<String> = apply
            .with
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut words: Vec<&str> = values.iter().map(String::as_str).collect();
        words.extend(["clusterctl", "generate", "yaml", "--from", file]);
        let text = world.run("env", &words, None)?;
        let mut objects = documents(&text)?;
        terms::external_etcd(&mut objects)?;
        let names = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let clusters: Vec<String> = objects
            .iter()
            .filter(|one| one["kind"] == "Cluster")
            .map(names)
            .collect();
        for cluster in clusters {
            objects.extend(install::etcd_of(world, &cluster)?);
        }
        terms::images(&mut objects, self.scene.fleet.image_url()?);
        self.send(&objects)
    }

    /// As others have published them.
    fn publish(&self, file: &str) -> anyhow::Result<()> {
        self.send(&self.script.published(file)?)
    }

    fn send(&self, objects: &[Value]) -> anyhow::Result<()> {
        let world = self.scene.world;
        // After so many new kinds the API server makes the documents of all of them anew. kubectl reads them before it sends
        // anything, and on a busy machine loses patience.
        world.kubectl(&["get", "--raw", "/openapi/v2"])?;
        install::apply(world, self.namespace, objects)
    }

    fn list(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        list(self.scene.world, self.namespace, &self.kinds.of(kind)?.resource())
    }

    fn check(&self, wish: &Wish) -> anyhow::Result<()> {
        wish.judge(&self.list(&wish.kind)?)
    }

    fn nodes(&self, wish: &Nodes) -> anyhow::Result<()> {
        let clusters = self.list("Cluster")?;
        let cluster = clusters
            .iter()
            .find(|one| one["metadata"]["name"] == wish.cluster.as_str());
        let endpoint = &cluster.context("there is no such Cluster")?["spec"]["controlPlaneEndpoint"];
        let endpoint = format!("{}:{}", endpoint["host"].as_str().unwrap_or_default(), endpoint["port"]);
        let boots = self.scene.boots();
        let workload = boots.workload_at(&endpoint)?;
        let text = workload.kubectl(self.scene.world, &["get", "nodes", "--output=json"], None)?;
        let nodes: Value = serde_json::from_str(&text)?;
        wish.judge(nodes["items"].as_array().map_or(&[], Vec::as_slice))
    }
}

fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    let parts = text.split("---\n").filter(|part| !part.trim().is_empty());
    parts.map(|part| Ok(serde_saphyr::from_str(part)?)).collect()
}

/// `kill -9` of every container of the three managers.
fn restart(world: &World) -> anyhow::Result<()> {
    for manager in &MANAGERS {
        for pod in list(world, manager.namespace, "pods")? {
            let containers = pod["status"]["containerStatuses"].as_array();
            let containers = containers.filter(|containers| !containers.is_empty());
            for container in containers.with_context(|| format!("{}: a Pod without containers", manager.namespace))? {
                let id = container["containerID"].as_str();
                let process = id.and_then(|id| id.strip_prefix("process://"));
                let process =
                    process.with_context(|| format!("{}: the container runs in no process", manager.namespace))?;
                world.run("kill", &["-9", process], None)?;
            }
        }
    }
    Ok(())
}

/// Has the namespace be there, and anew: the script before may have had one of this name.
pub(super) fn open(world: &World, namespace: &str) -> anyhow::Result<()> {
    if namespace == OLDEST {
        return Ok(());
    }
    until(PATIENCE, &format!("the end of the namespace {namespace}"), || {
        let found = world.kubectl(&["get", "namespace", namespace, "--ignore-not-found", "--output=name"])?;
        Ok(found.is_empty().then_some(()))
    })?;
    world.room(namespace)?.stays();
    Ok(())
}

/// Deletes all that a script left, and gives the machines back as they were. What a script has broken is mended.
pub(super) fn clear(scene: &Scene<'_>, kinds: &Kinds, namespace: &str) -> anyhow::Result<()> {
    let world = scene.world;
    for machine in &scene.fleet.machines {
        let number = machine["number"].as_u64().context("a machine without number")?;
        scene.fleet.break_machine(world, u32::try_from(number)?, &[])?;
    }
    let place = |kind: &str| kinds.of(kind).map(super::kinds::Place::resource);
    let (clusters, hosts) = (place("Cluster")?, place("BareMetalHost")?);
    for one in list(world, namespace, &clusters)? {
        let name = one["metadata"]["name"].as_str().unwrap_or_default();
        let patch = json!({"spec": {"paused": false}}).to_string();
        let words = [
            "--namespace",
            namespace,
            "patch",
            &clusters,
            name,
            "--type=merge",
            "--patch",
            &patch,
        ];
        world.kubectl(&words)?;
    }
    for resource in [&clusters, &hosts] {
        world.kubectl(&["--namespace", namespace, "delete", resource, "--all", "--wait=false"])?;
        until(PATIENCE, &format!("the end of all {resource}"), || {
            Ok(list(world, namespace, resource)?.is_empty().then_some(()))
        })?;
    }
    until(PATIENCE, "Ironic to forget the machines", || {
        Ok(scene.fleet.nodes(world)?.is_empty().then_some(()))
    })?;
    if namespace != OLDEST {
        return world
            .kubectl(&["delete", "namespace", namespace, "--wait=false"])
            .map(drop);
    }
    let mut left: Vec<String> = kinds.all().iter().map(super::kinds::Place::resource).collect();
    left.push("secrets".to_owned());
    let left = left.join(",");
    world
        .kubectl(&["--namespace", namespace, "delete", &left, "--all", "--wait=false"])
        .map(drop)
}
