//! A life on fake hardware.

use anyhow::{Context as _, ensure};
use metal3_ironic::calls::provision::{ConfigDrive, Transition};
use metal3_ironic::calls::state::Power;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::state::{PowerState, ProvisionState};
use serde_json::json;

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

pub(crate) async fn a_node_lives_from_enroll_to_active_and_back(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Inspect, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Provide, &ProvisionState::Available).await?;
    lab.go(&uuid, deploy(), &ProvisionState::Active).await?;
    // Fake hardware knows no power state until it is told one.
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

pub(crate) async fn a_change_carries_a_request_id(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let call = calls::provision::request(&NodeRef::from(&uuid), Transition::Manage)?;
    let id = lab.client.send(&call).await?.request_id.context("no request id")?;
    ensure!(id.starts_with("req-"), "{id}");
    lab.reach(&uuid, &ProvisionState::Manageable).await?;
    lab.remove(&uuid).await
}
