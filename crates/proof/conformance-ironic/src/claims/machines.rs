//! Behaviour that needs a machine: wait states, power, disks, ports.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{ConfigDrive, Step, Transition};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::inventory::Frequency;
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_sim_bmc::fault::Fault;
use serde_json::{Map, Value, json};

use super::life::deploy;
use super::record::is_in_history;
use crate::lab::{Lab, expect_error, object};

/// How long a claim watches an agent that does not find its node.
const UNFOUND: Duration = Duration::from_secs(8);

/// Disables automated cleaning.
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

pub(crate) async fn inspection_cleaning_and_deployment_wait_for_the_ramdisk(lab: &Lab) -> anyhow::Result<()> {
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
    ensure!(!machine.read_state().await?.is_written, "cleaning left the image");
    lab.remove(&uuid).await
}

pub(crate) async fn an_abort_ends_inspection_cleaning_and_deployment_that_wait_for_their_ramdisk(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(uncleaned()).await?;
    machine.set_faults(&[Fault::NoBoot]).await?;
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

pub(crate) async fn older_microversions_do_not_abort_a_deployment_but_remove_it(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(uncleaned()).await?;
    machine.go(&uuid, Transition::Provide, &S::Available).await?;
    set(lab, &uuid, "instance_info", lab.image()?).await?;
    machine.set_faults(&[Fault::NoBoot]).await?;
    machine.go(&uuid, deploy(), &S::WaitCallBack).await?;
    let path = format!("/v1/nodes/{uuid}/states/provision");
    let abort = lab.raw("PUT", &path, "1.109", Some(json!({"target": "abort"}))).await?;
    ensure!(abort.status == 406, "abort: {}", abort.status);
    let remove = lab
        .raw("PUT", &path, "1.109", Some(json!({"target": "deleted"})))
        .await?;
    ensure!(remove.status == 202, "deleted: {}", remove.status);
    machine
        .until(&uuid, "removed", |node| node.provision_state == S::Available)
        .await?;
    lab.remove(&uuid).await
}

pub(crate) async fn an_agent_finds_its_node_only_by_the_address_of_a_port(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node_without_port(Map::new()).await?;
    machine.go(&uuid, Transition::Provide, &S::CleanWait).await?;
    machine.until_on(true).await?;
    // Several times as long as an agent takes to boot.
    tokio::time::sleep(UNFOUND).await;
    let state = lab.read(&uuid).await?.provision_state;
    ensure!(state == S::CleanWait, "a node without ports is {state}");
    machine.add_port(&uuid).await?;
    let cleaned = |node: &metal3_ironic::model::node::Node| node.provision_state == S::Available;
    machine.until(&uuid, "cleaned", cleaned).await?;
    lab.remove(&uuid).await
}

pub(crate) async fn an_inspection_creates_a_port_for_each_network_card(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    machine.go(&uuid, Transition::Inspect, &S::Manageable).await?;
    let ports = calls::port::of_node(&NodeRef::from(&uuid), None);
    let ports = lab.send(&ports).await?.items;
    let mut found: Vec<String> = ports.into_iter().map(|port| port.address).collect();
    found.sort();
    ensure!(found == machine.macs(), "ports {found:?}, cards {:?}", machine.macs());
    lab.remove(&uuid).await
}

pub(crate) async fn an_inspection_by_the_bmc_finds_the_hardware_and_boots_nothing(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(object([("inspect_interface", json!("redfish"))])).await?;
    let was_on = machine.read_state().await?.is_on;
    let waits = machine.go_watched(&uuid, Transition::Inspect, &S::Manageable).await?;
    ensure!(waits.is_empty(), "it waited in {waits:?}");
    ensure!(machine.read_state().await?.is_on == was_on, "it changed the power");
    let found = lab
        .send(&calls::node::inventory(&NodeRef::from(&uuid)))
        .await?
        .inventory;
    ensure!(
        matches!(found.cpu.frequency, Some(Frequency::Number(_))),
        "{:?}",
        found.cpu
    );
    let disk = found.disks.first().context("no disk")?;
    let is_named = disk.name.as_deref().is_some_and(|name| !name.contains('/'));
    ensure!(is_named && disk.by_path.is_none() && disk.size.is_some(), "{disk:?}");
    let mut macs: Vec<String> = found
        .interfaces
        .into_iter()
        .filter_map(|card| card.mac_address)
        .collect();
    macs.sort();
    ensure!(macs == machine.macs(), "cards {macs:?}, not {:?}", machine.macs());
    let ports = lab
        .send(&calls::port::of_node(&NodeRef::from(&uuid), None))
        .await?
        .items;
    ensure!(
        ports.len() == macs.len(),
        "{} ports of {} cards",
        ports.len(),
        macs.len()
    );
    lab.remove(&uuid).await
}

pub(crate) async fn a_failed_inspection_powers_the_machine_off_and_the_history_keeps_the_error(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    machine.set_faults(&[Fault::InspectionError]).await?;
    machine.go(&uuid, Transition::Inspect, &S::InspectFailed).await?;
    machine.until_on(false).await?;
    is_in_history(lab, &uuid, "the collector of the default inventory failed").await?;
    lab.remove(&uuid).await
}

pub(crate) async fn the_firmware_versions_are_recorded_when_a_node_is_managed(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let found = lab.client.send(&calls::hardware::firmware(&(&uuid).into())).await?;
    let mut parts: Vec<&str> = found.value.items.iter().map(|part| part.component.as_str()).collect();
    parts.sort_unstable();
    ensure!(parts == ["bios", "bmc"], "{:?}", found.value);
    lab.remove(&uuid).await
}

pub(crate) async fn virtual_media_are_attached_listed_and_detached(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let node = NodeRef::from(&uuid);
    let image = lab.image()?;
    let source = image.get("image_source").and_then(Value::as_str).unwrap_or_default();
    let attach = calls::hardware::attach_virtual_cd(&node, source)?;
    let detach = calls::hardware::detach_virtual_cd(&node);
    for (change, inserted) in [(attach, true), (detach, false)] {
        lab.unlocked(|| lab.client.send(&change)).await?;
        // Accepted immediately, done asynchronously.
        machine.until(&uuid, "free", |node| node.reservation.is_none()).await?;
        let media = lab.send(&calls::hardware::virtual_media(&node)).await?;
        let found = media.iter().any(|medium| medium.holds_image() == Some(true));
        ensure!(found == inserted, "{media:?}");
    }
    lab.remove(&uuid).await
}

pub(crate) async fn event_subscriptions_are_created_listed_and_deleted(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let node = NodeRef::from(&uuid);
    let path = format!("/v1/nodes/{uuid}/vendor_passthru?method=create_subscription");
    let wanted = json!({ "Destination": "https://192.0.2.50/events", "Context": "claim" });
    let created = lab.raw("POST", &path, "1.93", Some(wanted)).await?;
    ensure!(created.status == 200, "{}: {}", created.status, created.body);
    let id = created
        .body
        .get("Id")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let read = calls::hardware::subscription(&node, &id)?;
    let found = lab.unlocked(|| lab.client.send(&read)).await?.value;
    let described = (found.destination.as_deref(), found.context.as_deref());
    ensure!(
        described == (Some("https://192.0.2.50/events"), Some("claim")),
        "{found:?}"
    );
    for deleted in [false, true] {
        if deleted {
            let delete = calls::hardware::delete_subscription(&node, &id)?;
            lab.unlocked(|| lab.client.send(&delete)).await?;
        }
        let list = calls::hardware::subscriptions(&node);
        let listed = lab.unlocked(|| lab.client.send(&list)).await?;
        ensure!(listed.value.contain(&id) == Some(!deleted), "{id}: {:?}", listed.value);
    }
    lab.remove(&uuid).await
}

pub(crate) async fn drifted_power_is_restored(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let off = |node: &metal3_ironic::model::node::Node| node.power_state == Some(PowerState::Off);
    machine.until(&uuid, "known to be off", off).await?;
    machine.power_on().await?;
    machine.until_on(true).await?;
    machine.until_on(false).await?;
    machine.until(&uuid, "off on record", off).await?;
    lab.remove(&uuid).await
}

pub(crate) async fn a_dead_bmc_sets_maintenance_until_it_responds(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    machine.set_faults(&[Fault::DeadBmc]).await?;
    let failed = |node: &metal3_ironic::model::node::Node| node.fault.as_deref() == Some("power failure");
    let node = machine.until(&uuid, "power failure", failed).await?;
    ensure!(node.maintenance, "a fault without maintenance");
    machine.set_faults(&[]).await?;
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
    let before = machine.read_state().await?;
    ensure!(before.is_on && before.is_written, "{before:?}");
    lab.remove(&uuid).await?;
    let after = machine.read_state().await?;
    ensure!(after == before, "{after:?}");
    // The next node finds this state.
    let again = machine.node(uncleaned()).await?;
    let on = |node: &metal3_ironic::model::node::Node| node.power_state == Some(PowerState::On);
    machine.until(&again, "known to be on", on).await?;
    lab.remove(&again).await
}

pub(crate) async fn a_live_image_is_booted_without_writing_and_its_rebuild_is_an_error_of_ironic(
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
    let seen = machine.read_state().await?;
    ensure!(seen.is_on && !seen.is_written, "{seen:?}");
    let config_drive = ConfigDrive(Map::new());
    let rebuild = calls::provision::request(&NodeRef::from(&uuid), Transition::Rebuild { config_drive })?;
    lab.refused(&rebuild, "unexpected").await?;
    lab.remove(&uuid).await
}

pub(crate) async fn a_boot_device_for_one_boot_is_set_on_the_machine(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let node = NodeRef::from(&uuid);
    let set = calls::state::set_boot_device(&node, "cdrom", false);
    lab.unlocked(|| lab.client.send(&set)).await?;
    let found = lab.send(&calls::state::boot_device(&node)).await?;
    ensure!(
        found.boot_device.as_deref() == Some("cdrom") && found.persistent == Some(false),
        "{found:?}"
    );
    lab.remove(&uuid).await
}

/// The login of a registered host is tried so: the answer is about the login that was written last, and nothing else changes.
pub(crate) async fn a_read_of_the_boot_device_logs_in_with_the_present_login_and_names_its_refusal(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(Map::new()).await?;
    let (username, password) = machine.require_login();
    let read = calls::state::boot_device(&NodeRef::from(&uuid));
    let before = lab.read(&uuid).await?;
    for (password, is_accepted) in [(password.as_str(), true), ("another", false), (password.as_str(), true)] {
        let patch = Patch::new()
            .set(&["driver_info", "redfish_username"], username.as_str())
            .set(&["driver_info", "redfish_password"], password);
        let patch = calls::node::patch(&NodeRef::from(&uuid), patch)?;
        lab.unlocked(|| lab.client.send(&patch)).await?;
        if is_accepted {
            lab.unlocked(|| lab.client.send(&read)).await?;
        } else {
            let error = lab.refused(&read, "unexpected").await?.to_string();
            ensure!(error.contains("returned code 401"), "{error}");
        }
        let node = lab.read(&uuid).await?;
        ensure!(node.power_state == before.power_state, "{:?}", node.power_state);
        ensure!(!node.maintenance && node.last_error.is_none(), "{:?}", node.last_error);
    }
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
        expect_error(answer.map(drop), "invalid")?;
        let state = lab.read(&uuid).await?.provision_state;
        ensure!(state == S::Available, "{state}");
    }
    ensure!(!machine.read_state().await?.is_on, "it was switched on");
    lab.remove(&uuid).await
}

/// The registry is asked when the deployment begins. It does not exist here.
pub(crate) async fn an_image_of_a_registry_needs_no_checksum_and_its_login_is_not_shown(
    lab: &Lab,
) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(uncleaned()).await?;
    machine.go(&uuid, Transition::Provide, &S::Available).await?;
    let info = json!({ "image_source": "oci://127.0.0.1:9/os:v1", "image_pull_secret": "u:canary", "metal3_image_login": "7" });
    set(lab, &uuid, "instance_info", info).await?;
    let shown = lab.read(&uuid).await?.instance_info;
    ensure!(shown.text("image_pull_secret") == Some("******"), "{shown:?}");
    ensure!(shown.text("metal3_image_login") == Some("7"), "{shown:?}");
    let validation = lab.send(&calls::node::validate(&NodeRef::from(&uuid))).await?;
    ensure!(validation.deploy_errors().is_empty(), "{validation:?}");
    lab.remove(&uuid).await
}
