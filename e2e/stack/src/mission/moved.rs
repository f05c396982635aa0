//! `clusterctl move` with provisioned hosts: nobody switches a machine off, writes to it or has Ironic forget it, by
//! Ironic's own count.

use std::collections::BTreeMap;

use anyhow::ensure;

use super::audit;
use super::fleet::MACHINES;
use super::life::settled;
use super::{Scene, install, judge, requests};
use crate::pki;
use crate::products::Proof;
use crate::products::machines::cluster::{freed, gone, running};
use crate::products::machines::metal::beside;
use crate::products::machines::{self, NAMESPACE};
use crate::wait::Stopwatch;

/// What an operator puts onto the kinds of hosts before a move, in both clusters: all hosts of the namespace move.
const LABELS: &[(&str, &[&str])] = &[
    (
        "crd/baremetalhosts.metal3.io",
        &[
            "clusterctl.cluster.x-k8s.io=",
            "clusterctl.cluster.x-k8s.io/move=",
            "clusterctl.cluster.x-k8s.io/move-hierarchy=",
        ],
    ),
    (
        "crd/hardwaredata.metal3.io",
        &["clusterctl.cluster.x-k8s.io=", "clusterctl.cluster.x-k8s.io/move="],
    ),
];

/// The one change of state: no power is switched for it, and no disk written.
const TAKEN_UP: (&str, &str) = ("available", "manageable");

pub(super) fn there(scene: &Scene<'_>) -> Proof {
    let watch = Stopwatch::start();
    let target = second(scene)?;
    let installed = watch.elapsed().as_secs_f64();
    Ok(format!(
        "{}; the other was installed in {installed:.1} s",
        moves(scene, &target)?
    ))
}

pub(super) fn back(scene: &Scene<'_>) -> Proof {
    let from = second(scene)?;
    let said = moves(&from, scene)?;
    audit::nothing_was_forbidden(from.world)?;
    Ok(said)
}

/// The second management cluster, with all that the first one has.
pub(super) fn second<'a>(scene: &Scene<'a>) -> anyhow::Result<Scene<'a>> {
    let target = Scene {
        world: scene.second,
        ..*scene
    };
    let managers = [
        "get",
        "namespace",
        install::HOSTS,
        "--ignore-not-found",
        "--output=name",
    ];
    if !target.world.kubectl(&managers)?.trim().is_empty() {
        return Ok(target);
    }
    install::first_manager_of_hosts(&target)?;
    machines::initialized(target.world, scene.release)?;
    for world in [scene.world, target.world] {
        for (kind, labels) in LABELS {
            world.kubectl(&[&["label", "--overwrite", kind], *labels].concat())?;
        }
    }
    Ok(target)
}

fn moves(from: &Scene<'_>, to: &Scene<'_>) -> Proof {
    moves_beside(from, to, || from.boots().look())
}

/// All that was settled in one is settled in the other, and nothing of it is left in the one. What goes on
/// beside it is the caller's, and the metal's life.
pub(super) fn moves_beside(from: &Scene<'_>, to: &Scene<'_>, look: impl FnMut() -> anyhow::Result<()> + Send) -> Proof {
    let (metal, nodes) = (judge::metal(from)?, judge::nodes(from)?);
    let (watch, mark) = (Stopwatch::start(), from.fleet.mark()?);
    let kubeconfig = to.world.places.kubeconfig(pki::ADMIN).display().to_string();
    let words = ["move", "--namespace", NAMESPACE, "--to-kubeconfig", &kubeconfig];
    beside("the metal", look, || {
        from.world.run("clusterctl", &words, None)?;
        running(to.world, nodes)?;
        freed(to.world, MACHINES - nodes)?;
        settled(to)
    })?;
    gone(from.world, "clusters,machines,metal3machines,baremetalhosts,ippools")?;
    let said = from.fleet.said_since(mark)?;
    // A free host comes without a status, and is taken up as one that Ironic knows: it is not cleaned for that.
    let others: Vec<(&str, &str)> = requests::moves(&said).filter(|states| *states != TAKEN_UP).collect();
    ensure!(others.is_empty(), "nodes changed their states: {others:?}");
    let asked: Vec<requests::Request> = requests::of(&said).collect();
    let destructive: Vec<String> = asked
        .iter()
        .filter(|one| one.is_destructive())
        .map(ToString::to_string)
        .collect();
    ensure!(destructive.is_empty(), "Ironic was ordered {destructive:?}");
    ensure!(
        judge::metal(to)? == metal && judge::nodes(to)? == nodes,
        "other hosts are taken"
    );
    let mut orders: BTreeMap<String, usize> = BTreeMap::new();
    for order in asked.iter().filter(|one| one.is_order()) {
        *orders.entry(order.to_string()).or_default() += 1;
    }
    let orders: Vec<String> = orders.iter().map(|(what, number)| format!("{number} {what}")).collect();
    let took = watch.elapsed().as_secs_f64();
    Ok(format!(
        "{nodes} machines in {took:.1} s, orders to Ironic: [{}]",
        orders.join(", ")
    ))
}
