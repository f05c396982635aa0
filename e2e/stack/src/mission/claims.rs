//! The promises of the mission.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::fleet::MACHINES;
use super::report::Report;
use super::{Claim, Scene, audit, install, judge};
use crate::claims::world::condition;
use crate::products::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, gone, kill_leader, nothing_is_left, running};
use crate::products::machines::scene::CLUSTER;
use crate::record::{Stopwatch, until};

/// Inspection or deployment of several machines on cores that others use as well.
const LONG: Duration = Duration::from_secs(480);

/// In this order: each finds the world as the one before has left it.
const CLAIMS: &[Claim] = &[
    ("the_manager_of_hosts_runs_from_the_release", install::hosts),
    (
        "clusterctl_init_installs_machines_and_addresses_beside_cluster_api",
        install::providers,
    ),
    (
        "the_real_ironic_inspects_every_machine_and_its_host_is_available",
        available,
    ),
    ("a_generated_cluster_becomes_available_and_its_machines_are_nodes", runs),
    ("disks_and_config_drives_hold_what_was_ordered_byte_by_byte", written),
    ("workers_are_scaled_up_and_down_while_the_leader_is_killed", scaled),
    ("deleting_the_cluster_gives_every_host_back_with_blank_disks", deleted),
    (
        "what_is_granted_is_used_or_explained_and_nothing_was_forbidden",
        audit::granted_is_used,
    ),
];

/// Proves them, and says whether all of them hold.
pub(super) fn prove(scene: &Scene<'_>, report: &mut Report) -> bool {
    for (held, (claim, proof)) in CLAIMS.iter().enumerate() {
        let proof = proof(scene);
        report.step(&claim.replace('_', " "), proof.as_ref().map_or("FAILS", String::as_str));
        if !crate::claims::report(claim, proof) {
            println!("{held} of {} claims hold", CLAIMS.len());
            return false;
        }
    }
    println!("{} claims about the mission hold", CLAIMS.len());
    true
}

fn available(scene: &Scene<'_>) -> Proof {
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

fn runs(scene: &Scene<'_>) -> Proof {
    let watch = Stopwatch::start();
    scene.while_machines_live(|| {
        install::cluster(scene)?;
        running(scene.world, 3)?;
        settled(scene)
    })?;
    let took = watch.elapsed();
    let nodes = judge::nodes(scene)?;
    let addresses = list(scene.world, NAMESPACE, "ipclaims.ipam.metal3.io")?.len();
    ensure!(addresses == 2, "{addresses} claims on the workers' pool");
    Ok(format!("{nodes} Nodes after {:.1} s, 2 addresses", took.as_secs_f64()))
}

/// Waits until the cluster, its control plane, its workers and every Machine are available, and clusterctl says so.
fn settled(scene: &Scene<'_>) -> anyhow::Result<()> {
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
    Ok(())
}

fn written(scene: &Scene<'_>) -> Proof {
    let (taken, free) = judge::metal(scene)?;
    ensure!(taken == 3, "{taken} hosts have a consumer");
    Ok(format!("{taken} hosts, and {free} hold nothing"))
}

fn scaled(scene: &Scene<'_>) -> Proof {
    let world = scene.world;
    let scale = |replicas: &str| {
        let words = [
            "--namespace",
            NAMESPACE,
            "scale",
            "machinedeployment",
            CLUSTER,
            replicas,
        ];
        world.kubectl(&words).map(drop)
    };
    let mut took = Vec::new();
    let killed = scene.while_machines_live(|| {
        let watch = Stopwatch::start();
        scale("--replicas=3")?;
        let killed = kill_leader(world)?;
        running(world, 4)?;
        settled(scene)?;
        took.push(watch.elapsed().as_secs_f64());
        let (taken, _) = judge::metal(scene)?;
        ensure!(taken == 4 && judge::nodes(scene)? == 4, "{taken} hosts have a consumer");
        let watch = Stopwatch::start();
        scale("--replicas=1")?;
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
    Ok(format!("2 -> 3 -> 1 in {}, {killed} killed", took.join(" and ")))
}

fn deleted(scene: &Scene<'_>) -> Proof {
    let watch = Stopwatch::start();
    let words = ["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"];
    scene.while_machines_live(|| {
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
    Ok(format!("{free} hosts are available again after {took:.1} s"))
}
