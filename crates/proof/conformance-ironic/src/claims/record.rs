//! Fields of a node and its update time.

use anyhow::{Context as _, ensure};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{Step, Transition};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;
use serde_json::{Map, Value};

use crate::lab::{Lab, POLL_INTERVAL, TIMEOUT};

pub(crate) async fn a_password_is_masked_in_responses(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = lab.read(&uuid).await?;
    let shown = node.driver_info.text("fake_password");
    ensure!(shown == Some("******"), "{:?}", node.driver_info);
    lab.remove(&uuid).await
}

pub(crate) async fn a_new_node_has_no_update_time_and_a_patch_without_a_change_sets_it(
    lab: &Lab,
) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = lab.read(&uuid).await?;
    ensure!(node.updated_at.is_none(), "{:?}", node.updated_at);
    let patch = || Patch::new().set(&["extra", "same"], 1);
    let call = calls::node::patch(&NodeRef::from(&uuid), patch())?;
    let first = lab.send(&call).await?.updated_at.context("no time after a patch")?;
    let second = lab.send(&call).await?.updated_at.context("no time after a patch")?;
    ensure!(second > first, "{first} and {second}");
    lab.remove(&uuid).await
}

pub(crate) async fn reading_the_boot_device_changes_the_update_time(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    lab.client
        .send(&calls::state::boot_device(&NodeRef::from(&uuid)))
        .await?;
    ensure!(lab.read(&uuid).await?.updated_at.is_some(), "it did not move");
    lab.remove(&uuid).await
}

pub(crate) async fn every_report_about_a_node_can_be_read(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    let validation = lab.send(&calls::node::validate(&node)).await?;
    ensure!(!validation.0.is_empty(), "no validation results");
    ensure!(validation.deploy_errors().is_empty(), "{validation:?}");
    let states = lab.send(&calls::state::get(&node)).await?;
    ensure!(states.provision_state == ProvisionState::Enroll, "{states:?}");
    lab.client.send(&calls::hardware::bios(&node)).await?;
    lab.client.send(&calls::hardware::firmware(&node)).await?;
    lab.client.send(&calls::node::history(&node)).await?;
    lab.client.send(&calls::state::vifs(&node)).await?;
    lab.client.send(&calls::port::groups_of_node(&node)).await?;
    let traits = ["CUSTOM_CONTRACT".to_owned()];
    lab.client.send(&calls::hardware::set_traits(&node, &traits)).await?;
    let read = lab.send(&calls::hardware::traits(&node)).await?;
    ensure!(read == traits, "{read:?}");
    let raid = serde_json::json!({"size_gb": 10, "raid_level": "1"});
    lab.client.send(&calls::state::set_target_raid(&node, &[raid])).await?;
    ensure!(
        lab.read(&uuid).await?.target_raid_config.get("logical_disks").is_some(),
        "no RAID"
    );
    lab.remove(&uuid).await
}

pub(crate) async fn an_inventory_is_not_found_before_an_inspection(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    lab.refused(&calls::node::inventory(&NodeRef::from(&uuid)), "not_found")
        .await?;
    lab.remove(&uuid).await
}

/// A node whose cleaning failed because the step does not exist.
async fn failed(lab: &Lab, step: &str) -> anyhow::Result<Node> {
    let uuid = lab.node().await?;
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    let step = Step {
        interface: "bios".into(),
        step: step.into(),
        args: Map::new(),
        priority: None,
    };
    lab.go(&uuid, Transition::Clean(vec![step]), &ProvisionState::CleanFailed)
        .await
}

/// Ironic writes the history after the state.
pub(super) async fn is_in_history(lab: &Lab, node: &NodeUuid, text: &str) -> anyhow::Result<()> {
    let begun = lab.clock.monotonic();
    let call = calls::node::history(&NodeRef::from(node));
    loop {
        let history = lab.send(&call).await?;
        let mut events = history.items.iter().filter_map(|entry| entry.event.as_deref());
        if events.any(|event| event.contains(text)) {
            return Ok(());
        }
        let waited = lab.clock.monotonic().since(begun);
        ensure!(waited < TIMEOUT, "the history does not have {text}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

pub(crate) async fn unknown_clean_steps_fail_the_cleaning_without_a_fault(lab: &Lab) -> anyhow::Result<()> {
    let failed = failed(lab, "no_such_step").await?;
    // Only a failed step that ran sets maintenance and a fault.
    ensure!(!failed.maintenance && failed.fault.is_none(), "{:?}", failed.fault);
    is_in_history(lab, &failed.uuid, "no_such_step").await?;
    lab.remove(&failed.uuid).await
}

pub(crate) async fn a_history_without_details_is_truncated(lab: &Lab) -> anyhow::Result<()> {
    let step = format!("no_such_step_{}", "x".repeat(255));
    let failed = failed(lab, &step).await?;
    is_in_history(lab, &failed.uuid, &step).await?;
    let raw = lab
        .raw("GET", &format!("/v1/nodes/{}/history", failed.uuid), "1.110", None)
        .await?;
    let brief = raw.body;
    let events = brief.get("history").and_then(Value::as_array).context("no history")?;
    let text = events.iter().filter_map(|event| event.get("event")?.as_str());
    let lengths: Vec<usize> = text.filter(|text| text.ends_with("...")).map(str::len).collect();
    ensure!(lengths == [254], "{brief}");
    lab.remove(&failed.uuid).await
}

/// When actual and recorded power match, the power sync erases `last_error`, even of a failed node.
pub(crate) async fn the_power_sync_erases_the_error_of_a_failed_node_and_the_history_keeps_it(
    lab: &Lab,
) -> anyhow::Result<()> {
    let failed = failed(lab, "no_such_step").await?;
    let begun = lab.clock.monotonic();
    let silent = loop {
        let node = lab.read(&failed.uuid).await?;
        if node.last_error.is_none() {
            break node;
        }
        ensure!(
            lab.clock.monotonic().since(begun) < TIMEOUT,
            "last_error is still {:?}; was Ironic started with slow_power.conf as its EXTRA_CONF?",
            node.last_error
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    ensure!(
        silent.provision_state == ProvisionState::CleanFailed,
        "{}",
        silent.provision_state
    );
    // The feed reports it, as any change.
    ensure!(silent.updated_at >= failed.updated_at, "its time did not move");
    is_in_history(lab, &failed.uuid, "no_such_step").await?;
    lab.remove(&failed.uuid).await
}

pub(crate) async fn maintenance_is_set_with_its_reason_and_cleared(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    lab.client
        .send(&calls::node::set_maintenance(&node, "for a claim"))
        .await?;
    let set = lab.read(&uuid).await?;
    ensure!(
        set.maintenance && set.maintenance_reason.as_deref() == Some("for a claim"),
        "{:?}",
        set.maintenance_reason
    );
    for _ in 0..2 {
        // Clearing twice is accepted.
        lab.client.send(&calls::node::clear_maintenance(&node)).await?;
    }
    ensure!(!lab.read(&uuid).await?.maintenance, "still set");
    lab.remove(&uuid).await
}
