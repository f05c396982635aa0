//! The life cycle of one cluster: create, scale up, scale down, delete.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::env::TestEnv;
use super::fleet::MACHINES;
use super::workers::{scale, scale_to};
use super::{checks, install};
use crate::claim::Proof;
use crate::claims::stack::condition;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, kill_leader, nothing_is_left, running, until_deleted};
use crate::products::machines::template::CLUSTER;
use crate::wait::{Stopwatch, until};

/// The last output of `clusterctl describe`.
pub(super) const DESCRIBED: &str = "described.txt";
/// Inspection or deployment of several machines on shared cores.
pub(super) const LONG: Duration = Duration::from_secs(480);

pub(super) fn available(env: &TestEnv<'_>) -> Proof {
    let watch = Stopwatch::start();
    freed(env.stack, MACHINES)?;
    let hosts = list(env.stack, NAMESPACE, "baremetalhosts")?;
    for host in &hosts {
        let hardware = &host["status"]["hardware"];
        let cards = hardware["nics"].as_array().map_or(0, Vec::len);
        ensure!(cards > 0, "{}: its hardware is {hardware}", name(host));
    }
    checks::hosts(env)?;
    Ok(format!("{MACHINES} hosts, {:.1} s more", watch.elapsed().as_secs_f64()))
}

pub(super) fn runs(env: &TestEnv<'_>) -> Proof {
    let watch = Stopwatch::start();
    let ((), described) = env.while_described(|| {
        install::cluster(env)?;
        running(env.stack, 3)?;
        settled(env)
    })?;
    let took = watch.elapsed();
    described.prove()?;
    let nodes = checks::nodes(env)?;
    let addresses = list(env.stack, NAMESPACE, "ipclaims.ipam.metal3.io")?.len();
    ensure!(addresses == 4, "{addresses} claims on the workers' pools");
    Ok(format!(
        "{nodes} Nodes after {:.1} s, 4 addresses; {described}",
        took.as_secs_f64()
    ))
}

/// Waits until the cluster, its control plane, its workers and each Machine are available, also according to clusterctl.
pub(super) fn settled(env: &TestEnv<'_>) -> anyhow::Result<()> {
    let kinds = "clusters,kubeadmcontrolplanes,machinedeployments,machines";
    let mut last = String::new();
    until(LONG, "all of the cluster to be available", || {
        let objects = list(env.stack, NAMESPACE, kinds)?;
        let waits = |object: &&Value| condition(object, "Available") != Some("True");
        let open = objects.iter().filter(waits);
        let open: Vec<String> = open
            .map(|object| format!("{} {}", object["kind"].as_str().unwrap_or_default(), name(object)))
            .collect();
        last = open.join(", ");
        Ok(open.is_empty().then_some(()))
    })
    .with_context(|| format!("not available: {last}"))?;
    let args = ["describe", "cluster", CLUSTER, "--namespace", NAMESPACE];
    let output = env.stack.run("clusterctl", &args, None)?;
    ensure!(!output.contains("False"), "{output}");
    fs::write(env.stack.places.state_file(DESCRIBED), output)?;
    Ok(())
}

pub(super) fn written(env: &TestEnv<'_>) -> Proof {
    let (taken, free) = checks::hosts(env)?;
    ensure!(taken == 3, "{taken} hosts have a consumer");
    Ok(format!("{taken} hosts, and {free} are blank"))
}

pub(super) fn scaled(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let mut took = Vec::new();
    let (killed, described) = env.while_described(|| {
        let watch = Stopwatch::start();
        scale(stack, 3)?;
        let killed = kill_leader(stack)?;
        running(stack, 4)?;
        settled(env)?;
        took.push(watch.elapsed().as_secs_f64());
        let (taken, _) = checks::hosts(env)?;
        ensure!(taken == 4 && checks::nodes(env)? == 4, "{taken} hosts have a consumer");
        let watch = Stopwatch::start();
        scale_to(env, 1)?;
        took.push(watch.elapsed().as_secs_f64());
        Ok(killed)
    })?;
    let (taken, free) = checks::hosts(env)?;
    let nodes = checks::nodes(env)?;
    ensure!(
        (taken, free, nodes) == (2, MACHINES - 2, 2),
        "{taken} hosts taken, {free} free, {nodes} Nodes"
    );
    let took: Vec<String> = took.iter().map(|took| format!("{took:.1} s")).collect();
    described.prove()?;
    Ok(format!(
        "2 -> 3 -> 1 in {}, {killed} killed; {described}",
        took.join(" and ")
    ))
}

pub(super) fn deleted(env: &TestEnv<'_>) -> Proof {
    let watch = Stopwatch::start();
    let args = ["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"];
    let ((), described) = env.while_described(|| {
        env.stack.kubectl(&args)?;
        until_deleted(env.stack, "clusters,machines")?;
        freed(env.stack, MACHINES)
    })?;
    nothing_is_left(env.stack)?;
    // It belongs to no Cluster.
    env.stack
        .kubectl(&["--namespace", NAMESPACE, "delete", "ippool", install::SHARED_POOL])?;
    let took = watch.elapsed().as_secs_f64();
    let (taken, free) = checks::hosts(env)?;
    ensure!(
        (taken, free) == (0, MACHINES),
        "{taken} hosts are taken, {free} are free"
    );
    let up = env.simulator().nodes();
    ensure!(up.is_empty(), "{up:?} are up");
    Ok(format!(
        "{free} hosts are available again after {took:.1} s; {described}"
    ))
}
