//! Three zones with a network each, and the loss of one.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::super::checks;
use super::super::cluster::{LONG, settled};
use super::super::env::TestEnv;
use super::super::fleet::MACHINES;
use super::super::install;
use super::class::{self, ZONES, Zone, zone_of};
use crate::claim::Proof;
use crate::claims::stack::{Stack, condition};
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, running};
use crate::wait::{Stopwatch, until};

/// Three control plane machines and a worker.
pub(super) const ALL: usize = 4;
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
const UNHEALTHY: &str = "capi.metal3.io/unhealthy";
const DETACHED: &str = "baremetalhost.metal3.io/detached={\"deleteAction\":\"delete\"}";
/// How long the others are watched while a machine waits.
const WATCHED: Duration = Duration::from_secs(30);

/// A machine with its host.
struct Placed {
    zone: &'static Zone,
    host: String,
    /// The failure domain that Cluster API chose.
    wanted: Option<String>,
    controls: bool,
    machine: String,
    node: String,
}

pub(in super::super) fn spread(env: &TestEnv<'_>) -> Proof {
    class::place_hosts(env)?;
    let watch = Stopwatch::start();
    env.while_simulated(|| {
        class::apply(env)?;
        running(env.stack, ALL)?;
        settled(env)
    })?;
    let took = watch.elapsed().as_secs_f64();
    let (taken, nodes) = (checks::hosts(env)?.0, checks::nodes(env)?);
    ensure!((taken, nodes) == (ALL, ALL), "{taken} hosts taken, {nodes} Nodes");
    let placed = placed(env)?;
    for zone in &ZONES {
        let controls = placed.iter().filter(|one| one.controls && one.zone.name == zone.name);
        let controls = controls.count();
        ensure!(controls == 1, "{controls} control plane machines in zone {}", zone.name);
    }
    ensure!(
        placed.iter().all(|one| one.wanted.as_deref() == Some(one.zone.name)),
        "a machine is outside of its zone"
    );
    Ok(format!(
        "{nodes} Nodes after {took:.1} s, addresses: {}",
        by_zone(&placed)
    ))
}

fn by_zone(placed: &[Placed]) -> String {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for one in placed {
        *count.entry(one.zone.network).or_default() += 1;
    }
    let texts = count
        .iter()
        .map(|(network, count)| format!("{count} of {network}.0.0/16"));
    texts.collect::<Vec<_>>().join(", ")
}

/// All machines. Each has an address of the pool of the zone of its host, in the API and on its config-drive, and its status
/// names this zone.
fn placed(env: &TestEnv<'_>) -> anyhow::Result<Vec<Placed>> {
    let stack = env.stack;
    let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
    let owners = list(stack, NAMESPACE, "machines")?;
    let machines = list(stack, NAMESPACE, "metal3machines")?;
    let addresses = list(stack, NAMESPACE, "ipaddresses.ipam.metal3.io")?;
    ensure!(
        addresses.len() == machines.len(),
        "{} addresses of {} machines",
        addresses.len(),
        machines.len()
    );
    let find = |machine: &Value| {
        let own = name(machine);
        let host = hosts
            .iter()
            .find(|host| host["spec"]["consumerRef"]["name"] == own.as_str());
        let host = host.with_context(|| format!("{own} has no host"))?;
        let zone = zone_of(host)?;
        ensure!(
            machine["status"]["failureDomain"] == zone.name,
            "{own} is in zone {}, its status says {}",
            zone.name,
            machine["status"]["failureDomain"]
        );
        let data = env
            .fleet
            .drive(stack, install::machine(&name(host))?, "meta_data.json")?;
        let data: Value = serde_json::from_slice(&data.with_context(|| format!("{own} has no config-drive"))?)?;
        let address = data["address"].as_str().unwrap_or_default();
        ensure!(
            address.starts_with(&format!("{}.", zone.network)),
            "{own} is in zone {} and has the address {address:?}",
            zone.name
        );
        let is_granted = |one: &Value| {
            one["spec"]["address"] == address && one["spec"]["pool"]["name"] == zone.network_name().as_str()
        };
        ensure!(
            addresses.iter().any(is_granted),
            "{address} is not granted by {}",
            zone.network_name()
        );
        let owner = owners
            .iter()
            .find(|owner| owner["spec"]["infrastructureRef"]["name"] == own.as_str());
        let owner = owner.with_context(|| format!("{own} has no Machine"))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Placed {
            zone,
            host: name(host),
            wanted: text(&owner["spec"]["failureDomain"]),
            controls: owner["metadata"]["labels"].get(CONTROL_PLANE).is_some(),
            machine: name(owner),
            node: text(&owner["status"]["nodeRef"]["name"]).unwrap_or_default(),
        })
    };
    machines.iter().map(find).collect()
}

pub(in super::super) fn lost(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let [.., last] = &ZONES;
    let before = placed(env)?;
    let lost = before.iter().find(|one| one.zone.name == last.name);
    let lost = lost.with_context(|| format!("no machine in zone {}", last.name))?;
    let others: Vec<&str> = before
        .iter()
        .filter(|one| one.machine != lost.machine)
        .map(|one| one.machine.as_str())
        .collect();
    let watch = Stopwatch::start();
    lose(env, lost)?;
    let message = env.while_simulated(|| waits(stack, last.name, &others))?;
    let waits = watch.elapsed().as_secs_f64();
    env.while_simulated(|| watched(stack, &others))?;
    let watch = Stopwatch::start();
    env.while_simulated(|| {
        class::set_variables(stack, &[("zonePolicy", "Preferred".into())])?;
        running(stack, ALL)?;
        settled(env)
    })?;
    let moved = watch.elapsed().as_secs_f64();
    let after = placed(env)?;
    let new = after
        .iter()
        .find(|one| before.iter().all(|old| old.machine != one.machine));
    let new = new.context("there is no new machine")?;
    ensure!(
        new.controls && new.wanted.as_deref() == Some(last.name) && new.zone.name != last.name,
        "the new machine is for zone {:?}, in zone {}",
        new.wanted,
        new.zone.name
    );
    let figures = by_zone(&after);
    returns(env, &lost.host, last)?;
    Ok(format!(
        "waits after {waits:.1} s ({}), {} others ready; `Preferred`: in zone {} after {moved:.1} s, addresses: {figures}",
        message.split(';').next().unwrap_or_default(),
        others.len(),
        new.zone.name
    ))
}

/// The BMC of the machine is dead, its kubelet is silent, and its Machine and its host are deleted.
fn lose(env: &TestEnv<'_>, lost: &Placed) -> anyhow::Result<()> {
    let stack = env.stack;
    let number = u32::try_from(install::machine(&lost.host)?)?;
    env.fleet.break_machine(stack, number, &["dead-bmc".into()])?;
    env.simulator().hang(&lost.node, true)?;
    let host = format!("baremetalhost/{}", lost.host);
    stack.kubectl(&["--namespace", NAMESPACE, "annotate", &host, &format!("{UNHEALTHY}=")])?;
    let machine = format!("machine/{}", lost.machine);
    env.while_simulated(|| {
        stack.kubectl(&["--namespace", NAMESPACE, "delete", &machine, "--wait=false"])?;
        until(LONG, "an error of the lost host", || {
            let text = stack.kubectl(&["--namespace", NAMESPACE, "get", &host, "--output=json"])?;
            let host: Value = serde_json::from_str(&text)?;
            Ok(host["status"]["errorType"]
                .as_str()
                .filter(|text| !text.is_empty())
                .map(|_| ()))
        })?;
        // As documented for a host that is not reachable: without it, Ironic tries for a quarter of an hour.
        stack.kubectl(&["--namespace", NAMESPACE, "annotate", &host, DETACHED])?;
        stack.kubectl(&["--namespace", NAMESPACE, "delete", &host, "--timeout=300s"])
    })
    .map(drop)
}

/// Waits until a new machine waits for a host of the zone, and returns what it says. The others are ready all the time.
fn waits(stack: &Stack, zone: &str, others: &[&str]) -> anyhow::Result<String> {
    let wanted = format!("not in failure domain {zone}");
    until(LONG, "a machine that waits for the zone", || {
        if let Err(error) = are_ready(stack, others) {
            return Ok(Some(Err(error)));
        }
        let machines = list(stack, NAMESPACE, "metal3machines")?;
        let conditions = machines
            .iter()
            .filter_map(|machine| machine["status"]["conditions"].as_array());
        let mut messages = conditions.flatten().filter_map(|one| one["message"].as_str());
        Ok(messages
            .find(|message| message.contains(&wanted))
            .map(|message| Ok(message.to_owned())))
    })?
}

/// The others stay ready, and the free host stays free.
fn watched(stack: &Stack, others: &[&str]) -> anyhow::Result<()> {
    let watch = Stopwatch::start();
    let is_undisturbed = || {
        are_ready(stack, others)?;
        let hosts = list(stack, NAMESPACE, "baremetalhosts")?;
        let free = hosts
            .iter()
            .filter(|host| host["spec"]["consumerRef"].is_null())
            .count();
        ensure!(free == MACHINES - ALL, "{free} hosts are free");
        Ok(())
    };
    until(LONG, "the end of the watch", || {
        let seen = is_undisturbed();
        Ok((seen.is_err() || watch.elapsed() >= WATCHED).then_some(seen))
    })?
}

fn are_ready(stack: &Stack, others: &[&str]) -> anyhow::Result<()> {
    let machines = list(stack, NAMESPACE, "machines")?;
    let ready = machines.iter().filter(|one| condition(one, "Ready") == Some("True"));
    let ready: Vec<String> = ready.map(name).collect();
    let lacking = others.iter().find(|other| ready.iter().all(|one| one != *other));
    lacking.map_or(Ok(()), |other| anyhow::bail!("{other} is not ready"))
}

/// The zone is back: its host is created again.
fn returns(env: &TestEnv<'_>, host: &str, zone: &Zone) -> anyhow::Result<()> {
    let stack = env.stack;
    let number = install::machine(host)?;
    env.fleet.break_machine(stack, u32::try_from(number)?, &[])?;
    let machine = env.fleet.machines.iter().find(|machine| machine["number"] == number);
    let [login, mut again] = install::of_machine(env.fleet, machine.context("no such machine")?)?;
    // Its disk still holds the former system, which would join the cluster again.
    again["spec"]["online"] = false.into();
    install::apply(stack, NAMESPACE, &[login, again])?;
    class::place(stack, host, zone)?;
    // It is cleaned before its first use.
    env.while_simulated(|| freed(stack, MACHINES - ALL))?;
    let nodes = checks::nodes(env)?;
    ensure!(nodes == ALL, "{nodes} Nodes after the return of the zone");
    Ok(())
}
