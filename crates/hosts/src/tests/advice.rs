//! What an error advises can be done, and leads to what it says.

use serde_json::json;

use super::fixture::{OTHER_UID, UID, requests};
use super::rows::given::{failing, inspecting, registering, written_for};
use crate::action::Request;

const ADVICE: &str = "create it again with spec.externallyProvisioned";

#[test]
fn host_over_a_running_system_is_created_again_without_a_change_of_the_machine() {
    for (fixture, advised) in [
        (
            registering().node_with("active", written_for("a", OTHER_UID)),
            json!({}),
        ),
        (registering().node_with("active", written_for("a", UID)), json!({})),
        (inspecting().node("active"), json!({ "disablePowerOff": true })),
    ] {
        let shown = fixture.summary();
        assert!(shown.contains(ADVICE), "{shown}");
        for field in advised.as_object().unwrap().keys() {
            assert!(shown.contains(&format!("spec.{field}")), "{shown}");
        }
        let mut deleted = fixture.spec(advised).deleted().live();
        for _ in 0..4 {
            for request in requests(&deleted.plan()) {
                let is_of_record = matches!(request, Request::SetMaintenance(..) | Request::DeleteNode(_));
                assert!(is_of_record, "{}", request.verb());
            }
            deleted = deleted.performed();
        }
        assert_eq!(deleted.state().to_string(), "deleting");
    }
    let again = registering()
        .spec(json!({ "externallyProvisioned": true }))
        .node_with("active", written_for("a", OTHER_UID));
    assert_eq!(again.summary(), "writes the status, to externally provisioned, replan");
}

/// An inspection boots the agent.
#[test]
fn machine_that_runs_something_by_its_spec_is_not_inspected() {
    let external = || inspecting().spec(json!({ "externallyProvisioned": true }));
    for fixture in [
        external()
            .node("manageable")
            .with(|fixture| fixture.inventory = Some(None)),
        external()
            .node_with("inspect failed", json!({ "last_error": "x" }))
            .status(failing("inspection error", "x", 1))
            .hours_later(1),
    ] {
        let summary = fixture.summary();
        assert!(summary.contains(ADVICE) && !summary.contains("requests"), "{summary}");
    }
}
