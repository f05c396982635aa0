//! Which hosts keep their busy-host slot.

use serde_json::json;

use super::fixture::{Fixture, has_writes};
use crate::action::Action;

fn delayed() -> Fixture {
    let crowded = json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } });
    let fixture = Fixture::new("available").spec_image("a").spec(crowded);
    let fixture = fixture.node_with("available", json!({ "boot_interface": "ipxe" }));
    fixture
        .status(json!({ "operationalStatus": "delayed" }))
        .with(|fixture| fixture.slot = Some(metal3_ironic::slots::SlotState::Waiting { ahead: 1 }))
}

fn releases_slot(fixture: &Fixture) -> bool {
    fixture.plan().actions.contains(&Action::ReleaseSlot)
}

#[test]
fn delayed_host_stays_in_the_slot_queue() {
    assert!(!releases_slot(&delayed()));
}

#[test]
fn host_paused_while_delayed_leaves_the_slot_queue() {
    let paused = delayed().annotated("baremetalhost.metal3.io/paused", "");
    assert!(releases_slot(&paused));
}

#[test]
fn host_paused_during_deployment_keeps_its_slot() {
    let paused = delayed().annotated("baremetalhost.metal3.io/paused", "");
    assert!(!releases_slot(&paused.node("deploying")));
}

#[test]
fn host_detached_by_force_leaves_its_slot() {
    let annotated = |fixture: Fixture| fixture.annotated("baremetalhost.metal3.io/detached", r#"{"force":true}"#);
    for state in ["inspecting", "provisioning", "deprovisioning"] {
        let detached = annotated(Fixture::new(state)).no_node();
        assert!(releases_slot(&detached), "{state}, to be detached");
        assert!(releases_slot(&detached.performed()), "{state}, detached");
    }
}

/// Nothing looks at the node of a host that waits for its user, so the slot would never come back.
#[test]
fn host_that_waits_for_its_user_leaves_its_slot() {
    let crowded = json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } });
    for state in ["inspecting", "provisioning", "deprovisioning"] {
        for operational in ["OK", "delayed"] {
            let held = Fixture::new(state)
                .spec(crowded.clone())
                .status(json!({ "operationalStatus": operational }))
                .annotated("baremetalhost.metal3.io/detached", r#"{"deleteAction":"delay"}"#)
                .deleted()
                .node_with("manageable", json!({ "boot_interface": "ipxe" }));
            assert!(releases_slot(&held), "{state} {operational}");
            assert!(
                !releases_slot(&held.node("inspecting")),
                "{state} {operational}, still busy"
            );
        }
    }
}

/// The slot must not go to another host while the ports are created: the same reconcile uses it later.
#[test]
fn host_with_granted_slot_keeps_it_while_its_ports_are_created() {
    let crowded = json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } });
    let registering = Fixture::new("registering")
        .spec(crowded)
        .node_with("manageable", json!({ "boot_interface": "ipxe" }))
        .with(|fixture| {
            fixture.slot = Some(metal3_ironic::slots::SlotState::Granted);
            fixture.ports = Some(Vec::new());
        });
    assert!(has_writes(&registering.plan()), "it has no ports yet");
    assert!(!releases_slot(&registering));
}
