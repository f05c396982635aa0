//! A node that an operator of Ironic gave to another instance: nothing is ordered of it.

use metal3_ironic::slots::SlotState;
use serde_json::{Value, json};

use super::fixture::{Fixture, OTHER_UID, image};
use super::rows::given::{deprovisioning, failing, port, provisioning, with, written_for};
use crate::names::FORMER_ANNOTATION;

#[test]
fn nothing_is_ordered_of_a_node_that_serves_another_instance() {
    let external = json!({ "externallyProvisioned": true });
    let image = |fixture: Fixture| fixture.spec_image("a").status_image("a");
    for (name, fixture, state) in [
        (
            "manage",
            Fixture::new("externally provisioned").spec(external.clone()),
            "available",
        ),
        (
            "adopt",
            Fixture::new("externally provisioned").spec(external),
            "manageable",
        ),
        (
            "power on",
            image(Fixture::new("provisioned").spec(json!({ "online": true }))),
            "active",
        ),
        ("inspect", Fixture::new("inspecting"), "manageable"),
        ("recover", Fixture::new("preparing"), "clean failed"),
        ("verify", Fixture::new("registering"), "enroll"),
    ] {
        let other = json!({ "instance_uuid": OTHER_UID, "power_state": "power off" });
        let mut fixture = fixture.node_with(state, other).live().with(|fixture| {
            fixture.ports = Some(vec![port()]);
            fixture.inventory = Some(None);
            fixture.history = Some(None);
            fixture.slot = Some(SlotState::Granted);
        });
        for _ in 0..3 {
            let summary = fixture.summary();
            assert!(!summary.contains("requests"), "{name}: {summary}");
            fixture = fixture.performed().hours_later(9).live();
        }
        let error = fixture.host["status"]["errorMessage"].as_str().unwrap().to_owned();
        assert!(error.contains("serves instance"), "{name}: {error:?}");
    }
}

#[test]
fn maintenance_of_a_node_that_serves_another_instance_is_not_ended() {
    for (fixture, state, fault) in [
        (Fixture::new("preparing"), "clean failed", "clean failure"),
        (
            Fixture::new("deprovisioning").status_image("a"),
            "service failed",
            "service failure",
        ),
    ] {
        let other = json!({ "instance_uuid": OTHER_UID, "maintenance": true, "fault": fault, "last_error": "x" });
        let mut fixture = fixture.node_with(state, other).live().with(|fixture| {
            fixture.ports = Some(vec![port()]);
            fixture.history = Some(None);
            fixture.slot = Some(SlotState::Granted);
        });
        for _ in 0..3 {
            let summary = fixture.summary();
            assert!(!summary.contains("requests"), "{state}: {summary}");
            fixture = fixture.performed().hours_later(9).live();
        }
    }
}

#[test]
fn order_of_volumes_of_another_instance_is_not_cleared() {
    let disks = json!({ "logical_disks": [{ "controller": "software", "size_gb": "MAX", "raid_level": "1" }] });
    let fixture = |instance: Value| {
        let node = json!({ "instance_uuid": instance, "target_raid_config": disks });
        Fixture::new("preparing")
            .status(json!({ "provisioning": { "raid": { "softwareRAIDVolumes": [] } } }))
            .node_with("manageable", node)
            .live()
            .with(|fixture| fixture.ports = Some(vec![port()]))
            .summary()
    };
    assert!(
        fixture(Value::Null).contains("requests set RAID"),
        "{}",
        fixture(Value::Null)
    );
    let summary = fixture(json!(OTHER_UID));
    assert!(!summary.contains("requests"), "{summary}");
}

/// Each such failure would otherwise be repeated only after its backoff.
#[test]
fn what_failed_before_is_retried_once_the_node_serves_no_other_instance() {
    let message = "in Ironic the node serves instance 7, which is not this host; the node is not changed";
    let fixture = |instance: Value| {
        let node = json!({ "last_error": "x", "instance_uuid": instance });
        let fixture = Fixture::new("preparing").status(failing("preparation error", message, 9));
        let fixture = fixture.node_with("clean failed", node).live();
        fixture.with(|fixture| fixture.ports = Some(vec![port()])).summary()
    };
    let summary = fixture(Value::Null);
    assert!(summary.contains("requests manage"), "{summary}");
    let summary = fixture(json!(OTHER_UID));
    assert!(!summary.contains("requests"), "{summary}");
}

/// A moved host has another UID than its node knows; what an externally provisioned host runs is in its spec alone.
#[test]
fn moved_external_host_with_the_image_that_its_node_shows_is_switched_on() {
    for (image, is_on) in [("a", true), ("b", false)] {
        let node = with(written_for("a", OTHER_UID), json!({ "power_state": "power off" }));
        let fixture = Fixture::new("externally provisioned").spec(json!({ "externallyProvisioned": true }));
        let summary = fixture.spec_image(image).node_with("active", node).live().summary();
        assert_eq!(summary.contains("requests power on"), is_on, "{image}: {summary}");
    }
}

#[test]
fn deployment_of_a_moved_host_ends_once_its_former_instance_is_confirmed() {
    let on = |state| provisioning().node_with(state, written_for("a", OTHER_UID)).live();
    let unconfirmed = on("active").summary();
    assert!(unconfirmed.contains("set the annotation"), "{unconfirmed}");
    let confirmed = |state| on(state).annotated(FORMER_ANNOTATION, OTHER_UID).summary();
    assert!(
        confirmed("active").contains("to provisioned"),
        "{}",
        confirmed("active")
    );
    assert!(
        confirmed("available").contains("requests change node"),
        "{}",
        confirmed("available")
    );
}

/// Its new UID is not that of the node: what the status says and what the node runs or gets is the same.
#[test]
fn host_that_moved_while_it_was_deployed_records_its_former_instance() {
    let saved = provisioning()
        .status(json!({ "provisioning": { "ID": "11111111-2222-4333-8444-555555555555" } }))
        .host["status"]
        .to_string();
    let moved = |state: &str, image_of_node: &str| {
        Fixture::new("")
            .spec(json!({ "image": image("a") }))
            .annotated("baremetalhost.metal3.io/status", &saved)
            .node_with(state, written_for(image_of_node, OTHER_UID))
            .live()
            .performed()
    };
    let former = |fixture: Fixture| fixture.host["metadata"]["annotations"][FORMER_ANNOTATION].clone();
    for state in ["deploying", "wait call-back", "deploy failed", "active"] {
        assert_eq!(former(moved(state, "a")), json!(OTHER_UID), "{state}");
        assert_eq!(former(moved(state, "b")), json!(null), "{state}: another image");
    }
    assert_eq!(former(moved("available", "a")), json!(null), "nothing is known to run");
}

/// A free node that serves an instance can be neither deployed nor registered after a move.
#[test]
fn instance_of_a_deployment_that_never_began_leaves_the_node_with_it() {
    let configured = || deprovisioning().node_with("available", written_for("a", super::fixture::UID));
    let summary = configured().summary();
    assert_eq!(summary, "requests change node, replan");
    let waiting = configured().unanswered(20).summary();
    assert_eq!(waiting, "waits for a time", "the deployment may still begin");
    let other = deprovisioning()
        .node_with("available", written_for("a", OTHER_UID))
        .summary();
    assert!(!other.contains("requests"), "{other}");
}
