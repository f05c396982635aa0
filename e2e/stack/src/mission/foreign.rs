//! A Cluster whose infrastructure is of another provider's kind, and machines on bare metal in it.
//!
//! That provider is a few lines here: it says the endpoint and that all is provisioned, once the Cluster owns its object.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::fleet::MACHINES;
use super::install::{self, ENDPOINT, PORT};
use super::life::settled;
use super::{Scene, judge};
use crate::claims::providers;
use crate::claims::world::World;
use crate::products::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, gone, nothing_is_left, running};
use crate::products::machines::metal::beside;
use crate::products::machines::scene::CLUSTER;
use crate::wait::{Stopwatch, until};

const KIND: &str = "WitnessCluster";
const RESOURCE: &str = "witnessclusters.infrastructure.cluster.x-k8s.io";

/// From its making to its end.
pub(super) fn lives(scene: &Scene<'_>) -> Proof {
    let world = scene.world;
    let before = secrets(world)?;
    install_kind(world)?;
    let watch = Stopwatch::start();
    let look = || {
        scene.boots().look()?;
        say_what_is(world)
    };
    let nodes = beside("the metal", look, || {
        install::cluster_with(scene, elsewhere)?;
        running(world, 3)?;
        settled(scene)?;
        let (taken, free) = judge::metal(scene)?;
        ensure!((taken, free) == (3, MACHINES - 3), "{taken} hosts taken, {free} free");
        is_secondary(world)?;
        judge::nodes(scene)
    })?;
    let joined = watch.elapsed().as_secs_f64();
    let watch = Stopwatch::start();
    scene.while_machines_live(|| {
        world.kubectl(&["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"])?;
        gone(world, &format!("clusters,machines,{RESOURCE}"))?;
        freed(world, MACHINES)
    })?;
    nothing_is_left(world)?;
    let (taken, free) = judge::metal(scene)?;
    ensure!((taken, free) == (0, MACHINES), "{taken} hosts taken, {free} free");
    until(super::life::LONG, "the Secrets that were made to go", || {
        Ok((secrets(world)?.is_subset(&before)).then_some(()))
    })?;
    let gone = watch.elapsed().as_secs_f64();
    Ok(format!(
        "{nodes} Nodes after {joined:.1} s, nothing left after {gone:.1} s"
    ))
}

fn install_kind(world: &World) -> anyhow::Result<()> {
    for object in providers::infrastructure() {
        world.run("kubectl", &["apply", "--filename", "-"], Some(&object.to_string()))?;
    }
    let kind = format!("crd/{RESOURCE}");
    world
        .kubectl(&["wait", "--for=condition=Established", &kind, "--timeout=60s"])
        .map(drop)
}

/// The Cluster's infrastructure is the other kind's; what was it joins the Cluster, and is told no endpoint.
fn elsewhere(objects: &mut Vec<Value>) -> anyhow::Result<()> {
    let of_kind = |kind: &str| {
        let at = objects.iter().position(|object| object["kind"] == kind);
        at.with_context(|| format!("the template makes no {kind}"))
    };
    let (cluster, ours) = (of_kind("Cluster")?, of_kind("Metal3Cluster")?);
    let mut other = json!({"metadata": {"name": CLUSTER, "namespace": NAMESPACE}});
    if let Some(ours) = objects.get_mut(ours) {
        other["apiVersion"] = ours["apiVersion"].clone();
        ours["metadata"]["name"] = format!("{CLUSTER}-metal3").into();
        ours["spec"] = json!({"cloudProviderEnabled": false, "clusterName": CLUSTER});
    }
    other["kind"] = KIND.into();
    if let Some(cluster) = objects.get_mut(cluster) {
        cluster["spec"]["infrastructureRef"]["kind"] = KIND.into();
    }
    objects.push(other);
    Ok(())
}

/// The other provider.
fn say_what_is(world: &World) -> anyhow::Result<()> {
    for one in list(world, NAMESPACE, RESOURCE)? {
        let is_owned = one["metadata"]["ownerReferences"][0]["kind"] == "Cluster";
        if !is_owned || one["status"]["initialization"]["provisioned"] == true {
            continue;
        }
        let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": ENDPOINT, "port": PORT}}}).to_string();
        let status = json!({"status": {"initialization": {"provisioned": true}}}).to_string();
        let own = name(&one);
        let words = [
            "--namespace",
            NAMESPACE,
            "patch",
            RESOURCE,
            &own,
            "--type=merge",
            "--patch",
        ];
        let patch = |more: &[&str]| world.kubectl(&[&words, more].concat());
        patch(&[&endpoint])?;
        patch(&[&status, "--subresource=status"])?;
    }
    Ok(())
}

/// The Metal3Cluster belongs to the Cluster, and says the endpoint that the other provider said.
fn is_secondary(world: &World) -> anyhow::Result<()> {
    let ours = list(world, NAMESPACE, "metal3clusters")?;
    let one = ours.first().context("there is no Metal3Cluster")?;
    let owner = &one["metadata"]["ownerReferences"][0];
    ensure!(
        owner["kind"] == "Cluster" && owner["name"] == CLUSTER,
        "it is owned by {owner}"
    );
    let endpoint = &one["spec"]["controlPlaneEndpoint"];
    ensure!(
        *endpoint == json!({"host": ENDPOINT, "port": PORT}),
        "it says the endpoint {endpoint}"
    );
    Ok(())
}

fn secrets(world: &World) -> anyhow::Result<BTreeSet<String>> {
    Ok(list(world, NAMESPACE, "secrets")?.iter().map(name).collect())
}
