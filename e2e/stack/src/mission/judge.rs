//! What is on the metal, held against what the API objects ordered: disks, config-drives, Nodes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{Scene, install};
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::matched;

/// Every host that somebody has holds the image and its config-drive, byte by byte; every other one holds nothing, and
/// Ironic waits for an order. How many of each.
pub(super) fn metal(scene: &Scene<'_>) -> anyhow::Result<(usize, usize)> {
    let (mut taken, mut free) = (0, 0);
    let nodes = nodes_of_ironic(scene)?;
    let machines = scene.fleet.look(scene.world)?;
    for host in list(scene.world, NAMESPACE, "baremetalhosts")? {
        let own = name(&host);
        let number = install::machine(&own)?;
        let machine = machines.iter().find(|machine| machine["number"] == number);
        let machine = machine.with_context(|| format!("no machine of {own}"))?;
        let state = nodes
            .get(&format!("{NAMESPACE}~{own}"))
            .map_or("absent", String::as_str);
        if host["spec"]["consumerRef"].is_null() {
            free += 1;
            // It is cleaned when it is first used.
            ensure!(
                ["manageable", "available"].contains(&state),
                "{own}: Ironic has it {state}"
            );
            blank(machine).with_context(|| own)?;
        } else {
            taken += 1;
            ensure!(state == "active", "{own}: Ironic has it {state}");
            written(scene, &host, number).with_context(|| own)?;
        }
    }
    Ok((taken, free))
}

fn nodes_of_ironic(scene: &Scene<'_>) -> anyhow::Result<BTreeMap<String, String>> {
    let text = |node: &Value, member: &str| node[member].as_str().unwrap_or_default().to_owned();
    let nodes = scene.fleet.nodes(scene.world)?;
    Ok(nodes
        .iter()
        .map(|node| (text(node, "name"), text(node, "provision_state")))
        .collect())
}

fn blank(machine: &Value) -> anyhow::Result<()> {
    let disks = machine["disks"].as_array().context("no disks")?;
    let is_blank = |disk: &Value| disk["written"].is_null() && disk["config_drive"].is_null();
    ensure!(disks.iter().all(is_blank), "something is left: {disks:?}");
    Ok(())
}

fn written(scene: &Scene<'_>, host: &Value, number: u64) -> anyhow::Result<()> {
    let (world, fleet) = (scene.world, scene.fleet);
    let disk = fleet.disk(world, number)?.context("its disk is blank")?;
    let image = host["spec"]["image"]["url"]
        .as_str()
        .context("it was ordered no image")?;
    ensure!(
        disk == fleet.image(image)?,
        "its disk holds {} bytes that are not the image's",
        disk.len()
    );
    let file = |file: &str| {
        let found = fleet.drive(world, number, file)?;
        found.with_context(|| format!("no {file} on its config-drive"))
    };
    let ordered = secret(scene, &host["spec"]["userData"], "value")?;
    ensure!(
        file("user_data")? == ordered.as_bytes(),
        "user_data is not what was ordered"
    );
    let found: Value = serde_json::from_slice(&file("meta_data.json")?)?;
    let ordered = meta_data(scene, host)?;
    ensure!(found == ordered, "meta_data.json is {found}, ordered was {ordered}");
    Ok(())
}

/// What a host says of itself, and what its machine ordered in the place of it.
fn meta_data(scene: &Scene<'_>, host: &Value) -> anyhow::Result<Value> {
    let own = name(host);
    // A host that moved has another UID than the one its machine was told.
    let former = &host["metadata"]["annotations"]["baremetalhost.metal3.io/former-instance"];
    let uid = if former.is_null() {
        &host["metadata"]["uid"]
    } else {
        former
    };
    let mut all = json!({"uuid": uid, "metal3-namespace": NAMESPACE, "metal3-name": own,
        "name": own, "local-hostname": own, "local_hostname": own});
    let text = secret(scene, &host["spec"]["metaData"], "metaData")?;
    let ordered: BTreeMap<String, Value> = serde_saphyr::from_str(&text).context("the metadata are no YAML")?;
    for (key, value) in ordered {
        all[key] = value;
    }
    Ok(all)
}

fn secret(scene: &Scene<'_>, reference: &Value, key: &str) -> anyhow::Result<String> {
    let secret = reference["name"].as_str().context("it was ordered no such data")?;
    let template = format!("--template={{{{index .data \"{key}\" | base64decode}}}}");
    scene
        .world
        .kubectl(&["--namespace", NAMESPACE, "get", "secret", secret, &template])
}

/// The Nodes of the workload cluster are those of the machines, each with the ID of its machine and host, and are the
/// ones that the machines registered which are up.
pub(super) fn nodes(scene: &Scene<'_>) -> anyhow::Result<usize> {
    let hosts = list(scene.world, NAMESPACE, "baremetalhosts")?;
    let mut wanted = BTreeMap::new();
    for machine in list(scene.world, NAMESPACE, "metal3machines")? {
        wanted.insert(name(&machine), matched(scene.world, &machine, &hosts)?);
    }
    let boots = scene.boots();
    let text = boots
        .workload()?
        .kubectl(scene.world, &["get", "nodes", "--output=json"], None)?;
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
    let (up, wanted): (BTreeSet<_>, BTreeSet<_>) = (boots.nodes().into_iter().collect(), wanted.into_keys().collect());
    ensure!(up == wanted, "{up:?} are up, machines are {wanted:?}");
    Ok(up.len())
}
