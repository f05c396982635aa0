//! Hosts that must not notice what happens to the program.

use anyhow::ensure;
use serde_json::{Value, json};

use super::Charts;
use crate::claim::Proof;
use crate::helm::NAMESPACE as MANAGERS;
use crate::lifecycle::cluster::LONG;
use crate::lifecycle::{install, upgrade};
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::wait::{Stopwatch, until};

/// One that is provisioned, and one that stays free.
pub(super) const MACHINES: usize = 2;

/// Creates a host for each machine, and gives the first an image.
pub(super) fn provisioned(charts: &Charts<'_>) -> Proof {
    let watch = Stopwatch::start();
    charts.stack.create_namespace(NAMESPACE)?.keep();
    // The API server builds its OpenAPI documents again for new definitions, and kubectl reads them before it creates.
    charts.stack.kubectl(&["get", "--raw", "/openapi/v2"])?;
    for (number, machine) in charts.fleet.machines.iter().enumerate() {
        let [login, mut host] = install::of_machine(charts.fleet, machine)?;
        if number == 0 {
            let url = charts.fleet.image_url()?;
            host["spec"]["image"] = json!({
                "url": url, "checksum": format!("{url}.sha256"), "checksumType": "sha256", "format": "raw",
            });
        }
        install::create(charts.stack, NAMESPACE, &[login, host])?;
    }
    until(LONG, "one provisioned and one free host", || {
        Ok((states(charts)? == ["available", "provisioned"]).then_some(()))
    })?;
    Ok(format!("{:.1} s", watch.elapsed().as_secs_f64()))
}

fn states(charts: &Charts<'_>) -> anyhow::Result<Vec<String>> {
    let hosts = list(charts.stack, NAMESPACE, "baremetalhosts")?;
    let state = |host: &Value| host["status"]["provisioning"]["state"].as_str().map(str::to_owned);
    let mut states: Vec<String> = hosts.iter().filter_map(state).collect();
    states.sort();
    Ok(states)
}

/// Does the work; afterwards another process leads and has read all nodes, and nothing is different.
pub(super) fn untouched(charts: &Charts<'_>, work: impl FnOnce() -> anyhow::Result<()>) -> Proof {
    upgrade::logins_recorded(charts.stack)?;
    let holder = leader(charts)?;
    unchanged(charts, || {
        work()?;
        until(LONG, "another process to lead", || {
            let now = leader(charts)?;
            Ok((now.is_some() && now != holder).then_some(()))
        })?;
        upgrade::nodes_listed(charts.fleet)
    })
}

/// Does the work; afterwards hosts, Ironic's nodes and disks are as before, and Ironic received no change.
pub(super) fn unchanged(charts: &Charts<'_>, work: impl FnOnce() -> anyhow::Result<()>) -> Proof {
    let (watch, mark) = (Stopwatch::start(), charts.fleet.mark()?);
    let (before, written) = (upgrade::ordered(charts.stack)?, charts.fleet.written(charts.stack)?);
    work()?;
    let by_login = upgrade::unchanged_since(charts.fleet, mark)?;
    let after = upgrade::ordered(charts.stack)?;
    ensure!(before == after, "hosts were {before:?}, are {after:?}");
    ensure!(charts.fleet.written(charts.stack)? == written, "a disk was written");
    Ok(format!(
        "{} hosts, 0 of {by_login} requests to Ironic were changes, {:.1} s",
        before.len(),
        watch.elapsed().as_secs_f64()
    ))
}

/// The process that leads the hosts; `None` without the lease.
fn leader(charts: &Charts<'_>) -> anyhow::Result<Option<String>> {
    let leases = list(charts.stack, MANAGERS, "leases")?;
    let of_hosts = leases.iter().find(|lease| name(lease) == "baremetal-operator");
    let Some(lease) = of_hosts else { return Ok(None) };
    // A process that ends releases it.
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    Ok((!holder.is_empty()).then(|| holder.to_owned()))
}
