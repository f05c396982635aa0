//! A node that an operator maintains is not operated, whatever failed before.

use serde_json::json;

use super::fixture::Fixture;
use super::rows::given::{available, deprovisioning, failing, inspecting, provisioned, provisioning};

fn maintained(fixture: Fixture, state: &str, kind: &str) -> Fixture {
    let node = json!({ "last_error": "x", "maintenance": true, "maintenance_reason": "disk swap" });
    fixture
        .node_with(state, node)
        .live()
        .status(failing(kind, "x", 1))
        .hours_later(1)
}

#[test]
fn failed_node_in_maintenance_is_left_unchanged() {
    for (fixture, state, kind) in [
        (inspecting(), "inspect failed", "inspection error"),
        (inspecting(), "adopt failed", "inspection error"),
        (
            inspecting().annotated("reboot.metal3.io", r#"{"force":true}"#),
            "inspect failed",
            "inspection error",
        ),
        (available(), "inspect failed", "preparation error"),
        (available(), "adopt failed", "preparation error"),
        (deprovisioning(), "error", "provisioning error"),
        (deprovisioning(), "inspect failed", "provisioning error"),
    ] {
        let summary = maintained(fixture, state, kind).summary();
        assert!(
            summary.contains("the node is in maintenance (disk swap)") && !summary.contains("requests"),
            "{state}: {summary}"
        );
    }
}

/// The status named the maintenance after its end, and the retry waited for a backoff that the maintenance made longer.
#[test]
fn what_failed_before_a_maintenance_is_retried_when_the_maintenance_ends() {
    for (fixture, state, kind, retried) in [
        (inspecting(), "inspect failed", "inspection error", "requests inspect"),
        (inspecting(), "adopt failed", "inspection error", "requests manage"),
        (available(), "inspect failed", "preparation error", "requests manage"),
        (deprovisioning(), "error", "provisioning error", "requests deleted"),
        (
            deprovisioning(),
            "inspect failed",
            "provisioning error",
            "requests manage",
        ),
    ] {
        let maintained = maintained(fixture, state, kind).performed();
        assert_eq!(
            maintained.host["status"]["errorCount"], 1,
            "{state}: a maintenance is no attempt"
        );
        let ended = maintained.node_with(state, json!({ "last_error": "x" })).live();
        let summary = ended.summary();
        assert!(
            summary.contains(retried) && summary.contains("error cleared"),
            "{state}: {summary}"
        );
    }
}

#[test]
fn maintenance_during_a_backoff_is_reported_at_once() {
    for (fixture, state, kind) in [
        (inspecting(), "inspect failed", "inspection error"),
        (deprovisioning(), "error", "provisioning error"),
        (available(), "adopt failed", "preparation error"),
    ] {
        let summary = maintained(fixture, state, kind).hours_later(-1).summary();
        assert!(
            summary.contains("the node is in maintenance (disk swap)"),
            "{state}: {summary}"
        );
    }
}

/// The plan for a node in maintenance whose cleaning failed, once a retry is due.
fn after_failed_cleaning(fault: &serde_json::Value) -> String {
    let node = json!({ "last_error": "x", "maintenance": true, "fault": fault });
    available()
        .node_with("clean failed", node)
        .live()
        .status(failing("preparation error", "x", 1))
        .hours_later(1)
        .summary()
}

#[test]
fn of_a_failed_cleaning_only_the_maintenance_that_ironic_set_for_it_is_ended() {
    let summary = after_failed_cleaning(&json!("clean failure"));
    assert!(
        summary.contains("requests clear maintenance, requests manage"),
        "{summary}"
    );
    // Ironic cannot reach the BMC; or an operator set it, after he ended that of Ironic.
    for (fault, why) in [
        (json!("power failure"), "cannot reach the BMC"),
        (json!(null), "is in maintenance"),
    ] {
        let summary = after_failed_cleaning(&fault);
        assert!(summary.contains(why) && !summary.contains("requests"), "{summary}");
    }
}

/// The reason of the maintenance is the error of the cleaning only if Ironic began it.
#[test]
fn maintenance_of_an_operator_is_not_ended_because_a_cleaning_failed_during_it() {
    let plan = |reason: &str| {
        let node =
            json!({ "last_error": "x", "maintenance": true, "maintenance_reason": reason, "fault": "clean failure" });
        deprovisioning()
            .node_with("clean failed", node)
            .live()
            .status(failing("provisioning error", "Cleaning failed: x", 1))
            .hours_later(1)
            .summary()
    };
    assert!(
        plan("x").contains("requests clear maintenance, requests manage"),
        "{}",
        plan("x")
    );
    let summary = plan("disk swap");
    assert!(
        !summary.contains("requests") && summary.contains("the node is in maintenance (disk swap)"),
        "{summary}"
    );
}

#[test]
fn reason_of_a_maintenance_is_compared_with_what_is_still_known_of_the_failure() {
    let (own, other) = ("requests clear maintenance", "the node is in maintenance (x)");
    let known = json!("x");
    for (last_error, recorded, history, expected) in [
        (json!("power"), "Cleaning failed: x", None, own),
        (json!(null), "Cleaning failed: y", None, "reads History"),
        (json!(null), "Cleaning failed: y", Some(Some("x")), own),
        (json!(null), "Cleaning failed: y", Some(Some("y")), other),
        (json!(null), "Cleaning failed: y", Some(None), other),
        (json!("y"), "Cleaning failed: y", None, other),
    ] {
        let node = json!({ "last_error": last_error, "maintenance": true, "maintenance_reason": known, "fault": "clean failure" });
        let summary = deprovisioning()
            .node_with("clean failed", node)
            .live()
            .status(failing("provisioning error", recorded, 1))
            .with(|fixture| fixture.history = history.map(|error| error.map(str::to_owned)))
            .hours_later(1)
            .summary();
        assert!(
            summary.contains(expected),
            "{last_error}, {recorded}, {history:?}: {summary}"
        );
    }
}

#[test]
fn maintenance_of_an_operator_is_not_ended_because_a_service_failed_during_it() {
    let node = |reason| json!({ "last_error": "x", "maintenance": true, "maintenance_reason": reason, "fault": "service failure" });
    for fixture in [provisioned(), provisioning()] {
        let failed = |reason| {
            let fixture = fixture.clone().node_with("service failed", node(reason)).live();
            fixture
                .status(failing("servicing error", "x", 1))
                .hours_later(1)
                .summary()
        };
        assert!(
            failed("x").contains("requests clear maintenance, requests abort"),
            "{}",
            failed("x")
        );
        let summary = failed("disk swap");
        assert!(
            !summary.contains("requests") && summary.contains("in maintenance (disk swap)"),
            "{summary}"
        );
    }
    let removed = deprovisioning().node_with("service failed", node("disk swap")).live();
    let removed = removed
        .with(|fixture| fixture.history = Some(Some("x".to_owned())))
        .summary();
    assert!(
        !removed.contains("requests") && removed.contains("in maintenance (disk swap)"),
        "{removed}"
    );
}

/// Ironic ignores the agent then, and knows no timeout.
#[test]
fn operation_that_waits_for_its_agent_in_a_maintenance_is_reported_and_goes_on_after_it() {
    let maintained = json!({ "maintenance": true, "maintenance_reason": "disk swap" });
    for (fixture, state) in [
        (provisioning(), "wait call-back"),
        (provisioning(), "inspect wait"),
        (inspecting(), "inspect wait"),
        (available(), "inspect wait"),
        (deprovisioning(), "inspect wait"),
        (provisioned(), "service wait"),
    ] {
        let fixture = fixture.node_with(state, maintained.clone());
        let summary = fixture.summary();
        assert!(
            summary.contains("the node is in maintenance (disk swap)") && !summary.contains("requests"),
            "{state}: {summary}"
        );
        let ended = fixture.performed().node(state);
        assert!(
            ended.summary().contains("error cleared"),
            "{state}: {}",
            ended.summary()
        );
    }
}
