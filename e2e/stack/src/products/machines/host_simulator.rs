//! Simulates hosts that reach the desired state immediately, and the Nodes of provisioned hosts.
//!
//! Host controllers and kubelets are not under test here. The workload cluster is the management cluster itself: Cluster
//! API gets its kubeconfig, so the real controllers read, drain and delete the Nodes. Nodes are unschedulable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::wait::{Stopwatch, cancel_when};

const LABEL: &str = "metal3.io/uuid";
const PAUSE: Duration = Duration::from_millis(500);
/// The interval of heartbeats; the controllers mark a Node as unreachable after 40 seconds.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Does the work while hosts and Nodes are simulated.
pub(super) fn while_simulated<T>(stack: &Stack, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut beat: Option<Stopwatch> = None;
    let tick = || {
        let is_due = beat.as_ref().is_none_or(|beat| beat.elapsed() >= HEARTBEAT);
        simulate(stack, is_due)?;
        if is_due {
            beat = Some(Stopwatch::start());
        }
        Ok(())
    };
    concurrently("the simulated machines", tick, work)
}

/// Does the work, and calls `tick` repeatedly in another thread. A failure of `tick` cancels the work's waits.
pub(crate) fn concurrently<T>(
    name: &str,
    mut tick: impl FnMut() -> anyhow::Result<()> + Send,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (over, failed) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    std::thread::scope(|scope| {
        let ticker = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                tick().inspect_err(|error| {
                    println!("       {name} failed: {error:#}");
                    failed.store(true, Ordering::Relaxed);
                })?;
                std::thread::sleep(PAUSE);
            }
            anyhow::Ok(())
        });
        let done = cancel_when(&failed, work);
        over.store(true, Ordering::Relaxed);
        let simulated = ticker.join().map_err(|_| anyhow::anyhow!("{name} panicked"))?;
        // An error of the simulation is the more likely cause of later errors.
        simulated.and(done)
    })
}

fn simulate(stack: &Stack, is_due: bool) -> anyhow::Result<()> {
    let mut nodes: BTreeMap<String, String> = BTreeMap::new();
    for node in list(stack, NAMESPACE, "nodes")? {
        if let Some(uid) = node["metadata"]["labels"][LABEL].as_str() {
            nodes.insert(uid.to_owned(), name(&node));
        }
    }
    for host in list(stack, NAMESPACE, "baremetalhosts")? {
        let uid = host["metadata"]["uid"].as_str().context("a host without UID")?;
        let is_running = reconcile_host(stack, &host)?;
        match (is_running, nodes.get(uid)) {
            (true, None) => join(stack, &host, uid)?,
            (true, Some(node)) if is_due => beat(stack, node)?,
            (false, Some(node)) => {
                stack.kubectl(&["delete", "node", node, "--ignore-not-found", "--wait=false"])?;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
    Ok(())
}

/// Moves a host one step to its desired state; returns whether it is provisioned.
fn reconcile_host(stack: &Stack, host: &Value) -> anyhow::Result<bool> {
    let wanted = host["spec"]["image"]["url"].as_str().unwrap_or_default();
    let state = host["status"]["provisioning"]["state"].as_str().unwrap_or_default();
    let next = match (state, wanted) {
        ("available" | "provisioned", "") if state == "provisioned" || host["status"].is_null() => "available",
        ("", _) => "available",
        ("available", url) if !url.is_empty() => "provisioned",
        _ => return Ok(state == "provisioned"),
    };
    let status = json!({"status": {
        "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": next == "provisioned",
        "provisioning": {"state": next, "ID": name(host), "image": {"url": wanted}},
    }});
    let args = [
        "--namespace",
        NAMESPACE,
        "patch",
        "baremetalhost",
        &name(host),
        "--subresource=status",
    ];
    let mut args = args.to_vec();
    let status = status.to_string();
    args.extend(["--type=merge", "--patch", &status]);
    stack.kubectl(&args)?;
    Ok(false)
}

/// Registers the Node like its kubelet: labelled with its host, without provider ID.
fn join(stack: &Stack, host: &Value, uid: &str) -> anyhow::Result<()> {
    let Some(machine) = host["spec"]["consumerRef"]["name"].as_str() else {
        return Ok(());
    };
    let labels = json!({LABEL: uid, "kubernetes.io/hostname": machine});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine, "labels": labels},
        "spec": {"unschedulable": true}});
    stack.run("kubectl", &["apply", "--filename", "-"], Some(&node.to_string()))?;
    initialized(stack)?;
    beat(stack, machine)
}

/// Creates the ConfigMap of kubeadm.
fn initialized(stack: &Stack) -> anyhow::Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
        "data": {"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"}});
    stack.run("kubectl", &["apply", "--filename", "-"], Some(&map.to_string()))?;
    Ok(())
}

fn beat(stack: &Stack, node: &str) -> anyhow::Result<()> {
    let now = stack.run("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ"], None)?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
        "lastHeartbeatTime": now.trim(), "lastTransitionTime": now.trim()});
    let status = json!({"status": {"conditions": [ready]}}).to_string();
    let args = ["patch", "node", node, "--subresource=status", "--patch", &status];
    match stack.kubectl(&args) {
        // It has been deleted.
        Err(error) if format!("{error:#}").contains("NotFound") => Ok(()),
        done => done.map(drop),
    }
}
