//! Remediation by the real MachineHealthCheck of Cluster API: a worker whose Node stops answering and comes back with the
//! power, and one whose Node does not.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::cluster::{LONG, settled};
use super::env::TestEnv;
use super::fleet::MACHINES;
use super::workers::{Worker, scale_to, worker};
use super::{checks, install};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::products::machines::template::CLUSTER;
use crate::wait::{Stopwatch, until};

/// A worker and one control plane machine.
const ALL: usize = 2;
const UNHEALTHY: &str = "capm3.metal3.io/unhealthy";

pub(super) fn repaired(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    env.while_simulated(|| scale_to(env, ALL - 1))?;
    let worker = worker(stack)?;
    let boots = boots(env, &worker.host)?;
    check_health(stack, 600)?;
    let watch = Stopwatch::start();
    env.simulator().hang(&worker.node, false)?;
    env.while_simulated(|| {
        until(LONG, "a remediation", || {
            let all = list(stack, NAMESPACE, "metal3remediations")?;
            Ok((!all.is_empty()).then_some(()))
        })?;
        until(LONG, "the end of the remediation", || {
            let all = list(stack, NAMESPACE, "metal3remediations")?;
            Ok(all.is_empty().then_some(()))
        })?;
        running(stack, ALL)?;
        settled(env)
    })?;
    let took = watch.elapsed().as_secs_f64();
    let now = self::worker(stack)?;
    ensure!(
        now.uid == worker.uid && now.host == worker.host,
        "the worker was replaced"
    );
    let booted = self::boots(env, &worker.host)?;
    ensure!(
        booted > boots,
        "its machine did not boot again: {boots} boots, then {booted}"
    );
    let (taken, nodes) = (checks::hosts(env)?.0, checks::nodes(env)?);
    ensure!((taken, nodes) == (ALL, ALL), "{taken} hosts taken, {nodes} Nodes");
    Ok(format!("the Node was ready again after {took:.1} s"))
}

pub(super) fn replaced(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let worker = worker(stack)?;
    check_health(stack, 100)?;
    let watch = Stopwatch::start();
    env.simulator().hang(&worker.node, true)?;
    env.while_simulated(|| {
        until(LONG, "another worker", || {
            let is_other = |one: &Worker| one.uid != worker.uid;
            Ok(self::worker(stack).ok().filter(is_other).map(|_| ()))
        })?;
        running(stack, ALL)?;
        settled(env)
    })?;
    let took = watch.elapsed().as_secs_f64();
    let now = self::worker(stack)?;
    ensure!(now.host != worker.host, "the new worker has the unhealthy host");
    let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
    let marked = |host: &&Value| !host["metadata"]["annotations"][UNHEALTHY].is_null();
    let marked: BTreeSet<String> = hosts.iter().filter(marked).map(name).collect();
    ensure!(
        marked == BTreeSet::from([worker.host.clone()]),
        "unhealthy hosts: {marked:?}"
    );
    // Later claims use every host.
    let annotation = format!("{UNHEALTHY}-");
    stack.kubectl(&[
        "--namespace",
        NAMESPACE,
        "annotate",
        "baremetalhost",
        &worker.host,
        &annotation,
    ])?;
    end(stack)?;
    env.while_simulated(|| freed(stack, MACHINES - ALL))?;
    let (taken, nodes) = (checks::hosts(env)?.0, checks::nodes(env)?);
    ensure!((taken, nodes) == (ALL, ALL), "{taken} hosts taken, {nodes} Nodes");
    Ok(format!("on another host after {took:.1} s"))
}

/// Creates or changes the MachineHealthCheck of the workers and its template.
fn check_health(stack: &Stack, timeout: u32) -> anyhow::Result<()> {
    for object in health_check(timeout) {
        stack.run("kubectl", &["apply", "--filename", "-"], Some(&object.to_string()))?;
    }
    Ok(())
}

/// The template of a remediation that reboots once, and the MachineHealthCheck of the workers.
pub(super) fn health_check(timeout: u32) -> [Value; 2] {
    let meta = json!({"name": CLUSTER, "namespace": NAMESPACE});
    let strategy = json!({"type": "Reboot", "retryLimit": 1, "timeoutSeconds": timeout});
    let template = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3RemediationTemplate", "metadata": meta,
        "spec": {"template": {"spec": {"strategy": strategy}}},
    });
    let check = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck", "metadata": meta,
        "spec": {
            "clusterName": CLUSTER,
            "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": CLUSTER}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 5}]},
            "remediation": {"templateRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3RemediationTemplate",
                "name": CLUSTER,
            }},
        },
    });
    [template, check]
}

/// Ends the remediation of workers.
pub(super) fn end(stack: &Stack) -> anyhow::Result<()> {
    let kinds = "machinehealthchecks,metal3remediationtemplates";
    stack
        .kubectl(&["--namespace", NAMESPACE, "delete", kinds, CLUSTER])
        .map(drop)
}

/// How often the machine of a host has booted.
fn boots(env: &TestEnv<'_>, host: &str) -> anyhow::Result<u64> {
    let number = install::machine(host)?;
    let machines = env.fleet.machine_states(env.stack)?;
    let machine = machines.iter().find(|machine| machine["number"] == number);
    let machine = machine.with_context(|| format!("no machine of {host}"))?;
    machine["boots"].as_u64().context("a machine without boots")
}
