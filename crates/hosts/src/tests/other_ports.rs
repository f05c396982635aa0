//! A boot MAC address that is a port of another node.

use std::time::Duration;

use metal3_domain::allowed::Allowed;
use metal3_runtime::work::{Next, WaitingOn};
use serde_json::json;

use super::fixture::{Fixture, UID};
use super::rows::given::{deprovisioning, provisioned, provisioning, withheld, written, written_for};
use crate::facts::RefusalClass;

fn refused(fixture: Fixture) -> Fixture {
    let fixture = fixture.with(|fixture| {
        fixture.boot_port_exists = false;
        fixture.ports = Some(Vec::new());
    });
    fixture.refused("create port", RefusalClass::Invalid, "a port with this address exists")
}

#[test]
fn port_of_another_node_stops_nothing_of_a_host_that_does_not_boot_from_it() {
    let on = || json!({ "power_state": "power on" });
    for (fixture, expected) in [
        (
            provisioned().spec(json!({ "online": false })).node_with("active", on()),
            "requests soft power off",
        ),
        (provisioned().node("manageable"), "requests adopt"),
        (provisioned().node("enroll"), "requests manage"),
        (
            deprovisioning().node_with("active", written_for("a", UID)),
            "requests deleted",
        ),
    ] {
        for is_fresh in [true, false] {
            let fixture =
                refused(fixture.clone().live()).with(|fixture| fixture.refused.as_mut().unwrap().is_fresh = is_fresh);
            let summary = fixture.summary();
            assert!(summary.contains(expected), "{summary}");
            assert!(summary.contains("withheld: BootPortRefused"), "{summary}");
        }
    }
}

#[test]
fn port_of_another_node_is_reported_once() {
    let settled = refused(provisioned().node_with("active", json!({ "power_state": "power on" }))).performed();
    let plan = settled.plan();
    assert!(plan.status.is_none(), "{}", settled.summary());
    assert!(
        settled.summary().contains("withheld: BootPortRefused"),
        "{}",
        settled.summary()
    );
}

#[test]
fn port_of_another_node_stops_a_deployment() {
    let summary = refused(provisioning().node_with("available", written("a")).live()).summary();
    assert!(
        summary.contains("error: Ironic rejected the request (create port)"),
        "{summary}"
    );
}

/// No change of the host or its node follows the remedy that the condition names.
#[test]
fn port_of_another_node_is_tried_again_while_the_host_is_at_rest() {
    let settled = refused(provisioned().node_with("active", json!({ "power_state": "power on" }))).performed();
    let plan = settled.plan();
    let Next::Waiting(WaitingOn { recheck, .. }) = plan.next else {
        panic!("{:?}", plan.next)
    };
    assert_eq!(recheck, Some(Duration::from_hours(1)));
    let conditions = settled.host["status"]["conditions"].to_string();
    assert!(conditions.contains("about every hour"), "{conditions}");
}

/// The status alone records that the budget withholds the host.
#[test]
fn port_of_another_node_does_not_replace_the_limit_of_deprovisionings() {
    let allowed = Allowed::parse(["192.0.2.9"]).unwrap();
    let withheld = refused(withheld().node_with("active", json!({ "power_state": "power on" })))
        .spec(json!({ "image": { "url": "http://198.51.100.9/b.qcow2" } }))
        .with(|fixture| fixture.settings.image_hosts = allowed);
    let summary = withheld.summary();
    assert!(summary.contains("--allowed-image-hosts"), "{summary}");
    assert!(summary.contains("withheld: DeprovisionBudgetSpent"), "{summary}");
}
