//! The image is requested again before the deprovisioning was ordered, and the node is not `active` at that moment.

use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::json;

use super::fixture::Fixture;
use super::rows::given::{deprovisioning, provisioned, withheld};

/// `status.provisioning.image` and `spec.image` are the same: nothing asks for an erasure any more.
fn restored(state: &str, node: serde_json::Value) -> Fixture {
    deprovisioning().spec_image("a").node_with(state, node).live()
}

/// Ironic undeploys a node that it services with `deleted` only: until then the system is on the disk.
#[test]
fn image_that_is_requested_again_during_a_service_is_not_removed() {
    for (state, node) in [
        ("servicing", json!({})),
        ("service wait", json!({})),
        ("service failed", json!({})),
        (
            "service failed",
            json!({ "maintenance": true, "fault": "service failure" }),
        ),
    ] {
        let summary = restored(state, node).summary();
        assert!(!summary.contains("requests deleted"), "{state}: {summary}");
        assert!(summary.contains("to provisioned"), "{state}: {summary}");
    }
}

/// Ironic lost its database before the order was sent: the machine runs what is wanted.
#[test]
fn image_that_is_requested_again_is_not_cleaned_from_the_machine_of_a_node_that_ironic_lost() {
    let summary = restored("manageable", json!({})).summary();
    assert!(!summary.contains("requests provide"), "{summary}");
}

#[test]
fn image_that_is_requested_again_stays_in_each_state_of_a_node_that_nothing_was_removed_from() {
    for state in [
        "service hold",
        "rescue",
        "rescuing",
        "rescue wait",
        "rescue failed",
        "unrescuing",
        "unrescue failed",
        "enroll",
        "verifying",
        "adopting",
        "adopt failed",
        "inspect failed",
    ] {
        let summary = restored(state, json!({})).summary();
        assert!(summary.contains("to provisioned"), "{state}: {summary}");
    }
}

#[test]
fn removal_that_has_begun_is_completed_though_the_image_is_requested_again() {
    for (state, continued) in [
        ("manageable", "requests provide"),
        ("adopt failed", "requests manage"),
        ("error", "requests deleted"),
    ] {
        let begun = restored(state, json!({})).with(|fixture| fixture.erasing = Observed::Present(()));
        let summary = begun.hours_later(9).performed().live().hours_later(9).summary();
        assert!(summary.contains(continued), "{state}: {summary}");
    }
}

/// Neither answer can be taken back.
#[test]
fn removal_that_another_process_may_have_begun_is_an_error_until_the_user_decides() {
    let unknown = |fixture: &mut Fixture| fixture.erasing = Observed::Unknown(UnknownReason::NotRead);
    let waits = restored("manageable", json!({})).with(unknown);
    let summary = waits.summary();
    assert!(!summary.contains("requests"), "{summary}");
    assert!(
        summary.contains("it is not known whether its removal has begun"),
        "{summary}"
    );
    let kept = waits.clone().performed().node("active").live().summary();
    assert!(kept.contains("to provisioned"), "{kept}");
    let removed = waits.performed().spec(json!({ "image": null })).summary();
    assert!(removed.contains("requests provide"), "{removed}");
}

#[test]
fn confirmation_ends_with_the_hold_that_it_answered() {
    let confirm = "baremetalhost.metal3.io/confirm-deprovision";
    let on = json!({ "power_state": "power on" });
    let reverted = withheld().annotated(confirm, "").node_with("active", on).performed();
    assert_eq!(reverted.host["metadata"]["annotations"].get(confirm), None);
    // One that is set before the change, without a hold, waits for it.
    let early = provisioned()
        .annotated(confirm, "")
        .node_with("active", json!({ "power_state": "power on" }));
    assert_eq!(
        early.performed().host["metadata"]["annotations"].get(confirm),
        Some(&json!(""))
    );
}

/// The brake would be off for the next change, which is not confirmed.
#[test]
fn confirmation_ends_with_the_removal_that_it_confirmed() {
    let confirm = "baremetalhost.metal3.io/confirm-deprovision";
    let restored = restored("active", json!({}))
        .annotated(confirm, "")
        .performed()
        .performed();
    assert_eq!(restored.state().to_string(), "provisioned");
    let again = restored.spec(json!({ "image": null })).with(|fixture| fixture.left = 0);
    assert!(
        again.summary().contains("withheld: DeprovisionBudgetSpent"),
        "{}",
        again.summary()
    );
}
