//! Compares disks, config-drives and Nodes with the order in API objects.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::env::TestEnv;
use super::install;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::matched;

/// Checks that each host with a consumer holds its image and config-drive, byte for byte, and that each other host is
/// blank and idle in Ironic. Returns the number of each.
pub(super) fn hosts(env: &TestEnv<'_>) -> anyhow::Result<(usize, usize)> {
    let (mut taken, mut free) = (0, 0);
    let nodes = nodes_of_ironic(env)?;
    let machines = env.fleet.machine_states(env.stack)?;
    for host in list(env.stack, NAMESPACE, "baremetalhosts")? {
        let own = name(&host);
        let number = install::machine(&own)?;
        let machine = machines.iter().find(|machine| machine["number"] == number);
        let machine = machine.with_context(|| format!("no machine of {own}"))?;
        let state = nodes
            .get(&format!("{NAMESPACE}~{own}"))
            .map_or("absent", String::as_str);
        if host["spec"]["consumerRef"].is_null() {
            free += 1;
            // It is cleaned before its first use.
            ensure!(
                ["manageable", "available"].contains(&state),
                "{own}: its node is {state}"
            );
            blank(machine).with_context(|| own)?;
        } else {
            taken += 1;
            ensure!(state == "active", "{own}: its node is {state}");
            written(env, &host, number).with_context(|| own)?;
        }
    }
    Ok((taken, free))
}

fn nodes_of_ironic(env: &TestEnv<'_>) -> anyhow::Result<BTreeMap<String, String>> {
    let text = |node: &Value, member: &str| node[member].as_str().unwrap_or_default().to_owned();
    let nodes = env.fleet.nodes(env.stack)?;
    Ok(nodes
        .iter()
        .map(|node| (text(node, "name"), text(node, "provision_state")))
        .collect())
}

fn blank(machine: &Value) -> anyhow::Result<()> {
    let disks = machine["disks"].as_array().context("no disks")?;
    let is_blank = |disk: &Value| disk["written"].is_null() && disk["config_drive"].is_null();
    ensure!(disks.iter().all(is_blank), "the disks are not blank: {disks:?}");
    Ok(())
}

fn written(env: &TestEnv<'_>, host: &Value, number: u64) -> anyhow::Result<()> {
    let (stack, fleet) = (env.stack, env.fleet);
    let disk = fleet.disk(stack, number)?.context("its disk is blank")?;
    let image = host["spec"]["image"]["url"].as_str().context("the host has no image")?;
    ensure!(
        disk == fleet.image(image)?,
        "its disk holds {} bytes that are not the image's",
        disk.len()
    );
    let file = |file: &str| {
        let found = fleet.drive(stack, number, file)?;
        found.with_context(|| format!("no {file} on its config-drive"))
    };
    let ordered = secret(env, &host["spec"]["userData"], "value")?;
    ensure!(
        file("user_data")? == ordered.as_bytes(),
        "user_data differs from the order"
    );
    let found: Value = serde_json::from_slice(&file("meta_data.json")?)?;
    let ordered = meta_data(env, host)?;
    ensure!(found == ordered, "meta_data.json is {found}, expected {ordered}");
    Ok(())
}

/// The metadata of a host, overridden by those of its machine.
fn meta_data(env: &TestEnv<'_>, host: &Value) -> anyhow::Result<Value> {
    let own = name(host);
    // The instance UUID of a moved host is the UID it had before the move.
    let former = &host["metadata"]["annotations"]["baremetalhost.metal3.io/former-instance"];
    let uid = if former.is_null() {
        &host["metadata"]["uid"]
    } else {
        former
    };
    let mut all = json!({"uuid": uid, "metal3-namespace": NAMESPACE, "metal3-name": own,
        "name": own, "local-hostname": own, "local_hostname": own});
    let text = secret(env, &host["spec"]["metaData"], "metaData")?;
    let ordered: BTreeMap<String, Value> = serde_saphyr::from_str(&text).context("the metadata are not YAML")?;
    for (key, value) in ordered {
        all[key] = value;
    }
    Ok(all)
}

fn secret(env: &TestEnv<'_>, reference: &Value, key: &str) -> anyhow::Result<String> {
    let secret = reference["name"].as_str().context("the host has no such Secret")?;
    let template = format!("--template={{{{index .data \"{key}\" | base64decode}}}}");
    env.stack
        .kubectl(&["--namespace", NAMESPACE, "get", "secret", secret, &template])
}

/// Checks that the Nodes of the workload cluster are those of the Metal3Machines, each with the provider ID of its machine
/// and host, and those of the running machines.
pub(super) fn nodes(env: &TestEnv<'_>) -> anyhow::Result<usize> {
    let hosts = list(env.stack, NAMESPACE, "baremetalhosts")?;
    let mut wanted = BTreeMap::new();
    for machine in list(env.stack, NAMESPACE, "metal3machines")? {
        wanted.insert(name(&machine), matched(env.stack, &machine, &hosts)?);
    }
    let simulator = env.simulator();
    let text = simulator
        .workload()?
        .kubectl(env.stack, &["get", "nodes", "--output=json"], None)?;
    let mut found = BTreeMap::new();
    let nodes: Value = serde_json::from_str(&text)?;
    for node in nodes["items"].as_array().into_iter().flatten() {
        let id = node["spec"]["providerID"].as_str().unwrap_or_default();
        found.insert(name(node), id.to_owned());
    }
    ensure!(
        found == wanted,
        "Nodes and their IDs are {found:?}, machines' are {wanted:?}"
    );
    let (up, wanted): (BTreeSet<_>, BTreeSet<_>) =
        (simulator.nodes().into_iter().collect(), wanted.into_keys().collect());
    ensure!(up == wanted, "{up:?} are up, machines are {wanted:?}");
    Ok(up.len())
}
