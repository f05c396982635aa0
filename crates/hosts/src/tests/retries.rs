//! Retries that wait for a busy-host slot, and deletions whose attempts fail.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;
use metal3_ironic::slots::SlotState;
use serde_json::{Value, json};

use super::fixture::{Fixture, image};
use super::rows::given::{asked, deprovisioning, failing, inspecting};

/// A host that boots its agent over the provisioning network.
fn crowded(fixture: Fixture) -> Fixture {
    fixture.spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } }))
}

fn failed(error: &str) -> Value {
    json!({ "boot_interface": "ipxe", "last_error": error })
}

fn waiting(fixture: Fixture) -> Fixture {
    fixture.with(|fixture| fixture.slot = Some(SlotState::Waiting { ahead: 0 }))
}

fn granted(fixture: Fixture) -> Fixture {
    fixture.with(|fixture| fixture.slot = Some(SlotState::Granted))
}

#[test]
fn inspection_whose_retry_waited_for_a_slot_starts_when_it_is_granted() {
    let due = crowded(inspecting())
        .node_with("inspect failed", failed("x"))
        .live()
        .status(failing("inspection error", "x", 1))
        .hours_later(1);
    let delayed = waiting(due).performed();
    assert!(delayed.summary().contains("delayed"), "{}", delayed.summary());
    let summary = granted(delayed).summary();
    assert!(summary.contains("requests inspect"), "{summary}");
}

#[test]
fn deletion_whose_retry_waits_for_a_slot_loses_no_attempt() {
    let mut fixture = crowded(deprovisioning())
        .deleted()
        .node_with("error", failed("x"))
        .status(failing("provisioning error", "x", 1))
        .live()
        .hours_later(1);
    for round in 0..6 {
        fixture = waiting(fixture).performed();
        let summary = granted(fixture.clone()).summary();
        assert!(summary.contains("requests deleted"), "{round}: {summary}");
        fixture = fixture.hours_later(24);
    }
}

#[test]
fn deployment_whose_retry_waited_for_a_slot_starts_when_it_is_granted() {
    let due = crowded(asked())
        .node_with("available", json!({ "boot_interface": "ipxe" }))
        .status(failing("provisioning error", "x", 1))
        .status(json!({ "provisioningFailCount": 1, "lastAttemptedImage": image("a") }))
        .hours_later(1);
    let delayed = waiting(due).performed();
    assert!(delayed.summary().contains("delayed"), "{}", delayed.summary());
    let summary = granted(delayed).summary();
    assert!(summary.contains("to provisioning"), "{summary}");
}

/// Performs plans, each a day after the one before, until the host leaves the state.
fn rounds_in_deprovisioning(mut fixture: Fixture) -> usize {
    for round in 0..12 {
        fixture = fixture.performed().hours_later(24);
        if fixture.state() != State::Deprovisioning {
            return round;
        }
    }
    panic!("it never ends: {}", fixture.summary());
}

#[test]
fn deletion_without_login_of_a_node_that_cannot_be_verified_is_bounded() {
    let refused = deprovisioning()
        .deleted()
        .no_secret()
        .node_with("enroll", json!({ "last_error": "401" }));
    assert!(rounds_in_deprovisioning(refused) > 3);
}

#[test]
fn deletion_of_a_host_that_an_old_ironic_cannot_keep_on_is_bounded() {
    let old = deprovisioning()
        .deleted()
        .spec(json!({ "disablePowerOff": true }))
        .node_with("active", json!({ "disable_power_off": null }))
        .live();
    assert!(rounds_in_deprovisioning(old) > 3);
}
