//! A group of workers with no machines, scaled by the capacity of its template.

mod autoscaler;

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::checks;
use super::super::cluster::{LONG, settled};
use super::super::env::TestEnv;
use super::super::fleet::MACHINES;
use super::class::{self, GROUP as FIRST_GROUP};
use super::upgrades::ALL;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::wait::{Stopwatch, until};
use autoscaler::Autoscaler;

/// Three rounds of the autoscaler and more.
const IGNORED: Duration = Duration::from_secs(20);
/// The group in the topology.
const GROUP: &str = "elastic";
const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";

pub(in super::super) fn grown(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let (deployment, capacity) = env.while_simulated(|| {
        add(stack)?;
        let deployment = deployment(stack)?;
        ensure!(
            deployment["spec"]["replicas"] == 0,
            "it begins with {}",
            deployment["spec"]["replicas"]
        );
        let capacity = capacity(stack, &deployment)?;
        Ok((name(&deployment), capacity))
    })?;
    let watch = Stopwatch::start();
    let by = match env.autoscaler {
        Some(program) => by_autoscaler(env, program, &capacity)?,
        None => by_hand(env, &deployment)?,
    };
    let took = watch.elapsed().as_secs_f64();
    let (taken, free) = checks::hosts(env)?;
    let nodes = checks::nodes(env)?;
    ensure!(
        (taken, free, nodes) == (ALL, MACHINES - ALL, ALL),
        "{taken} hosts taken, {free} free, {nodes} Nodes"
    );
    let cpu = &capacity["capacity"]["cpu"];
    let memory = &capacity["capacity"]["memory"];
    let architecture = &capacity["nodeInfo"]["architecture"];
    env.while_simulated(|| {
        let groups = class::topology(stack)?["workers"]["machineDeployments"].clone();
        let mut groups = groups.as_array().cloned().unwrap_or_default();
        groups.retain(|one| one["name"] == FIRST_GROUP);
        class::patch(stack, &json!({"workers": {"machineDeployments": groups}}))?;
        until(LONG, "the end of the group", || {
            Ok((list(stack, NAMESPACE, "machinedeployments")?.len() == 1).then_some(()))
        })
    })?;
    Ok(format!(
        "capacity cpu {cpu}, memory {memory}, {architecture}; 0 -> 1 -> 0 {by} in {took:.1} s"
    ))
}

/// Adds the group, without a number of machines.
fn add(stack: &Stack) -> anyhow::Result<()> {
    let mut groups = class::topology(stack)?["workers"]["machineDeployments"].clone();
    let group = json!({"class": "workers", "name": GROUP, "metadata": {"annotations": {MIN: "0", MAX: "2"}}});
    groups.as_array_mut().context("no workers")?.push(group);
    class::patch(stack, &json!({"workers": {"machineDeployments": groups}}))
}

/// The MachineDeployment of the group.
fn deployment(stack: &Stack) -> anyhow::Result<Value> {
    let label = "topology.cluster.x-k8s.io/deployment-name";
    until(LONG, "the MachineDeployment of the group", || {
        let all = list(stack, NAMESPACE, "machinedeployments")?;
        Ok(all.into_iter().find(|one| one["metadata"]["labels"][label] == GROUP))
    })
}

/// The status of the group's template, once it has capacity and node info.
fn capacity(stack: &Stack, deployment: &Value) -> anyhow::Result<Value> {
    let template = deployment["spec"]["template"]["spec"]["infrastructureRef"]["name"].as_str();
    let template = format!("metal3machinetemplate/{}", template.context("no template")?);
    until(LONG, "capacity and node info of the template", || {
        let text = stack.kubectl(&["--namespace", NAMESPACE, "get", &template, "--output=json"])?;
        let mut template: Value = serde_json::from_str(&text)?;
        let status = template["status"].take();
        let has = |at: &str| status.pointer(at).is_some_and(Value::is_string);
        let all = [
            "/capacity/cpu",
            "/capacity/memory",
            "/nodeInfo/architecture",
            "/nodeInfo/operatingSystem",
        ];
        Ok(all.iter().all(|at| has(at)).then_some(status))
    })
}

/// Scales as the autoscaler does, and waits: the topology controller leaves the number alone.
fn by_hand(env: &TestEnv<'_>, deployment: &str) -> anyhow::Result<String> {
    let stack = env.stack;
    println!("       cluster-autoscaler not given: its part is not run");
    env.while_simulated(|| {
        for (workers, all) in [(1, ALL + 1), (0, ALL)] {
            let replicas = format!("--replicas={workers}");
            stack.kubectl(&[
                "--namespace",
                NAMESPACE,
                "scale",
                "machinedeployment",
                deployment,
                &replicas,
            ])?;
            running(stack, all)?;
            freed(stack, MACHINES - all)?;
            settled(env)?;
            let nodes = checks::nodes(env)?;
            ensure!(nodes == all, "{nodes} Nodes");
        }
        Ok("by its scale subresource".to_owned())
    })
}

/// The memory of a machine of the group, in MiB.
fn memory(capacity: &Value) -> anyhow::Result<u64> {
    let text = capacity["capacity"]["memory"].as_str().unwrap_or_default();
    let number = text.strip_suffix("Mi").with_context(|| format!("memory {text:?}"))?;
    Ok(number.parse()?)
}

/// The autoscaler leaves the group alone.
fn stays_at_zero(stack: &Stack) -> anyhow::Result<()> {
    let watch = Stopwatch::start();
    until(LONG, "the end of the watch", || {
        let replicas = deployment(stack)?["spec"]["replicas"].clone();
        let is_done = replicas != 0 || watch.elapsed() >= IGNORED;
        Ok(is_done.then_some(replicas))
    })
    .and_then(|replicas| {
        ensure!(replicas == 0, "{replicas} machines for a Pod that fits on none");
        Ok(())
    })
}

/// A Pod with more memory than a machine has changes nothing. One that fits lets the autoscaler grow the group, and its
/// deletion lets it shrink.
fn by_autoscaler(env: &TestEnv<'_>, program: &std::path::Path, capacity: &Value) -> anyhow::Result<String> {
    let stack = env.stack;
    let mut autoscaler = Autoscaler::start(env, program)?;
    env.while_simulated(|| {
        autoscaler.is_running(env)?;
        let memory = memory(capacity)?;
        autoscaler.add_pod(env, capacity, memory.saturating_mul(2))?;
        stays_at_zero(stack)?;
        autoscaler.remove_pod(env)?;
        autoscaler.add_pod(env, capacity, memory.div_euclid(2))?;
        running(stack, ALL + 1)?;
        freed(stack, MACHINES - ALL - 1)?;
        settled(env)?;
        let nodes = checks::nodes(env)?;
        ensure!(nodes == ALL + 1, "{nodes} Nodes");
        autoscaler.report_capacity(env, capacity)?;
        autoscaler.remove_pod(env)?;
        running(stack, ALL)?;
        freed(stack, MACHINES - ALL)?;
        settled(env)
    })?;
    autoscaler.stop()?;
    Ok("by cluster-autoscaler".to_owned())
}
