//! A node that an operator maintains is not operated, whatever failed before.

use serde_json::json;

use super::fixture::Fixture;
use super::rows::given::{available, deprovisioning, failing, inspecting};

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

/// Ironic cannot reach the BMC: its fault is not that of the cleaning.
#[test]
fn power_failure_of_a_node_whose_cleaning_failed_is_not_ended() {
    let node = json!({ "last_error": "x", "maintenance": true, "fault": "power failure" });
    let summary = available()
        .node_with("clean failed", node)
        .status(failing("preparation error", "x", 1))
        .hours_later(1)
        .summary();
    assert!(
        summary.contains("cannot reach the BMC") && !summary.contains("requests"),
        "{summary}"
    );
}

#[test]
fn maintenance_that_ironic_set_for_a_failed_cleaning_is_ended() {
    for fault in [json!("clean failure"), json!(null)] {
        let node = json!({ "last_error": "x", "maintenance": true, "fault": fault });
        let summary = available()
            .node_with("clean failed", node)
            .status(failing("preparation error", "x", 1))
            .hours_later(1)
            .summary();
        assert!(
            summary.contains("requests clear maintenance, requests manage"),
            "{summary}"
        );
    }
}
