//! What a node's record shows, and what moves its time.

use anyhow::{Context as _, ensure};
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{Step, Transition};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::state::ProvisionState;
use serde_json::Map;

use crate::conformance::lab::{Lab, refused};

pub(crate) async fn a_password_comes_back_masked(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = lab.read(&uuid).await?;
    let shown = node.driver_info.text("fake_password");
    ensure!(shown == Some("******"), "{:?}", node.driver_info);
    lab.remove(&uuid).await
}

pub(crate) async fn a_new_node_has_never_changed_and_a_patch_of_the_same_value_changes_it(
    lab: &Lab,
) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = lab.read(&uuid).await?;
    ensure!(node.updated_at.is_none(), "{:?}", node.updated_at);
    let patch = || Patch::new().set(&["extra", "same"], 1);
    let call = calls::node::patch(&NodeRef::from(&uuid), patch())?;
    let first = lab
        .client
        .send(&call)
        .await?
        .value
        .updated_at
        .context("no time after a patch")?;
    let second = lab
        .client
        .send(&call)
        .await?
        .value
        .updated_at
        .context("no time after a patch")?;
    ensure!(second > first, "{first} and {second}");
    lab.remove(&uuid).await
}

pub(crate) async fn asking_for_the_boot_device_changes_the_record(lab: &Lab) -> anyhow::Result<()> {
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
    let validation = lab.client.send(&calls::node::validate(&node)).await?.value;
    ensure!(!validation.0.is_empty(), "no verdict");
    ensure!(validation.against_deploying().is_empty(), "{validation:?}");
    let states = lab.client.send(&calls::state::get(&node)).await?.value;
    ensure!(states.provision_state == ProvisionState::Enroll, "{states:?}");
    lab.client.send(&calls::hardware::bios(&node)).await?;
    lab.client.send(&calls::hardware::firmware(&node)).await?;
    lab.client.send(&calls::node::history(&node)).await?;
    lab.client.send(&calls::state::vifs(&node)).await?;
    lab.client.send(&calls::port::groups_of_node(&node)).await?;
    let traits = ["CUSTOM_CONTRACT".to_owned()];
    lab.client.send(&calls::hardware::set_traits(&node, &traits)).await?;
    let read = lab.client.send(&calls::hardware::traits(&node)).await?.value;
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
    refused(
        lab.client.send(&calls::node::inventory(&NodeRef::from(&uuid))).await,
        "not_found",
    )?;
    lab.remove(&uuid).await
}

pub(crate) async fn unknown_steps_fail_the_cleaning_before_it_begins_and_set_no_fault(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    let step = Step {
        interface: "bios".into(),
        step: "no_such_step".into(),
        args: Map::new(),
        priority: None,
    };
    let failed = lab
        .go(&uuid, Transition::Clean(vec![step]), &ProvisionState::CleanFailed)
        .await?;
    // Only a step that ran and failed sets maintenance and a fault.
    ensure!(!failed.maintenance && failed.fault.is_none(), "{:?}", failed.fault);
    ensure!(failed.last_error.is_some(), "no error");
    let history = lab.client.send(&calls::node::history(&node)).await?.value;
    ensure!(history.items.iter().any(|entry| entry.event.is_some()), "no history");
    lab.remove(&uuid).await
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
        // The second time it is clear already: a change that may be repeated.
        lab.client.send(&calls::node::clear_maintenance(&node)).await?;
    }
    ensure!(!lab.read(&uuid).await?.maintenance, "still set");
    lab.remove(&uuid).await
}
