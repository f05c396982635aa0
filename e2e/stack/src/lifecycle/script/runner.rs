//! Runs the steps of a script.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};
use metal3_scenario::{Apply, Expectation, ExpectedCause, ExpectedNodes, Step, kind_and_name};
use serde_json::{Value, json};

use super::file::Script;
use super::kinds::Kinds;
use super::{adapt, idle};
use crate::claims::stack::Stack;
use crate::lifecycle::audit::MANAGERS;
use crate::lifecycle::env::TestEnv;
use crate::lifecycle::install;
use crate::products::load::list;
use crate::wait::{Stopwatch, until};
use crate::yaml::documents;

/// The timeout of waiting steps.
const TIMEOUT: Duration = Duration::from_secs(900);
/// The timeout of checks: consequences of one cause occur one after another because requests take time.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);
/// The namespace that cannot be deleted.
pub(super) const DEFAULT: &str = "default";
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a running script.
pub(super) struct Runner<'a, 's> {
    env: &'a TestEnv<'s>,
    kinds: &'a Kinds,
    script: &'a Script,
    namespace: &'a str,
    hosts: u32,
    /// The number of disk writes before the script.
    written: u64,
}

impl<'a, 's> Runner<'a, 's> {
    pub(super) fn new(env: &'a TestEnv<'s>, kinds: &'a Kinds, script: &'a Script) -> anyhow::Result<Self> {
        Ok(Self {
            env,
            kinds,
            script,
            namespace: script.namespace(),
            hosts: 0,
            written: env.fleet.written(env.stack)?,
        })
    }

    pub(super) fn add_hosts(&mut self, count: u32) -> anyhow::Result<()> {
        let mut items = Vec::new();
        for _ in 0..count {
            let machine = self.env.fleet.machines.get(usize::try_from(self.hosts)?);
            let machine = machine.context("there is no such machine")?;
            items.extend(install::of_machine(self.env.fleet, machine)?);
            self.hosts = self.hosts.saturating_add(1);
        }
        // kubectl rejects an empty list.
        if items.is_empty() {
            return Ok(());
        }
        install::create(self.env.stack, self.namespace, &items)
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
            Step::DeleteMachineOf(host) => {
                let place = usize::try_from(host.saturating_sub(1))?;
                let machine = self.env.fleet.machines.get(place).context("there is no such machine")?;
                let [_, wanted] = install::of_machine(self.env.fleet, machine)?;
                let hosts = self.list("BareMetalHost")?;
                let host = hosts
                    .iter()
                    .find(|one| one["metadata"]["name"] == wanted["metadata"]["name"]);
                let consumer = host.and_then(|one| one["spec"]["consumerRef"]["name"].as_str());
                let name = consumer.context("the host has no consumer")?;
                self.on(&format!("Machine/{name}"), "delete", &["--wait=false"])
            }
            Step::Wait(expectation) => until(TIMEOUT, "the script's condition", || self.check(expectation).map(Some)),
            Step::Check(expectation) => until(CHECK_TIMEOUT, "the script's check", || {
                self.check(expectation).map(Some)
            }),
            Step::Holds { expectation, during } => {
                until(CHECK_TIMEOUT, "the script's condition to hold", || {
                    self.check(expectation).map(Some)
                })?;
                let (watch, span) = (Stopwatch::start(), adapt::span(during.0));
                while watch.elapsed() < span {
                    self.check(expectation)?;
                    sleep(POLL_INTERVAL);
                }
                Ok(())
            }
            Step::Why(cause) => until(TIMEOUT, "the script's cause", || self.why(cause).map(Some)),
            Step::Nodes(nodes) => until(CHECK_TIMEOUT, "the script's Nodes", || self.nodes(nodes).map(Some)),
            Step::Hosts(count) => self.add_hosts(*count),
            Step::Fault { host, has } => self.env.fleet.break_machine(self.env.stack, *host, has),
            Step::Mend(host) => self.env.fleet.break_machine(self.env.stack, *host, &[]),
            // Rejected before the first step.
            Step::IronicDown(_) => anyhow::bail!("ironic-down is not supported in the real world"),
            Step::Restart => restart(self.env.stack),
            Step::Quiet(span) => idle::check(self.env.stack, adapt::span(span.0)),
            Step::Written(times) => {
                let written = self.env.fleet.written(self.env.stack)?;
                let found = written.saturating_sub(self.written);
                ensure!(
                    found == u64::from(*times),
                    "disks were written {found} times, not {times}"
                );
                Ok(())
            }
        }
    }

    /// Runs kubectl on an object `Kind/name`.
    fn on(&self, object: &str, verb: &str, args: &[&str]) -> anyhow::Result<()> {
        let (kind, name) = kind_and_name(object)?;
        let resource = self.kinds.of(kind)?.resource();
        let mut all = vec!["--namespace", self.namespace, verb, &resource, name];
        all.extend(args);
        self.env.stack.kubectl(&all).map(drop)
    }

    /// Applies a file; clusterctl substitutes its variables.
    fn apply(&self, apply: &Apply) -> anyhow::Result<()> {
        let (stack, file) = (self.env.stack, self.script.folder.join(&apply.file));
        let file = file.to_str().context("the file's name is not text")?;
        let values: Vec<String> = apply
            .with
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut args: Vec<&str> = values.iter().map(String::as_str).collect();
        args.extend(["clusterctl", "generate", "yaml", "--from", file]);
        let text = stack.run("env", &args, None)?;
        let mut objects = documents(&text)?;
        adapt::external_etcd(&mut objects)?;
        let names = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let clusters: Vec<String> = objects
            .iter()
            .filter(|one| one["kind"] == "Cluster")
            .map(names)
            .collect();
        for cluster in clusters {
            objects.extend(install::etcd_of(stack, &cluster)?);
        }
        adapt::images(&mut objects, self.env.fleet.image_url()?);
        self.send(&objects)
    }

    /// Applies a published manifest unchanged.
    fn publish(&self, file: &str) -> anyhow::Result<()> {
        self.send(&self.script.published(file)?)
    }

    fn send(&self, objects: &[Value]) -> anyhow::Result<()> {
        let stack = self.env.stack;
        // New CRDs make the API server rebuild its OpenAPI documents. kubectl reads them before each apply, and times out on a
        // busy machine.
        stack.kubectl(&["get", "--raw", "/openapi/v2"])?;
        install::apply(stack, self.namespace, objects)
    }

    fn list(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        list(self.env.stack, self.namespace, &self.kinds.of(kind)?.resource())
    }

    fn check(&self, expectation: &Expectation) -> anyhow::Result<()> {
        expectation.check(&self.list(&expectation.kind)?)
    }

    /// Explains the objects of the namespace, of which Secrets must be among them.
    fn why(&self, cause: &ExpectedCause) -> anyhow::Result<()> {
        cause.check(&list(self.env.stack, self.namespace, &self.kinds.all_resources())?)
    }

    fn nodes(&self, expectation: &ExpectedNodes) -> anyhow::Result<()> {
        let clusters = self.list("Cluster")?;
        let cluster = clusters
            .iter()
            .find(|one| one["metadata"]["name"] == expectation.cluster.as_str());
        let endpoint = &cluster.context("there is no such Cluster")?["spec"]["controlPlaneEndpoint"];
        let endpoint = format!("{}:{}", endpoint["host"].as_str().unwrap_or_default(), endpoint["port"]);
        let simulator = self.env.simulator();
        let workload = simulator.workload_at(&endpoint)?;
        let text = workload.kubectl(self.env.stack, &["get", "nodes", "--output=json"], None)?;
        let nodes: Value = serde_json::from_str(&text)?;
        expectation.check(nodes["items"].as_array().map_or(&[], Vec::as_slice))
    }
}

/// `kill -9` of every container of the three managers.
fn restart(stack: &Stack) -> anyhow::Result<()> {
    for manager in &MANAGERS {
        for pod in list(stack, manager.namespace, "pods")? {
            let containers = pod["status"]["containerStatuses"].as_array();
            let containers = containers.filter(|containers| !containers.is_empty());
            for container in containers.with_context(|| format!("{}: a Pod without containers", manager.namespace))? {
                let id = container["containerID"].as_str();
                let process = id.and_then(|id| id.strip_prefix("process://"));
                let process =
                    process.with_context(|| format!("{}: the container runs in no process", manager.namespace))?;
                stack.run("kill", &["-9", process], None)?;
            }
        }
    }
    Ok(())
}

/// Creates the namespace, after the previous one of this name is deleted.
pub(super) fn open(stack: &Stack, namespace: &str) -> anyhow::Result<()> {
    if namespace == DEFAULT {
        return Ok(());
    }
    until(TIMEOUT, &format!("the end of the namespace {namespace}"), || {
        let found = stack.kubectl(&["get", "namespace", namespace, "--ignore-not-found", "--output=name"])?;
        Ok(found.is_empty().then_some(()))
    })?;
    stack.create_namespace(namespace)?.keep();
    Ok(())
}

/// Deletes all objects of a script, and repairs and cleans the machines.
pub(super) fn clear(env: &TestEnv<'_>, kinds: &Kinds, namespace: &str) -> anyhow::Result<()> {
    let stack = env.stack;
    for machine in &env.fleet.machines {
        let number = machine["number"].as_u64().context("a machine without number")?;
        env.fleet.break_machine(stack, u32::try_from(number)?, &[])?;
    }
    let place = |kind: &str| kinds.of(kind).map(super::kinds::Place::resource);
    let (clusters, hosts) = (place("Cluster")?, place("BareMetalHost")?);
    for one in list(stack, namespace, &clusters)? {
        let name = one["metadata"]["name"].as_str().unwrap_or_default();
        let patch = json!({"spec": {"paused": false}}).to_string();
        let args = [
            "--namespace",
            namespace,
            "patch",
            &clusters,
            name,
            "--type=merge",
            "--patch",
            &patch,
        ];
        stack.kubectl(&args)?;
    }
    for resource in [&clusters, &hosts] {
        stack.kubectl(&["--namespace", namespace, "delete", resource, "--all", "--wait=false"])?;
        until(TIMEOUT, &format!("the end of all {resource}"), || {
            Ok(list(stack, namespace, resource)?.is_empty().then_some(()))
        })?;
    }
    until(TIMEOUT, "the deletion of all nodes", || {
        Ok(env.fleet.nodes(stack)?.is_empty().then_some(()))
    })?;
    if namespace != DEFAULT {
        return stack
            .kubectl(&["delete", "namespace", namespace, "--wait=false"])
            .map(drop);
    }
    let left = kinds.all_resources();
    stack
        .kubectl(&["--namespace", namespace, "delete", &left, "--all", "--wait=false"])
        .map(drop)
}
