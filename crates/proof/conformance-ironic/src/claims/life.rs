//! The life cycle on fake hardware.

use anyhow::{Context as _, ensure};
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{ConfigDrive, Step, Transition};
use metal3_ironic::calls::state::Power;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::state::{PowerState, ProvisionState};
use serde_json::{Map, json};

use crate::lab::{Lab, object};

pub(crate) fn deploy() -> Transition {
    Transition::Deploy {
        config_drive: ConfigDrive(object([
            ("meta_data", json!({"name": "contract"})),
            ("user_data", json!("#cloud-config\n")),
        ])),
        steps: Vec::new(),
    }
}

pub(crate) async fn a_node_passes_from_enroll_to_active_and_back(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Inspect, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Provide, &ProvisionState::Available).await?;
    lab.go(&uuid, deploy(), &ProvisionState::Active).await?;
    // Fake hardware has no power state until one is set.
    for (power, state) in [(Power::On, PowerState::On), (Power::Off, PowerState::Off)] {
        let change = calls::state::set_power(&node, power);
        lab.unlocked(|| lab.client.send(&change)).await?;
        let after = lab.reach(&uuid, &ProvisionState::Active).await?;
        ensure!(after.power_state.as_ref() == Some(&state), "{:?}", after.power_state);
        ensure!(after.target_power_state.is_none(), "{:?}", after.target_power_state);
    }
    let available = lab.go(&uuid, Transition::Delete, &ProvisionState::Available).await?;
    ensure!(available.instance_info.0.is_empty(), "{:?}", available.instance_info);
    lab.unlocked(|| async { lab.client.send(&calls::node::delete(&node)).await })
        .await?;
    Ok(())
}

pub(crate) async fn a_change_has_a_request_id(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let call = calls::provision::request(&NodeRef::from(&uuid), Transition::Manage)?;
    let id = lab.client.send(&call).await?.request_id.context("no request id")?;
    ensure!(id.starts_with("req-"), "{id}");
    lab.reach(&uuid, &ProvisionState::Manageable).await?;
    lab.remove(&uuid).await
}

fn step(interface: &str, step: &str) -> Step {
    Step {
        interface: interface.into(),
        step: step.into(),
        args: Map::new(),
        priority: None,
    }
}

pub(crate) async fn an_abort_only_marks_a_service_step_that_is_not_abortable(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Adopt, &ProvisionState::Active).await?;
    let wait = Transition::Service(vec![step("vendor", "trigger_servicewait")]);
    lab.go(&uuid, wait, &ProvisionState::ServiceWait).await?;
    let marked = lab.go(&uuid, Transition::Abort, &ProvisionState::ServiceWait).await?;
    ensure!(
        marked.service_step.get("abort_after") == Some(&json!(true)),
        "{:?}",
        marked.service_step
    );
    lab.remove(&uuid).await
}

pub(crate) async fn a_protected_node_keeps_its_instance_and_is_not_deleted(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    let protect = |on: bool| calls::node::patch(&node, Patch::new().set(&["protected"], on));
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.refused(&protect(true)?, "wrong_state").await?;
    lab.go(&uuid, Transition::Adopt, &ProvisionState::Active).await?;
    let call = protect(true)?;
    lab.unlocked(|| lab.client.send(&call)).await?;
    let tear_down = calls::provision::request(&node, Transition::Delete)?;
    lab.refused(&tear_down, "protected").await?;
    let maintenance = calls::node::set_maintenance(&node, "contract");
    lab.unlocked(|| lab.client.send(&maintenance)).await?;
    lab.refused(&calls::node::delete(&node), "protected").await?;
    let after = lab.reach(&uuid, &ProvisionState::Active).await?;
    ensure!(after.maintenance, "its maintenance is over");
    let call = protect(false)?;
    lab.unlocked(|| lab.client.send(&call)).await?;
    lab.remove(&uuid).await
}

pub(crate) async fn the_instance_of_a_node_in_transition_can_be_removed_only_in_maintenance(
    lab: &Lab,
) -> anyhow::Result<()> {
    let mut new = lab.new_node();
    new.more.insert("instance_uuid".into(), lab.instance().into());
    let uuid = lab.create(new).await?;
    let node = NodeRef::from(&uuid);
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Adopt, &ProvisionState::Active).await?;
    let wait = Transition::Service(vec![step("vendor", "trigger_servicewait")]);
    lab.go(&uuid, wait, &ProvisionState::ServiceWait).await?;
    let maintenance = calls::node::set_maintenance(&node, "contract");
    let alone = || calls::node::patch(&node, Patch::new().remove(&["instance_uuid"]));
    let with_more = Patch::new().remove(&["instance_uuid"]).set(&["extra", "k"], 1);
    lab.refused(&alone()?, "wrong_state").await?;
    lab.unlocked(|| lab.client.send(&maintenance)).await?;
    let with_more = calls::node::patch(&node, with_more)?;
    lab.refused(&with_more, "wrong_state").await?;
    let call = alone()?;
    lab.unlocked(|| lab.client.send(&call)).await?;
    ensure!(lab.read(&uuid).await?.instance_uuid.is_none(), "it has its instance");
    lab.remove(&uuid).await
}

pub(crate) async fn a_failed_service_step_sets_maintenance_which_prevents_an_abort(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Adopt, &ProvisionState::Active).await?;
    let fails = Transition::Service(vec![step("bios", "no_such_step")]);
    let failed = lab.go(&uuid, fails, &ProvisionState::ServiceFailed).await?;
    ensure!(failed.maintenance, "no maintenance");
    ensure!(failed.fault.as_deref() == Some("service failure"), "{:?}", failed.fault);
    let abort = calls::provision::request(&node, Transition::Abort)?;
    lab.refused(&abort, "wrong_state").await?;
    let clear = calls::node::clear_maintenance(&node);
    lab.unlocked(|| lab.client.send(&clear)).await?;
    ensure!(lab.read(&uuid).await?.fault.is_none(), "the fault stayed");
    lab.go(&uuid, Transition::Abort, &ProvisionState::Active).await?;
    lab.remove(&uuid).await
}

pub(crate) async fn manual_cleaning_targets_manageable(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    let fails = Transition::Clean(vec![step("bios", "no_such_step")]);
    let failed = lab.go(&uuid, fails, &ProvisionState::CleanFailed).await?;
    ensure!(
        failed.target_provision_state.as_deref() == Some("manageable"),
        "{:?}",
        failed.target_provision_state
    );
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    let resets = Transition::Clean(vec![step("bios", "factory_reset")]);
    lab.go(&uuid, resets, &ProvisionState::Manageable).await?;
    lab.remove(&uuid).await
}
