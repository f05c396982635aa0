//! Error responses of Ironic.

use anyhow::{Context as _, ensure};
use metal3_domain::mac::MacAddress;
use metal3_ironic::Error;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::state::Power;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::state::ProvisionState;
use serde_json::json;

use crate::lab::{Lab, expect_error};

pub(crate) async fn an_unknown_node_is_not_found(lab: &Lab) -> anyhow::Result<()> {
    let call = calls::node::get(&NodeRef::Name("contract~missing".into()));
    lab.refused(&call, "not_found").await.map(|_| ())
}

pub(crate) async fn a_node_name_must_be_unused(lab: &Lab) -> anyhow::Result<()> {
    let new = lab.new_node();
    let uuid = lab.create(new.clone()).await?;
    let by_name = lab
        .client
        .send(&calls::node::get(&NodeRef::Name(new.name.clone())))
        .await?;
    ensure!(by_name.value.uuid == uuid, "found {}", by_name.value.uuid);
    lab.refused(&calls::node::create(new)?, "exists").await?;
    lab.remove(&uuid).await
}

pub(crate) async fn an_instance_belongs_to_one_node(lab: &Lab) -> anyhow::Result<()> {
    let instance = lab.instance();
    let (first, second) = (lab.node().await?, lab.node().await?);
    let associate = |uuid| {
        calls::node::patch(
            &NodeRef::from(uuid),
            Patch::new().set(&["instance_uuid"], instance.clone()),
        )
    };
    lab.client.send(&associate(&first)?).await?;
    // Repeating the association is accepted.
    lab.client.send(&associate(&first)?).await?;
    lab.refused(&associate(&second)?, "wrong_state").await?;
    let mut new = lab.new_node();
    new.more.insert("instance_uuid".into(), instance.clone().into());
    lab.refused(&calls::node::create(new.clone())?, "exists").await?;
    // After the first node releases the instance, the second can use it.
    let give_up = calls::node::patch(&NodeRef::from(&first), Patch::new().remove(&["instance_uuid"]))?;
    lab.client.send(&give_up).await?;
    lab.client.send(&associate(&second)?).await?;
    lab.remove(&second).await?;
    let third = lab.create(new).await?;
    lab.remove(&third).await?;
    lab.remove(&first).await
}

pub(crate) async fn an_unknown_driver_is_invalid(lab: &Lab) -> anyhow::Result<()> {
    let mut new = lab.new_node();
    new.driver = "abacus".into();
    lab.refused(&calls::node::create(new)?, "invalid").await.map(|_| ())
}

pub(crate) async fn an_action_that_the_state_does_not_permit_is_wrong_state(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    for transition in [
        Transition::Provide,
        Transition::Clean(Vec::new()),
        Transition::Deploy {
            config_drive: calls::provision::ConfigDrive::default(),
            steps: Vec::new(),
        },
    ] {
        let call = calls::provision::request(&NodeRef::from(&uuid), transition)?;
        lab.refused(&call, "wrong_state").await?;
    }
    lab.remove(&uuid).await
}

pub(crate) async fn removing_a_missing_value_is_invalid_and_an_empty_patch_is_accepted(
    lab: &Lab,
) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    let remove = calls::node::patch(&node, Patch::new().remove(&["extra", "absent"]))?;
    lab.refused(&remove, "invalid").await?;
    lab.client.send(&calls::node::patch(&node, Patch::new())?).await?;
    lab.remove(&uuid).await
}

pub(crate) async fn the_second_of_two_concurrent_requests_is_locked_or_in_the_wrong_state(
    lab: &Lab,
) -> anyhow::Result<()> {
    for _ in 0..5 {
        let uuid = lab.node().await?;
        let call = calls::provision::request(&NodeRef::from(&uuid), Transition::Manage)?;
        let (one, other) = tokio::join!(lab.client.send(&call), lab.client.send(&call));
        let mut taken = 0_u8;
        for answer in [one, other] {
            match answer {
                // A second `manage` after the first is accepted and has no effect.
                Ok(_) => taken = taken.saturating_add(1),
                Err(Error::Locked(_) | Error::WrongState(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        ensure!(taken >= 1, "both were refused");
        lab.reach(&uuid, &ProvisionState::Manageable).await?;
        lab.remove(&uuid).await?;
    }
    Ok(())
}

pub(crate) async fn a_node_with_work_in_progress_is_locked(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.client.send(&calls::state::set_power(&node, Power::On)).await?;
    let patch = calls::node::patch(&node, Patch::new().set(&["extra", "k"], 1))?;
    lab.refused(&patch, "locked")
        .await
        .context("was Ironic started with slow_power.conf as its EXTRA_CONF?")?;
    lab.refused(&calls::state::set_power(&node, Power::Off), "locked")
        .await?;
    lab.refused(&calls::node::delete(&node), "locked").await?;
    lab.remove(&uuid).await
}

pub(crate) async fn powering_off_a_node_with_disabled_power_off_is_wrong_state(lab: &Lab) -> anyhow::Result<()> {
    let mut new = lab.new_node();
    new.disable_power_off = Some(true);
    let uuid = lab.create(new).await?;
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    let off = calls::state::set_power(&NodeRef::from(&uuid), Power::Off);
    let error = lab.unlocked(|| lab.client.send(&off)).await.err();
    let kind = error
        .as_ref()
        .and_then(|error| error.downcast_ref::<Error>())
        .map(Error::category);
    ensure!(kind == Some("wrong_state"), "{error:?}");
    lab.remove(&uuid).await
}

pub(crate) async fn a_port_address_must_be_unused_and_is_found_in_upper_and_lower_case(
    lab: &Lab,
) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let number = std::process::id().to_be_bytes();
    let tail: Vec<String> = number.iter().map(|byte| format!("{byte:02X}")).collect();
    let address = MacAddress::parse(&format!("02:AB:{}", tail.join(":")))?;
    let made = lab.send(&calls::port::create(&uuid, &address, true)).await?;
    ensure!(made.address == address.to_string(), "{}", made.address);
    lab.refused(&calls::port::create(&uuid, &address, true), "exists")
        .await?;
    let found = lab.send(&calls::port::with_address(&address)).await?;
    ensure!(found.items == [made], "{found:?}");
    let of_node = lab.send(&calls::port::of_node(&NodeRef::from(&uuid), None)).await?;
    ensure!(of_node.items == found.items, "{of_node:?}");
    lab.remove(&uuid).await
}

pub(crate) async fn a_port_of_an_unknown_node_is_invalid(lab: &Lab) -> anyhow::Result<()> {
    let unknown = metal3_domain::ids::NodeUuid::parse("00000000-0000-0000-0000-000000000000")?;
    let address = MacAddress::parse("02:00:00:00:00:01")?;
    lab.refused(&calls::port::create(&unknown, &address, true), "invalid")
        .await
        .map(|_| ())
}

pub(crate) async fn an_active_node_is_deleted_only_in_maintenance(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Adopt, &ProvisionState::Active).await?;
    lab.refused(&calls::node::delete(&NodeRef::from(&uuid)), "wrong_state")
        .await?;
    lab.remove(&uuid).await?;
    expect_error(lab.read(&uuid).await, "not_found").map(|_| ())
}

pub(crate) async fn a_driver_without_event_subscriptions_refuses_their_methods(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    for (verb, method, body) in [
        ("GET", "get_all_subscriptions", None),
        ("GET", "get_subscription", Some(json!({"id": "1"}))),
        (
            "POST",
            "create_subscription",
            Some(json!({"Destination": "https://192.0.2.50/events"})),
        ),
        ("DELETE", "delete_subscription", Some(json!({"id": "1"}))),
    ] {
        let path = format!("/v1/nodes/{uuid}/vendor_passthru?method={method}");
        let raw = lab.raw(verb, &path, "1.93", body).await?;
        ensure!(raw.status == 400, "{verb} {method}: {}", raw.status);
    }
    lab.remove(&uuid).await
}
