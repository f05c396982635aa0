//! Who keeps a place among those that load the provisioning network.

use serde_json::json;

use super::scene::Scene;
use crate::action::Place;

fn delayed() -> Scene {
    let crowded = json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } });
    let scene = Scene::new("available").asks("a").spec(crowded);
    let scene = scene.node_with("available", json!({ "boot_interface": "ipxe" }));
    scene
        .status(json!({ "operationalStatus": "delayed" }))
        .with(|scene| scene.turn = Some(metal3_ironic::slots::Turn::Waiting { ahead: 1 }))
}

#[test]
fn a_host_that_waits_for_its_turn_keeps_its_place() {
    assert_eq!(delayed().plan().place, Place::Keep);
}

#[test]
fn a_host_that_is_paused_while_it_waits_gives_its_place_back() {
    let paused = delayed().annotated("baremetalhost.metal3.io/paused", "");
    assert_eq!(paused.plan().place, Place::Leave);
}

#[test]
fn a_host_that_is_paused_while_ironic_deploys_it_keeps_its_place() {
    let paused = delayed().annotated("baremetalhost.metal3.io/paused", "");
    assert_eq!(paused.node("deploying").plan().place, Place::Keep);
}

/// Its place must not go to another while its ports are made: the same pass then relies on having it.
#[test]
fn a_host_whose_turn_has_come_keeps_its_place_while_its_ports_are_made() {
    let crowded = json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } });
    let registering = Scene::new("registering")
        .spec(crowded)
        .node_with("manageable", json!({ "boot_interface": "ipxe" }))
        .with(|scene| {
            scene.turn = Some(metal3_ironic::slots::Turn::Granted);
            scene.ports = Some(Vec::new());
        });
    let plan = registering.plan();
    assert!(!plan.steps.is_empty(), "it has no ports yet");
    assert_eq!(plan.place, Place::Keep);
}
