//! The life of one cluster: it comes, grows, shrinks and goes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::fleet::MACHINES;
use super::{Scene, install, judge};
use crate::claims::world::{World, condition};
use crate::products::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, gone, kill_leader, nothing_is_left, running};
use crate::products::machines::scene::CLUSTER;
use crate::wait::{Stopwatch, until};

/// What clusterctl said of the cluster when it was last settled.
pub(super) const DESCRIBED: &str = "described.txt";
/// Inspection or deployment of several machines on cores that others use as well.
pub(super) const LONG: Duration = Duration::from_secs(480);

pub(super) fn available(scene: &Scene<'_>) -> Proof {
    let watch = Stopwatch::start();
    freed(scene.world, MACHINES)?;
    let hosts = list(scene.world, NAMESPACE, "baremetalhosts")?;
    for host in &hosts {
        let hardware = &host["status"]["hardware"];
        let cards = hardware["nics"].as_array().map_or(0, Vec::len);
        ensure!(cards > 0, "{}: its hardware is {hardware}", name(host));
    }
    judge::metal(scene)?;
    Ok(format!("{MACHINES} hosts, {:.1} s more", watch.elapsed().as_secs_f64()))
}

pub(super) fn runs(scene: &Scene<'_>) -> Proof {
    let watch = Stopwatch::start();
    let ((), described) = scene.while_described(|| {
        install::cluster(scene)?;
        running(scene.world, 3)?;
        settled(scene)
    })?;
    let took = watch.elapsed();
    described.prove()?;
    let nodes = judge::nodes(scene)?;
    let addresses = list(scene.world, NAMESPACE, "ipclaims.ipam.metal3.io")?.len();
    ensure!(addresses == 2, "{addresses} claims on the workers' pool");
    Ok(format!(
        "{nodes} Nodes after {:.1} s, 2 addresses; {described}",
        took.as_secs_f64()
    ))
}

/// Waits until the cluster, its control plane, its workers and every Machine are available, and clusterctl says so.
pub(super) fn settled(scene: &Scene<'_>) -> anyhow::Result<()> {
    let kinds = "clusters,kubeadmcontrolplanes,machinedeployments,machines";
    let mut last = String::new();
    until(LONG, "all of the cluster to be available", || {
        let objects = list(scene.world, NAMESPACE, kinds)?;
        let waits = |object: &&Value| condition(object, "Available") != Some("True");
        let open = objects.iter().filter(waits);
        let open: Vec<String> = open
            .map(|object| format!("{} {}", object["kind"].as_str().unwrap_or_default(), name(object)))
            .collect();
        last = open.join(", ");
        Ok(open.is_empty().then_some(()))
    })
    .with_context(|| format!("not available: {last}"))?;
    let words = ["describe", "cluster", CLUSTER, "--namespace", NAMESPACE];
    let said = scene.world.run("clusterctl", &words, None)?;
    ensure!(!said.contains("False"), "{said}");
    fs::write(scene.world.places.state_file(DESCRIBED), said)?;
    Ok(())
}

pub(super) fn written(scene: &Scene<'_>) -> Proof {
    let (taken, free) = judge::metal(scene)?;
    ensure!(taken == 3, "{taken} hosts have a consumer");
    Ok(format!("{taken} hosts, and {free} hold nothing"))
}

/// Asks for so many workers.
pub(super) fn scale(world: &World, workers: usize) -> anyhow::Result<()> {
    let (what, replicas) = ("machinedeployment", format!("--replicas={workers}"));
    let words = ["--namespace", NAMESPACE, "scale", what, CLUSTER, &replicas];
    world.kubectl(&words).map(drop)
}

pub(super) fn scaled(scene: &Scene<'_>) -> Proof {
    let world = scene.world;
    let mut took = Vec::new();
    let (killed, described) = scene.while_described(|| {
        let watch = Stopwatch::start();
        scale(world, 3)?;
        let killed = kill_leader(world)?;
        running(world, 4)?;
        settled(scene)?;
        took.push(watch.elapsed().as_secs_f64());
        let (taken, _) = judge::metal(scene)?;
        ensure!(taken == 4 && judge::nodes(scene)? == 4, "{taken} hosts have a consumer");
        let watch = Stopwatch::start();
        scale(world, 1)?;
        running(world, 2)?;
        freed(world, MACHINES - 2)?;
        settled(scene)?;
        took.push(watch.elapsed().as_secs_f64());
        Ok(killed)
    })?;
    let (taken, free) = judge::metal(scene)?;
    let nodes = judge::nodes(scene)?;
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

pub(super) fn deleted(scene: &Scene<'_>) -> Proof {
    let watch = Stopwatch::start();
    let words = ["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"];
    let ((), described) = scene.while_described(|| {
        scene.world.kubectl(&words)?;
        gone(scene.world, "clusters,machines")?;
        freed(scene.world, MACHINES)
    })?;
    nothing_is_left(scene.world)?;
    let took = watch.elapsed().as_secs_f64();
    let (taken, free) = judge::metal(scene)?;
    ensure!(
        (taken, free) == (0, MACHINES),
        "{taken} hosts are taken, {free} are free"
    );
    let up = scene.boots().nodes();
    ensure!(up.is_empty(), "{up:?} are up");
    Ok(format!(
        "{free} hosts are available again after {took:.1} s; {described}"
    ))
}
