//! A roll with node reuse on the real Ironic: each worker gets a host of its set back, with the content of its disk for data.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::cluster::LONG;
use super::env::TestEnv;
use super::workers::{at_rest, hosts, scale_to, until_replaced, workers};
use super::{checks, install, rolls};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::name;
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::kill_leader;
use crate::wait::{Stopwatch, until};

const WORKERS: usize = 2;
/// The workers, and one control plane machine.
const ALL: usize = WORKERS + 1;

/// The content of the disk for data, by host.
type Data = BTreeMap<String, Vec<u8>>;

pub(super) fn rolled(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    env.while_simulated(|| scale_to(env, WORKERS))?;
    for host in hosts(stack)?.iter().map(name) {
        let text = format!("data of {host}");
        env.fleet.write_data(stack, install::machine(&host)?, &text)?;
    }
    let before = data(env)?;
    ensure!(before.len() == WORKERS, "{} hosts of workers", before.len());
    change(stack, true, "disabled")?;
    env.while_simulated(|| modes(stack, "disabled"))?;
    let watch = Stopwatch::start();
    let killed = env.while_simulated(|| roll(env))?;
    let took = watch.elapsed().as_secs_f64();
    let after = data(env)?;
    ensure!(after == before, "the disks were {before:?}, and are {after:?}");
    let (taken, nodes) = (checks::hosts(env)?.0, checks::nodes(env)?);
    ensure!((taken, nodes) == (ALL, ALL), "{taken} hosts taken, {nodes} Nodes");
    // Later claims expect hosts to be blank when they are free.
    change(stack, false, "metadata")?;
    env.while_simulated(|| modes(stack, "metadata"))?;
    Ok(format!(
        "{WORKERS} hosts after {took:.1} s, {} killed",
        killed.join(" and ")
    ))
}

/// Replaces all workers, and kills the leader at the begin and when the first is new.
fn roll(env: &TestEnv<'_>) -> anyhow::Result<Vec<String>> {
    let stack = env.stack;
    let before: Vec<String> = workers(stack)?.iter().map(name).collect();
    let image = env.fleet.other_image(&rolls::ordered_images(stack)?)?;
    let template = rolls::another_template(stack, "reuse", image)?;
    rolls::order(stack, &template, json!({"maxSurge": 0, "maxUnavailable": 1}))?;
    let mut killed = vec![kill_leader(stack)?];
    until_replaced(stack, &before, WORKERS, |workers| {
        if killed.len() == 1 && workers.iter().any(|one| !before.contains(&name(one))) {
            killed.push(kill_leader(stack)?);
        }
        Ok(())
    })?;
    at_rest(env, ALL)?;
    Ok(killed)
}

/// Changes the template of the workers in place.
fn change(stack: &Stack, reuses: bool, mode: &str) -> anyhow::Result<()> {
    let patch = json!({"spec": {"nodeReuse": reuses, "template": {"spec": {"automatedCleaningMode": mode}}}});
    let template = format!("metal3machinetemplate/{}", rolls::template(stack)?);
    let (target, patch) = (["--namespace", NAMESPACE, "patch", &template], patch.to_string());
    let how = ["--type=merge", "--patch", &patch];
    stack.kubectl(&[&target[..], &how].concat()).map(drop)
}

/// Waits until each host of a worker has the mode of its template.
fn modes(stack: &Stack, mode: &str) -> anyhow::Result<()> {
    until(LONG, "the cleaning mode of the hosts", || {
        let hosts = hosts(stack)?;
        let has_mode = |host: &Value| host["spec"]["automatedCleaningMode"] == mode;
        Ok(hosts.iter().all(has_mode).then_some(()))
    })
}

fn data(env: &TestEnv<'_>) -> anyhow::Result<Data> {
    let read = |host: String| {
        let found = env.fleet.data(env.stack, install::machine(&host)?)?;
        let content = found.with_context(|| format!("the disk for data of {host} is blank"))?;
        Ok((host, content))
    };
    hosts(env.stack)?.iter().map(name).map(read).collect()
}
