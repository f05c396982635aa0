//! Workers are replaced by those of another template, whose image is another one.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::fleet::MACHINES;
use super::life::{LONG, scale, settled};
use super::{Scene, judge};
use crate::claims::world::{World, condition};
use crate::products::Proof;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::products::machines::scene::CLUSTER;
use crate::wait::{Stopwatch, until};

const WORKERS: usize = 2;
/// The workers, and one control plane machine.
const ALL: usize = WORKERS + 1;

/// How many workers there were while they were replaced, those that go left out.
struct Roll {
    fewest_available: usize,
    most: usize,
    seconds: f64,
}

pub(super) fn with_one_more(scene: &Scene<'_>) -> Proof {
    scene.while_machines_live(|| {
        scale(scene.world, WORKERS)?;
        running(scene.world, ALL)?;
        settled(scene)
    })?;
    let roll = rolled(scene, "first", json!({"maxSurge": 1, "maxUnavailable": 0}))?;
    ensure!(
        (roll.fewest_available, roll.most) == (WORKERS, WORKERS + 1),
        "at least {} workers were available, there were at most {}",
        roll.fewest_available,
        roll.most
    );
    Ok(format!("{WORKERS} available throughout, {:.1} s", roll.seconds))
}

pub(super) fn with_one_less(scene: &Scene<'_>) -> Proof {
    let roll = rolled(scene, "second", json!({"maxSurge": 0, "maxUnavailable": 1}))?;
    ensure!(
        (roll.fewest_available, roll.most) == (WORKERS - 1, WORKERS),
        "at least {} workers were available, there were at most {}",
        roll.fewest_available,
        roll.most
    );
    Ok(format!(
        "{} available throughout and never more than {WORKERS}, {:.1} s",
        WORKERS - 1,
        roll.seconds
    ))
}

/// Gives the workers another template, and follows them until none is left of those before. All that is on the metal is
/// as ordered then, and every host that was left is free and blank.
fn rolled(scene: &Scene<'_>, template: &str, pace: Value) -> anyhow::Result<Roll> {
    let world = scene.world;
    let before: BTreeSet<String> = workers(world)?.iter().map(name).collect();
    ensure!(before.len() == WORKERS, "there are {} workers", before.len());
    let image = scene.fleet.other_image(&ordered_images(world)?)?;
    let template = another_template(world, template, image)?;
    let watch = Stopwatch::start();
    let (mut fewest_available, mut most) = (WORKERS, WORKERS);
    scene.while_machines_live(|| {
        order(world, &template, pace)?;
        until(LONG, "new workers in the place of all", || {
            let workers = workers(world)?;
            let staying = |one: &&Value| one["metadata"]["deletionTimestamp"].is_null();
            let available = |one: &&Value| staying(one) && condition(one, "Available") == Some("True");
            fewest_available = fewest_available.min(workers.iter().filter(available).count());
            most = most.max(workers.iter().filter(staying).count());
            let is_new = workers.iter().all(|one| !before.contains(&name(one)));
            Ok((is_new && workers.iter().filter(available).count() == WORKERS).then_some(()))
        })?;
        running(world, ALL)?;
        freed(world, MACHINES - ALL)?;
        settled(scene)
    })?;
    let images = ordered_images(world)?;
    ensure!(
        images.len() == WORKERS && images.iter().all(|one| one == image),
        "workers run {images:?}, ordered was {image}"
    );
    let (taken, free) = judge::metal(scene)?;
    let nodes = judge::nodes(scene)?;
    ensure!(
        (taken, free, nodes) == (ALL, MACHINES - ALL, ALL),
        "{taken} hosts taken, {free} free, {nodes} Nodes"
    );
    Ok(Roll {
        fewest_available,
        most,
        seconds: watch.elapsed().as_secs_f64(),
    })
}

fn workers(world: &World) -> anyhow::Result<Vec<Value>> {
    let of_workers = |one: &Value| one["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] == CLUSTER;
    Ok(list(world, NAMESPACE, "machines")?
        .into_iter()
        .filter(of_workers)
        .collect())
}

/// Where the hosts of the workers were told to fetch what they run.
fn ordered_images(world: &World) -> anyhow::Result<Vec<String>> {
    let workers: BTreeSet<String> = workers(world)?.iter().map(name).collect();
    let hosts = list(world, NAMESPACE, "baremetalhosts")?;
    let of_workers = hosts.iter().filter(|host| {
        let consumer = host["spec"]["consumerRef"]["name"].as_str();
        consumer.is_some_and(|consumer| workers.contains(consumer))
    });
    let image = |host: &Value| host["spec"]["image"]["url"].as_str().unwrap_or_default().to_owned();
    Ok(of_workers.map(image).collect())
}

/// The template of the workers with another image; its name.
fn another_template(world: &World, name: &str, image: &str) -> anyhow::Result<String> {
    let now = format!("metal3machinetemplate/{CLUSTER}-workers");
    let text = world.kubectl(&["--namespace", NAMESPACE, "get", &now, "--output=json"])?;
    let mut template: Value = serde_json::from_str(&text)?;
    let name = format!("{CLUSTER}-workers-{name}");
    template["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    let told = &mut template["spec"]["template"]["spec"]["image"];
    told["url"] = image.into();
    told["checksum"] = format!("{image}.sha256").into();
    world.run("kubectl", &["create", "--filename", "-"], Some(&template.to_string()))?;
    Ok(name)
}

fn order(world: &World, template: &str, pace: Value) -> anyhow::Result<()> {
    let patch = json!({"spec": {
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": pace}},
        "template": {"spec": {"infrastructureRef": {"name": template}}},
    }});
    let words = ["--namespace", NAMESPACE, "patch", "machinedeployment", CLUSTER];
    let mut words = words.to_vec();
    let patch = patch.to_string();
    words.extend(["--type=merge", "--patch", &patch]);
    world.kubectl(&words).context("ordering other workers").map(drop)
}
