//! Ironic finds the agent of a machine by the ports of its node, in every state of the host.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::calls::{NodeRef, port};
use metal3_ironic::model::state::ProvisionState;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::env::{Setup, TestEnv};
use crate::phases::{Phase, runs};

/// Longer than every work of a machine, and shorter than Ironic's wait for an agent that does not find its node.
const NO_TIMEOUT: Duration = Duration::from_secs(300);

async fn addresses(env: &TestEnv, number: u32) -> Vec<String> {
    let node = NodeRef::from(&env.node(number).await.unwrap().uuid);
    let found = env.ironic.client().unwrap().send(&port::of_node(&node, None)).await;
    found
        .unwrap()
        .value
        .items
        .into_iter()
        .map(|port| port.address)
        .collect()
}

/// Waits until the host is at rest on another node than before.
async fn remade(env: &TestEnv, number: u32, before: &str) {
    env.until(number, "new node", |host| {
        host.is_some_and(|host| !["", before].contains(&host.status.provisioning.id.as_str()))
    })
    .await;
}

/// Loses Ironic's database in a state that `begin` reaches, and returns after the host has a new node.
async fn lost_in(state: &str, change: Value) -> TestEnv {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    if state != "available" {
        Phase::Provision.begin(&env, 1).await;
        env.until_state(1, "provisioning").await;
    }
    if ["provisioned", "deprovisioning"].contains(&state) {
        env.until(1, "provisioned host that runs", runs).await;
    }
    env.edit(1, change).await;
    env.until_state(1, state).await;
    let before = env.node(1).await.unwrap().uuid;
    env.ironic.lose_database();
    remade(&env, 1, before.as_str()).await;
    env
}

#[tokio::test(start_paused = true)]
async fn node_that_is_made_again_has_ports_in_every_state() {
    let states = [
        ("available", json!({})),
        ("provisioning", json!({})),
        ("provisioned", json!({})),
        ("deprovisioning", json!({ "spec": { "image": null } })),
    ];
    for (state, change) in states {
        let env = lost_in(state, change).await;
        let mac = env.machine(1, |machine| machine.macs().remove(0));
        assert!(addresses(&env, 1).await.contains(&mac), "in {state}");
        let ends = async {
            match state {
                "available" => {
                    Phase::Provision.begin(&env, 1).await;
                    env.until(1, "provisioned host that runs", runs).await;
                }
                "provisioned" => {
                    env.until(1, "adopted host that runs", runs).await;
                    env.edit(1, json!({ "spec": { "image": null } })).await;
                    env.until_state(1, "available").await;
                }
                "provisioning" => env.until(1, "provisioned host that runs", runs).await,
                _ => env.until_state(1, "available").await,
            }
        };
        let ended = timeout(NO_TIMEOUT, ends).await;
        assert!(ended.is_ok(), "an agent did not find its node in {state}");
    }
}

#[tokio::test(start_paused = true)]
async fn boot_mac_address_that_is_set_later_becomes_a_port() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    let (host, other) = (env.get(1).await.unwrap(), "52:54:00:99:00:01");
    assert!(host.spec.boot_mac_address.is_some());
    env.edit(1, json!({ "spec": { "bootMACAddress": other } })).await;
    sleep(Duration::from_secs(60)).await;
    assert!(addresses(&env, 1).await.contains(&other.to_owned()));
    assert_eq!(env.node(1).await.unwrap().provision_state, ProvisionState::Manageable);
    let is_well = |host: &BareMetalHost| host.status.error_type.is_none();
    assert!(is_well(&env.get(1).await.unwrap()));
}

/// Nothing but time reports that the other node lost it.
#[tokio::test(start_paused = true)]
async fn port_that_another_node_had_is_created_once_it_is_free() {
    let env = TestEnv::new(Setup::default());
    for number in [1, 2] {
        env.host(number, json!({})).await;
        env.until_state(number, "available").await;
    }
    Phase::Provision.begin(&env, 1).await;
    env.until(1, "provisioned host that runs", runs).await;
    let address = env.machine(2, |machine| machine.macs().remove(0));
    env.edit(1, json!({ "spec": { "bootMACAddress": address } })).await;
    let is_held = |host: Option<&BareMetalHost>| {
        let conditions = host.into_iter().flat_map(|host| &host.status.conditions);
        conditions.into_iter().any(|one| one.reason == "BootPortRefused")
    };
    env.until(1, "report of the port", is_held).await;
    env.delete(2).await;
    env.until(2, "end", |host| host.is_none()).await;
    env.until(1, "host without the report", |host| !is_held(host)).await;
    assert!(addresses(&env, 1).await.contains(&address));
}
