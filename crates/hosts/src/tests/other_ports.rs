//! A boot MAC address that is a port of another node.

use std::time::Duration;

use metal3_domain::allowed::Allowed;
use metal3_runtime::work::{Next, WaitingOn};
use serde_json::json;

use super::fixture::{Fixture, MAC, UID, requests};
use super::rows::given::{deprovisioning, provisioned, provisioning, withheld, written, written_for};
use crate::action::Request;
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

/// The addresses of the ports that the plan creates.
fn created(fixture: &Fixture) -> Vec<String> {
    let address = |request: &Request| match request {
        Request::CreatePort { address, .. } => Some(address.to_string()),
        _ => None,
    };
    requests(&fixture.plan()).filter_map(address).collect()
}

#[test]
fn rejected_port_leaves_out_no_other_one() {
    const OTHERS: [&str; 2] = ["52:54:00:00:00:02", "52:54:00:00:00:03"];
    let cards = json!({ "hardware": { "nics": OTHERS.map(|mac| json!({ "name": mac, "mac": mac })) } });
    let left = |address: &str| format!("A port with MAC address {address} already exists.");
    for fixture in [
        deprovisioning().node_with("active", written_for("a", UID)),
        deprovisioning().node("enroll"),
        provisioned().node("enroll"),
    ] {
        let fixture = fixture.live().status(cards.clone());
        let after = |message: &str| {
            let fixture = refused(fixture.clone());
            fixture.refused("create port", RefusalClass::Invalid, message)
        };
        let one = after(&left(&MAC.to_uppercase()));
        assert_eq!(created(&one), OTHERS, "{}", one.summary());
        let two = after(&format!("{}; {}", left(MAC), left(OTHERS[0])));
        assert_eq!(created(&two), OTHERS[1..], "{}", two.summary());
        let unnamed = after("this project may not create ports");
        assert!(created(&unnamed).is_empty(), "{}", unnamed.summary());
    }
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
