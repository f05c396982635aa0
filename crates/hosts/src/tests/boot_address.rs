//! A boot MAC address that Ironic accepts for no port.

use serde_json::json;

use super::fixture::{Fixture, UID};
use super::rows::given::written_for;

fn with_long_address(fixture: Fixture) -> Fixture {
    let infiniband = "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0d:3b:5f";
    fixture
        .spec(json!({ "bootMACAddress": infiniband }))
        .with(|fixture| fixture.boot_port_exists = false)
}

#[test]
fn boot_address_that_is_no_port_does_not_stop_a_deletion() {
    let powering_off = || with_long_address(Fixture::new("powering off before delete").deleted());
    let on = json!({ "power_state": "power on" });
    let deleted = powering_off().node_with("available", on).live().summary();
    assert_eq!(deleted, "requests power off, waits for the node");
    let again = powering_off().node("enroll").summary();
    assert_eq!(again, "requests manage, waits for the node");
    let removed = with_long_address(Fixture::new("deprovisioning").status_image("a").deleted())
        .node_with("active", written_for("a", UID))
        .live()
        .with(|fixture| fixture.slot = Some(metal3_ironic::slots::SlotState::Granted))
        .summary();
    assert!(removed.starts_with("requests deleted,"), "{removed}");
}

#[test]
fn boot_address_that_is_no_port_does_not_stop_the_power_of_a_running_host() {
    let provisioned = Fixture::new("provisioned").spec_image("a").status_image("a");
    for inspection in ["agent", "disabled"] {
        let summary = with_long_address(provisioned.clone())
            .spec(json!({ "inspectionMode": inspection }))
            .node_with("active", written_for("a", UID))
            .summary();
        assert!(summary.starts_with("requests power on,"), "{inspection}: {summary}");
    }
    let registering = with_long_address(Fixture::new("registering")).node("enroll").summary();
    assert!(registering.contains("more than 6 pairs"), "{registering}");
}
