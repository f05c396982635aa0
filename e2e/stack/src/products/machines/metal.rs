//! What stands in for metal: hosts that do at once what they are told, and Nodes of those that run.
//!
//! The controllers of hosts and the kubelets of machines are not what is judged here. The workload cluster is the
//! management cluster itself: its kubeconfig is what Cluster API is given for the cluster, so Nodes are seen, drained
//! and deleted by the real controllers. Nodes take no Pods.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::claims::world::World;
use crate::products::load::{list, name};
use crate::wait::{Stopwatch, standing_on};

const LABEL: &str = "metal3.io/uuid";
const PAUSE: Duration = Duration::from_millis(500);
/// How often a kubelet says that it lives; the controllers give one up after 40 seconds.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Does the work while hosts and Nodes live.
pub(super) fn while_it_lives<T>(world: &World, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let mut beat: Option<Stopwatch> = None;
    let look = || {
        let is_due = beat.as_ref().is_none_or(|beat| beat.elapsed() >= HEARTBEAT);
        tick(world, is_due)?;
        if is_due {
            beat = Some(Stopwatch::start());
        }
        Ok(())
    };
    beside("the metal", look, work)
}

/// Does the work, and looks now and then at what goes on beside it, which has a name.
pub(crate) fn beside<T>(
    name: &str,
    mut look: impl FnMut() -> anyhow::Result<()> + Send,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (over, broken) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    std::thread::scope(|scope| {
        let metal = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                look().inspect_err(|error| {
                    println!("       {name} broke: {error:#}");
                    broken.store(true, Ordering::Relaxed);
                })?;
                std::thread::sleep(PAUSE);
            }
            anyhow::Ok(())
        });
        let done = standing_on(&broken, work);
        over.store(true, Ordering::Relaxed);
        let lived = metal.join().map_err(|_| anyhow::anyhow!("{name} broke"))?;
        // What broke there is the likelier reason of what came after it.
        lived.and(done)
    })
}

fn tick(world: &World, is_due: bool) -> anyhow::Result<()> {
    let mut nodes: BTreeMap<String, String> = BTreeMap::new();
    for node in list(world, NAMESPACE, "nodes")? {
        if let Some(uid) = node["metadata"]["labels"][LABEL].as_str() {
            nodes.insert(uid.to_owned(), name(&node));
        }
    }
    for host in list(world, NAMESPACE, "baremetalhosts")? {
        let uid = host["metadata"]["uid"].as_str().context("a host without UID")?;
        let is_running = obey(world, &host)?;
        match (is_running, nodes.get(uid)) {
            (true, None) => join(world, &host, uid)?,
            (true, Some(node)) if is_due => beat(world, node)?,
            (false, Some(node)) => {
                world.kubectl(&["delete", "node", node, "--ignore-not-found", "--wait=false"])?;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
    Ok(())
}

/// What a host is told becomes true; whether it runs what a machine wants.
fn obey(world: &World, host: &Value) -> anyhow::Result<bool> {
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
    let words = [
        "--namespace",
        NAMESPACE,
        "patch",
        "baremetalhost",
        &name(host),
        "--subresource=status",
    ];
    let mut words = words.to_vec();
    let status = status.to_string();
    words.extend(["--type=merge", "--patch", &status]);
    world.kubectl(&words)?;
    Ok(false)
}

/// The Node, as its kubelet would register it: labelled with the host it runs on, and without an ID.
fn join(world: &World, host: &Value, uid: &str) -> anyhow::Result<()> {
    let Some(machine) = host["spec"]["consumerRef"]["name"].as_str() else {
        return Ok(());
    };
    let labels = json!({LABEL: uid, "kubernetes.io/hostname": machine});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine, "labels": labels},
        "spec": {"unschedulable": true}});
    world.run("kubectl", &["apply", "--filename", "-"], Some(&node.to_string()))?;
    initialized(world)?;
    beat(world, machine)
}

/// What kubeadm leaves when it is done with the first machine.
fn initialized(world: &World) -> anyhow::Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
        "data": {"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"}});
    world.run("kubectl", &["apply", "--filename", "-"], Some(&map.to_string()))?;
    Ok(())
}

fn beat(world: &World, node: &str) -> anyhow::Result<()> {
    let now = world.run("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ"], None)?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is",
        "lastHeartbeatTime": now.trim(), "lastTransitionTime": now.trim()});
    let status = json!({"status": {"conditions": [ready]}}).to_string();
    let words = ["patch", "node", node, "--subresource=status", "--patch", &status];
    match world.kubectl(&words) {
        // It was deleted meanwhile.
        Err(error) if format!("{error:#}").contains("NotFound") => Ok(()),
        done => done.map(drop),
    }
}
