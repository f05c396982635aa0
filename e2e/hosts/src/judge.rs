//! What a phase left behind, held against what was ordered.

use anyhow::{Context as _, ensure};
use metal3_ironic_life::compare::differences;
use metal3_ironic_life::order::sha256;
use metal3_sim_bmc::identity::Number;
use serde_json::{Value, json};

use crate::document::part;
use crate::drive;
use crate::hardware;
use crate::level::{image, inspects};
use crate::phase::Phase;
use crate::world::World;
use metal3_ironic_life::Level;

/// What each phase promises, for each level.
pub(crate) const fn promise(level: Level, phase: Phase) -> &'static str {
    match (phase, level) {
        (Phase::Enrol, Level::Redfish) => "a host that is not inspected is available and on",
        (Phase::Enrol, _) => "a host is available and on, and its hardware is its profile's, field by field",
        (Phase::Provision, Level::Fake) => "its node is active",
        (Phase::Provision, Level::Redfish) => "the machine runs the ISO that was ordered",
        (Phase::Provision, Level::Agent) => "disk and config-drive hold what was ordered, byte by byte",
        (Phase::Deprovision, Level::Agent) => "cleaning left nothing on any disk",
        (Phase::Deprovision, _) => "its node is available again",
        (Phase::Delete, Level::Fake) => "host and node are gone, and no Secret is held",
        (Phase::Delete, _) => "host and node are gone, no Secret is held, and the machine is off",
    }
}

/// Whether it was kept.
pub(crate) async fn judge(world: &World, phase: Phase, number: Number) -> anyhow::Result<()> {
    match phase {
        Phase::Enrol => enrolled(world, number).await,
        Phase::Provision => provisioned(world, number).await,
        Phase::Deprovision => deprovisioned(world, number).await,
        Phase::Delete => deleted(world, number).await,
    }
}

async fn enrolled(world: &World, number: Number) -> anyhow::Result<()> {
    if !inspects(world.level) {
        return Ok(());
    }
    let expected = hardware::expected(&world.profile, number);
    let host = world.get(number).await?.context("the host is gone")?;
    let told = serde_json::to_value(host.status.hardware)?;
    for (place, found) in [("status", told), ("HardwareData", world.hardware(number).await?)] {
        let differ = differences(&expected, &found);
        ensure!(differ.is_empty(), "{place}: {differ:#?}");
    }
    Ok(())
}

async fn state(world: &World, number: Number, wanted: &str) -> anyhow::Result<()> {
    let node = world.node(number).await?;
    ensure!(part(&node, "provision_state") == wanted, "node {node}");
    Ok(())
}

async fn provisioned(world: &World, number: Number) -> anyhow::Result<()> {
    state(world, number, "active").await?;
    let ordered = &image(&world.images, number)?.bytes;
    match world.level {
        Level::Fake => Ok(()),
        Level::Redfish => {
            let running = part(&world.machine(number).await?, "running");
            let same = part(&running, "sha256") == sha256(ordered).as_str();
            ensure!(same, "it runs {running}");
            Ok(())
        }
        Level::Agent => written(world, number, ordered).await,
    }
}

async fn written(world: &World, number: Number, ordered: &[u8]) -> anyhow::Result<()> {
    let lab = world.lab()?;
    let found = lab.read(&format!("/machines/{number}/disks/sda")).await?;
    ensure!(
        found == ordered,
        "sda holds {} bytes that are not the image's {}",
        found.len(),
        ordered.len()
    );
    let running = part(&world.machine(number).await?, "running");
    ensure!(running == json!({ "kind": "disk", "disk": "sda" }), "it runs {running}");
    let base = format!("/machines/{number}/disks/sda/config-drive/openstack/latest");
    let user_data = lab.read(&format!("{base}/user_data")).await?;
    ensure!(
        user_data == drive::user_data(number).as_bytes(),
        "{}",
        String::from_utf8_lossy(&user_data)
    );
    let host = world.get(number).await?.context("the host is gone")?;
    for (file, expected) in drive::files(number, &host.metadata.uid.unwrap_or_default()) {
        let differ = differences(&expected, &lab.view(&format!("{base}/{file}")).await?);
        ensure!(differ.is_empty(), "{file}: {differ:#?}");
    }
    Ok(())
}

async fn deprovisioned(world: &World, number: Number) -> anyhow::Result<()> {
    state(world, number, "available").await?;
    if world.level != Level::Agent {
        return Ok(());
    }
    let disks = part(&world.machine(number).await?, "disks");
    let disks = disks.as_array().context("no disks")?;
    let blank = |disk: &Value| part(disk, "written").is_null() && part(disk, "config_drive").is_null();
    ensure!(disks.iter().all(blank), "something is left: {disks:?}");
    Ok(())
}

async fn deleted(world: &World, number: Number) -> anyhow::Result<()> {
    let node = world.node(number).await?;
    ensure!(node.is_null(), "node {node}");
    if world.lab.is_some() {
        let power = part(&world.machine(number).await?, "power");
        ensure!(power == "Off", "its power is {power}");
    }
    Ok(())
}
