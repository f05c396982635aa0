//! A Cluster whose infrastructure is of another provider's kind, and machines on bare metal in it.

mod killed;
pub(super) mod provider;

use std::collections::BTreeSet;

use anyhow::ensure;

use super::fleet::MACHINES;
use super::life::{LONG, settled};
use super::{Scene, audit, install, judge, moved};
use crate::claims::world::World;
use crate::products::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, gone, nothing_is_left, running};
use crate::products::machines::metal::beside;
use crate::products::machines::scene::CLUSTER;
use crate::wait::{Stopwatch, until};
use killed::Killed;

/// From its making to its end, with a move to another management cluster and back on the way.
pub(super) fn lives(scene: &Scene<'_>) -> Proof {
    let world = scene.world;
    let before = secrets(world)?;
    let target = moved::second(scene)?;
    for world in [world, target.world] {
        provider::install(world)?;
    }
    let came = comes(scene)?;
    let there = moves(scene, &target, world)?;
    let back = moves(&target, scene, world)?;
    audit::nothing_was_forbidden(target.world)?;
    let went = goes(scene)?;
    until(LONG, "the Secrets that were made to go", || {
        Ok((secrets(world)?.is_subset(&before)).then_some(()))
    })?;
    Ok(format!("{came}; there: {there}; back: {back}; {went}"))
}

fn comes(scene: &Scene<'_>) -> Proof {
    let watch = Stopwatch::start();
    let look = || {
        scene.boots().look()?;
        provider::look(scene.world)
    };
    let nodes = beside("the metal", look, || {
        install::cluster_with(scene, provider::elsewhere)?;
        running(scene.world, 3)?;
        settled(scene)?;
        let (taken, free) = judge::metal(scene)?;
        ensure!((taken, free) == (3, MACHINES - 3), "{taken} hosts taken, {free} free");
        provider::is_secondary(scene.world)?;
        judge::nodes(scene)
    })?;
    Ok(format!("{nodes} Nodes after {:.1} s", watch.elapsed().as_secs_f64()))
}

/// Of each manager one replica is killed at each phase, on both sides, of which one is near.
fn moves(from: &Scene<'_>, to: &Scene<'_>, near: &World) -> Proof {
    let mut killed = Killed::begin(from.world, to.world, near)?;
    let look = || {
        from.boots().look()?;
        killed.look()?;
        provider::look(to.world)
    };
    let figures = moved::moves_beside(from, to, look)?;
    provider::is_secondary(to.world)?;
    Ok(format!("{figures}, killed {}", killed.ended()?))
}

fn goes(scene: &Scene<'_>) -> Proof {
    let (world, watch) = (scene.world, Stopwatch::start());
    scene.while_machines_live(|| {
        world.kubectl(&["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"])?;
        gone(world, &format!("clusters,machines,{}", provider::RESOURCE))?;
        freed(world, MACHINES)
    })?;
    nothing_is_left(world)?;
    let (taken, free) = judge::metal(scene)?;
    ensure!((taken, free) == (0, MACHINES), "{taken} hosts taken, {free} free");
    Ok(format!("nothing left after {:.1} s", watch.elapsed().as_secs_f64()))
}

fn secrets(world: &World) -> anyhow::Result<BTreeSet<String>> {
    Ok(list(world, NAMESPACE, "secrets")?.iter().map(name).collect())
}
