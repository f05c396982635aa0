//! What only a machine shows: states in which a ramdisk is waited for, power, disks, ports.

use anyhow::ensure;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{ConfigDrive, Step, Transition};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_sim_bmc::fault::Fault;
use serde_json::{Map, Value, json};

use super::life::deploy;
use super::record::is_in_history;
use crate::lab::{Lab, object, refused};

/// Nothing is cleaned by itself.
pub(super) fn uncleaned() -> Map<String, Value> {
    object([("automated_clean", json!(false))])
}

pub(super) async fn set(
    lab: &Lab,
    uuid: &metal3_domain::ids::NodeUuid,
    field: &str,
    value: Value,
) -> anyhow::Result<()> {
    let patch = calls::node::patch(&uuid.into(), Patch::new().set(&[field], value))?;
    lab.unlocked(|| lab.client.send(&patch)).await?;
    Ok(())
}

pub(crate) async fn a_life_waits_for_its_ramdisk_when_it_is_inspected_cleaned_deployed_and_cleaned_again(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let mut waits = machine.go_watched(&uuid, Transition::Inspect, &S::Manageable).await?;
    waits.extend(machine.go_watched(&uuid, Transition::Provide, &S::Available).await?);
    set(lab, &uuid, "instance_info", lab.image()?).await?;
    waits.extend(machine.go_watched(&uuid, deploy(), &S::Active).await?);
    waits.extend(machine.go_watched(&uuid, Transition::Delete, &S::Available).await?);
    waits.dedup();
    let expected = [S::InspectWait, S::CleanWait, S::WaitCallBack, S::CleanWait];
    ensure!(waits == expected, "it waited in {waits:?}");
    ensure!(!machine.see().await?.is_written, "cleaning left the image");
    lab.remove(&uuid).await
}

pub(crate) async fn an_abort_ends_inspection_cleaning_and_deployment_that_wait_for_their_ramdisk(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(uncleaned()).await?;
    machine.suffer(&[Fault::NoBoot]).await?;
    machine.go(&uuid, Transition::Inspect, &S::InspectWait).await?;
    machine.go(&uuid, Transition::Abort, &S::InspectFailed).await?;
    machine.go(&uuid, Transition::Manage, &S::Manageable).await?;
    let erase = Step {
        interface: "deploy".into(),
        step: "erase_devices_metadata".into(),
        args: Map::new(),
        priority: None,
    };
    machine.go(&uuid, Transition::Clean(vec![erase]), &S::CleanWait).await?;
    machine.go(&uuid, Transition::Abort, &S::CleanFailed).await?;
    machine.go(&uuid, Transition::Manage, &S::Manageable).await?;
    machine.go(&uuid, Transition::Provide, &S::Available).await?;
    set(lab, &uuid, "instance_info", lab.image()?).await?;
    machine.go(&uuid, deploy(), &S::WaitCallBack).await?;
    machine.go(&uuid, Transition::Abort, &S::DeployFailed).await?;
    lab.remove(&uuid).await
}

pub(crate) async fn an_inspection_makes_a_port_of_each_network_card(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    machine.go(&uuid, Transition::Inspect, &S::Manageable).await?;
    let ports = calls::port::of_node(&NodeRef::from(&uuid), None);
    let ports = lab.client.send(&ports).await?.value.items;
    let mut found: Vec<String> = ports.into_iter().map(|port| port.address).collect();
    found.sort();
    ensure!(found == machine.macs(), "ports {found:?}, cards {:?}", machine.macs());
    lab.remove(&uuid).await
}

pub(crate) async fn a_failed_inspection_switches_its_machine_off_and_keeps_its_words_in_the_history(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    machine.suffer(&[Fault::InspectionError]).await?;
    machine.go(&uuid, Transition::Inspect, &S::InspectFailed).await?;
    machine.until_on(false).await?;
    is_in_history(lab, &uuid, "the collector of the default inventory failed").await?;
    lab.remove(&uuid).await
}

pub(crate) async fn the_firmware_of_a_machine_is_known_when_it_is_managed(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let found = lab.client.send(&calls::hardware::firmware(&(&uuid).into())).await?;
    let mut parts: Vec<&str> = found.value.items.iter().map(|part| part.component.as_str()).collect();
    parts.sort_unstable();
    ensure!(parts == ["bios", "bmc"], "{:?}", found.value);
    lab.remove(&uuid).await
}

pub(crate) async fn virtual_media_are_attached_listed_and_taken_out_again(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let node = NodeRef::from(&uuid);
    let image = lab.image()?;
    let source = image.get("image_source").and_then(Value::as_str).unwrap_or_default();
    let attach = calls::hardware::attach_virtual_cd(&node, source)?;
    let detach = calls::hardware::detach_virtual_cd(&node);
    for (change, inserted) in [(attach, true), (detach, false)] {
        lab.unlocked(|| lab.client.send(&change)).await?;
        // Taken at once and done behind.
        machine.until(&uuid, "free", |node| node.reservation.is_none()).await?;
        let media = lab.client.send(&calls::hardware::virtual_media(&node)).await?.value;
        let found = media.iter().any(|medium| medium.inserted);
        ensure!(found == inserted, "{media:?}");
    }
    lab.remove(&uuid).await
}

pub(crate) async fn power_that_drifted_is_forced_back(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let off = |node: &metal3_ironic::model::node::Node| node.power_state == Some(PowerState::Off);
    machine.until(&uuid, "known to be off", off).await?;
    machine.press().await?;
    machine.until_on(true).await?;
    machine.until_on(false).await?;
    machine.until(&uuid, "off on record", off).await?;
    lab.remove(&uuid).await
}

pub(crate) async fn a_dead_bmc_puts_its_node_aside_until_it_is_back(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    machine.suffer(&[Fault::DeadBmc]).await?;
    let aside = |node: &metal3_ironic::model::node::Node| node.fault.as_deref() == Some("power failure");
    let node = machine.until(&uuid, "put aside", aside).await?;
    ensure!(node.maintenance, "a fault without maintenance");
    machine.suffer(&[]).await?;
    machine
        .until(&uuid, "back", |node| !node.maintenance && node.fault.is_none())
        .await?;
    lab.remove(&uuid).await
}

pub(crate) async fn a_machine_keeps_power_and_disk_when_its_node_is_deleted(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(uncleaned()).await?;
    machine.go(&uuid, Transition::Provide, &S::Available).await?;
    set(lab, &uuid, "instance_info", lab.image()?).await?;
    machine.go(&uuid, deploy(), &S::Active).await?;
    let before = machine.see().await?;
    ensure!(before.is_on && before.is_written, "{before:?}");
    lab.remove(&uuid).await?;
    let after = machine.see().await?;
    ensure!(after == before, "{after:?}");
    // And what comes after finds it so.
    let again = machine.node(uncleaned()).await?;
    let on = |node: &metal3_ironic::model::node::Node| node.power_state == Some(PowerState::On);
    machine.until(&again, "known to be on", on).await?;
    lab.remove(&again).await
}

pub(crate) async fn a_live_image_is_booted_and_never_written_and_its_rebuild_is_an_error_of_ironic(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let mut live = uncleaned();
    live.extend(object([("deploy_interface", json!("ramdisk"))]));
    let uuid = machine.node(live).await?;
    machine.go(&uuid, Transition::Provide, &S::Available).await?;
    let image = lab.image()?;
    let source = image.get("image_source").cloned().unwrap_or_default();
    set(lab, &uuid, "instance_info", json!({ "boot_iso": source })).await?;
    machine.go(&uuid, deploy(), &S::Active).await?;
    let seen = machine.see().await?;
    ensure!(seen.is_on && !seen.is_written, "{seen:?}");
    let config_drive = ConfigDrive(Map::new());
    let rebuild = calls::provision::request(&NodeRef::from(&uuid), Transition::Rebuild { config_drive })?;
    refused(lab.client.send(&rebuild).await, "unexpected")?;
    lab.remove(&uuid).await
}

pub(crate) async fn the_boot_device_that_is_set_for_once_is_the_machines(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let node = NodeRef::from(&uuid);
    let set = calls::state::set_boot_device(&node, "cdrom", false);
    lab.unlocked(|| lab.client.send(&set)).await?;
    let found = lab.client.send(&calls::state::boot_device(&node)).await?.value;
    ensure!(
        found.boot_device.as_deref() == Some("cdrom") && found.persistent == Some(false),
        "{found:?}"
    );
    lab.remove(&uuid).await
}

pub(crate) async fn a_deployment_without_image_or_checksum_is_invalid(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(uncleaned()).await?;
    machine.go(&uuid, Transition::Provide, &S::Available).await?;
    let image = lab.image()?;
    let source = image.get("image_source").cloned().unwrap_or_default();
    for info in [json!({}), json!({ "image_source": source })] {
        set(lab, &uuid, "instance_info", info).await?;
        let call = calls::provision::request(&NodeRef::from(&uuid), deploy())?;
        let answer = lab.client.send(&call).await;
        refused(answer.map(drop), "invalid")?;
        let state = lab.read(&uuid).await?.provision_state;
        ensure!(state == S::Available, "{state}");
    }
    ensure!(!machine.see().await?.is_on, "it was switched on");
    lab.remove(&uuid).await
}
