//! `clusterctl move` with provisioned hosts: according to Ironic's log, no machine is powered off, written or deleted.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::Value;

use super::audit;
use super::cluster::settled;
use super::env::TestEnv;
use super::fleet::MACHINES;
use super::{checks, install, requests};
use crate::claim::Proof;
use crate::pki;
use crate::products::load::list;
use crate::products::machines::cluster::{freed, running, until_deleted};
use crate::products::machines::host_simulator::concurrently;
use crate::products::machines::{self, NAMESPACE};
use crate::wait::Stopwatch;

/// The labels that an operator adds to the CRDs of hosts before a move, in both clusters: all hosts of the namespace move.
const LABELS: &[(&str, &[&str])] = &[
    (
        "crd/baremetalhosts.metal3.io",
        &[
            "clusterctl.cluster.x-k8s.io=",
            "clusterctl.cluster.x-k8s.io/move=",
            "clusterctl.cluster.x-k8s.io/move-hierarchy=",
        ],
    ),
    // A pool that names no Cluster has no owner, and moves with its namespace.
    (
        "crd/ippools.ipam.metal3.io",
        &["clusterctl.cluster.x-k8s.io=", "clusterctl.cluster.x-k8s.io/move="],
    ),
    (
        "crd/hardwaredata.metal3.io",
        &["clusterctl.cluster.x-k8s.io=", "clusterctl.cluster.x-k8s.io/move="],
    ),
];

pub(super) fn there(env: &TestEnv<'_>) -> Proof {
    let watch = Stopwatch::start();
    let target = second(env)?;
    let installed = watch.elapsed().as_secs_f64();
    Ok(format!(
        "{}; the other management cluster was installed in {installed:.1} s",
        moves(env, &target)?
    ))
}

pub(super) fn back(env: &TestEnv<'_>) -> Proof {
    let from = second(env)?;
    let log = moves(&from, env)?;
    audit::no_request_was_forbidden(from.stack)?;
    Ok(log)
}

/// The second management cluster, installed like the first.
pub(super) fn second<'a>(env: &TestEnv<'a>) -> anyhow::Result<TestEnv<'a>> {
    let target = TestEnv {
        stack: env.second,
        ..*env
    };
    let managers = [
        "get",
        "namespace",
        install::HOSTS,
        "--ignore-not-found",
        "--output=name",
    ];
    if !target.stack.kubectl(&managers)?.trim().is_empty() {
        return Ok(target);
    }
    install::first_manager_of_hosts(&target)?;
    machines::initialized(target.stack, env.release)?;
    for stack in [env.stack, target.stack] {
        for (kind, labels) in LABELS {
            stack.kubectl(&[&["label", "--overwrite", kind], *labels].concat())?;
        }
    }
    Ok(target)
}

/// The address of each claim on an IPPool, from the address objects.
fn granted(env: &TestEnv<'_>) -> anyhow::Result<BTreeMap<String, String>> {
    let text = |object: &Value, at: &str| {
        object
            .pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let objects = list(env.stack, NAMESPACE, "ipaddresses.ipam.metal3.io")?;
    let pairs = objects
        .iter()
        .map(|object| (text(object, "/spec/claim/name"), text(object, "/spec/address")));
    let granted: BTreeMap<String, String> = pairs.collect();
    ensure!(granted.len() == objects.len(), "a claim has two addresses: {granted:?}");
    Ok(granted)
}

fn moves(from: &TestEnv<'_>, to: &TestEnv<'_>) -> Proof {
    moves_during(from, to, || from.simulator().step())
}

/// Moves the cluster, with a parallel activity of the caller. Afterwards the target is settled and the source has none of
/// its objects.
pub(super) fn moves_during(
    from: &TestEnv<'_>,
    to: &TestEnv<'_>,
    tick: impl FnMut() -> anyhow::Result<()> + Send,
) -> Proof {
    let (hosts, nodes) = (checks::hosts(from)?, checks::nodes(from)?);
    let addresses = granted(from)?;
    let (watch, mark) = (Stopwatch::start(), from.fleet.mark()?);
    let kubeconfig = to.stack.places.kubeconfig(pki::ADMIN).display().to_string();
    let args = ["move", "--namespace", NAMESPACE, "--to-kubeconfig", &kubeconfig];
    concurrently("the simulated machines", tick, || {
        from.stack.run("clusterctl", &args, None)?;
        running(to.stack, nodes)?;
        freed(to.stack, MACHINES - nodes)?;
        settled(to)
    })?;
    until_deleted(from.stack, "clusters,machines,metal3machines,baremetalhosts,ippools")?;
    let log = from.fleet.log_since(mark)?;
    // A free host arrives without a status, and its node stays available.
    let others: Vec<(&str, &str)> = requests::moves(&log).collect();
    ensure!(others.is_empty(), "nodes changed their states: {others:?}");
    let asked: Vec<requests::Request> = requests::of(&log).collect();
    let destructive: Vec<String> = asked
        .iter()
        .filter(|one| one.is_destructive())
        .map(ToString::to_string)
        .collect();
    ensure!(destructive.is_empty(), "Ironic received {destructive:?}");
    ensure!(
        checks::hosts(to)? == hosts && checks::nodes(to)? == nodes,
        "the hosts in use differ"
    );
    let arrived = granted(to)?;
    ensure!(
        arrived == addresses,
        "the addresses of claims differ: {addresses:?} before, {arrived:?} after"
    );
    let mut orders: BTreeMap<String, usize> = BTreeMap::new();
    for order in asked.iter().filter(|one| one.is_order()) {
        *orders.entry(order.to_string()).or_default() += 1;
    }
    let orders: Vec<String> = orders.iter().map(|(what, number)| format!("{number} {what}")).collect();
    let took = watch.elapsed().as_secs_f64();
    Ok(format!(
        "{nodes} machines in {took:.1} s, changes in Ironic: [{}]",
        orders.join(", ")
    ))
}
