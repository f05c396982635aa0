//! Rolls workers to a template with another image.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::checks;
use super::env::TestEnv;
use super::fleet::MACHINES;
use super::workers::{at_rest, available, hosts, scale_to, staying, until_replaced, workers};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::name;
use crate::products::machines::NAMESPACE;
use crate::products::machines::template::CLUSTER;
use crate::wait::Stopwatch;

const WORKERS: usize = 2;
/// The workers, and one control plane machine.
const ALL: usize = WORKERS + 1;

/// The numbers of workers during a roll, without those being deleted.
struct Roll {
    fewest_available: usize,
    most: usize,
    seconds: f64,
}

pub(super) fn with_one_more(env: &TestEnv<'_>) -> Proof {
    env.while_simulated(|| scale_to(env, WORKERS))?;
    let roll = rolled(env, "first", json!({"maxSurge": 1, "maxUnavailable": 0}))?;
    ensure!(
        (roll.fewest_available, roll.most) == (WORKERS, WORKERS + 1),
        "at least {} workers were available, there were at most {}",
        roll.fewest_available,
        roll.most
    );
    Ok(format!("{WORKERS} available throughout, {:.1} s", roll.seconds))
}

pub(super) fn with_one_less(env: &TestEnv<'_>) -> Proof {
    let roll = rolled(env, "second", json!({"maxSurge": 0, "maxUnavailable": 1}))?;
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

/// Changes the workers' template and waits until all are replaced. Afterwards the machines match the order, and each
/// released host is free and blank.
fn rolled(env: &TestEnv<'_>, template: &str, pace: Value) -> anyhow::Result<Roll> {
    let stack = env.stack;
    let before: Vec<String> = workers(stack)?.iter().map(name).collect();
    ensure!(before.len() == WORKERS, "there are {} workers", before.len());
    let image = env.fleet.other_image(&ordered_images(stack)?)?;
    let template = another_template(stack, template, image)?;
    let watch = Stopwatch::start();
    let (mut fewest_available, mut most) = (WORKERS, WORKERS);
    env.while_simulated(|| {
        order(stack, &template, pace)?;
        until_replaced(stack, &before, WORKERS, |workers| {
            fewest_available = fewest_available.min(available(workers));
            most = most.max(staying(workers));
            Ok(())
        })?;
        at_rest(env, ALL)
    })?;
    let images = ordered_images(stack)?;
    ensure!(
        images.len() == WORKERS && images.iter().all(|one| one == image),
        "workers run {images:?}, expected {image}"
    );
    let (taken, free) = checks::hosts(env)?;
    let nodes = checks::nodes(env)?;
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

/// The images in the specs of the workers' hosts.
pub(super) fn ordered_images(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let image = |host: &Value| host["spec"]["image"]["url"].as_str().unwrap_or_default().to_owned();
    Ok(hosts(stack)?.iter().map(image).collect())
}

/// The name of the workers' template.
pub(super) fn template(stack: &Stack) -> anyhow::Result<String> {
    let path = "--output=jsonpath={.spec.template.spec.infrastructureRef.name}";
    stack.kubectl(&["--namespace", NAMESPACE, "get", "machinedeployment", CLUSTER, path])
}

/// Creates a copy of the workers' template with another image; returns its name.
pub(super) fn another_template(stack: &Stack, name: &str, image: &str) -> anyhow::Result<String> {
    let now = format!("metal3machinetemplate/{}", template(stack)?);
    let text = stack.kubectl(&["--namespace", NAMESPACE, "get", &now, "--output=json"])?;
    let mut template: Value = serde_json::from_str(&text)?;
    let name = format!("{CLUSTER}-workers-{name}");
    template["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    let image_spec = &mut template["spec"]["template"]["spec"]["image"];
    image_spec["url"] = image.into();
    image_spec["checksum"] = format!("{image}.sha256").into();
    stack.run("kubectl", &["create", "--filename", "-"], Some(&template.to_string()))?;
    Ok(name)
}

pub(super) fn order(stack: &Stack, template: &str, pace: Value) -> anyhow::Result<()> {
    let patch = json!({"spec": {
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": pace}},
        "template": {"spec": {"infrastructureRef": {"name": template}}},
    }});
    let args = ["--namespace", NAMESPACE, "patch", "machinedeployment", CLUSTER];
    let mut args = args.to_vec();
    let patch = patch.to_string();
    args.extend(["--type=merge", "--patch", &patch]);
    stack.kubectl(&args).context("changing the workers").map(drop)
}
