//! Reboots of a machine that is never off: one for each request, whatever writes are lost.

use serde_json::{Value, json};

use super::fixture::{Fixture, requests};
use super::rows::given::{failing, provisioned};
use crate::action::Action;
use crate::facts::{NodeMark, RequestedReboot};

const FAILED: &str = "Reboot operation failed: Failed to change power state to 'power on' by 'rebooting': no answer";

/// Its reboot was requested by this process, and Ironic does not hold the node any more.
fn rebooted(node: Value) -> Fixture {
    let on = json!({ "power_state": "power on", "disable_power_off": true });
    let fixture = provisioned()
        .spec(json!({ "disablePowerOff": true }))
        .node_with("active", on)
        .with(|fixture| fixture.requested_reboot = Some(RequestedReboot::Accepted));
    fixture.with(|fixture| {
        let known = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
        metal3_runtime::patch::apply(&node, known);
    })
}

fn ends_request(fixture: &Fixture) -> bool {
    fixture.plan().actions.contains(&Action::EndPowerRequest)
}

/// The status that clears the error of the first attempt is written after the request of the second.
#[test]
fn repeated_reboot_whose_status_write_was_lost_is_not_repeated_again() {
    let over = rebooted(json!({}))
        .annotated("reboot.metal3.io", "")
        .live()
        .status(failing("power management error", FAILED, 1))
        .hours_later(1);
    assert_eq!(requests(&over.plan()).count(), 0, "{}", over.summary());
    assert_eq!(over.summary(), "changes the host, replan");
    assert!(ends_request(&over));
}

#[test]
fn each_failure_of_a_reboot_is_recorded_once() {
    let error = json!({ "last_error": FAILED.trim_start_matches("Reboot operation failed: ") });
    let first = rebooted(error).annotated("reboot.metal3.io", "").live();
    // The same error as before, and the status write of the second attempt was lost.
    let again = first
        .clone()
        .status(failing("power management error", FAILED, 1))
        .hours_later(1);
    for (fixture, count) in [(first, 1), (again, 2)] {
        let summary = fixture.summary();
        assert!(summary.ends_with("waits for a time"), "{summary}");
        assert_eq!(requests(&fixture.plan()).count(), 0, "{summary}");
        assert!(ends_request(&fixture), "the record stands for it from now on");
        let recorded = fixture.performed().with(|fixture| fixture.requested_reboot = None);
        assert_eq!(recorded.host["status"]["errorMessage"], FAILED);
        assert_eq!(recorded.host["status"]["errorCount"], count);
        assert_eq!(recorded.summary(), "waits for a time");
        let due = recorded.hours_later(9);
        assert!(due.summary().starts_with("requests rebooting"), "{}", due.summary());
        assert!(!ends_request(&due), "the new request is in progress");
    }
}

/// Otherwise the next request, days later, is taken for the one that ended.
#[test]
fn reboot_that_is_not_requested_any_more_ends_its_request() {
    let off = rebooted(json!({})).spec(json!({ "online": false }));
    let kept_off = rebooted(json!({})).annotated("reboot.metal3.io/client", "");
    for fixture in [off, kept_off, rebooted(json!({}))] {
        assert!(ends_request(&fixture), "{}", fixture.summary());
        let before = fixture.with(|fixture| fixture.requested_reboot = None);
        assert!(!ends_request(&before), "{}", before.summary());
        let requested = before.annotated("reboot.metal3.io", "").live();
        let summary = requested.summary();
        assert!(summary.starts_with("requests soft rebooting"), "{summary}");
    }
}

/// Ironic changes the node when it accepts the order, and again at its end.
#[test]
fn reboot_without_a_response_is_ordered_again_only_if_the_node_is_as_before() {
    let at = |second: i64| json!({ "updated_at": crate::tests::fixture::at(second) });
    let node = |change: Value| {
        let mut node = crate::tests::fixture::node("active");
        metal3_runtime::patch::apply(&change, &mut node);
        serde_json::from_value(node).unwrap()
    };
    let before = RequestedReboot::Unanswered(NodeMark::of(&node(at(0))));
    let unanswered = |change: Value| {
        let fixture = rebooted(at(0)).annotated("reboot.metal3.io", "").live();
        fixture.with(|fixture| {
            fixture.requested_reboot = Some(before.clone());
            let known = &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0;
            metal3_runtime::patch::apply(&change, known);
        })
    };
    let accepted = json!({ "target_power_state": "power on", "reservation": "c1" });
    for (given, change, then) in [
        ("as before", json!({}), "requests soft rebooting, waits for the node"),
        ("in progress, in the same second", accepted, "waits for a time"),
        ("over", at(3), "changes the host, replan"),
    ] {
        assert_eq!(unanswered(change).summary(), then, "{given}");
    }
    let failed = json!({ "last_error": FAILED.trim_start_matches("Reboot operation failed: "), "updated_at": crate::tests::fixture::at(9) });
    assert!(unanswered(failed).summary().contains(FAILED));
}

/// Otherwise a conductor that restarts again and again gets the request each time, without a record.
#[test]
fn aborted_power_off_is_reported_and_repeated_later_in_the_same_mode() {
    let error = "Pending power operation was aborted due to conductor restart";
    let aborted = provisioned()
        .spec(json!({ "online": false }))
        .node_with("active", json!({ "power_state": "power on", "last_error": error }))
        .with(|fixture| fixture.requested_power = Some(false))
        .live();
    assert_eq!(requests(&aborted.plan()).count(), 0, "{}", aborted.summary());
    let recorded = aborted.performed();
    assert_eq!(
        recorded.host["status"]["errorMessage"],
        format!("PowerOff operation failed: {error}")
    );
    assert_eq!(recorded.host["status"]["errorCount"], 1);
    let due = recorded.hours_later(9);
    assert!(
        due.summary().starts_with("requests soft power off"),
        "{}",
        due.summary()
    );
}
