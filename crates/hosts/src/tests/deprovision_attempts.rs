//! The number of attempts to deprovision, or to power off before the deletion.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;
use serde_json::json;

use super::fixture::{Fixture, UID};
use super::rows::given::{deprovisioning, failing, powering_off, provisioning, written_for};
use crate::facts::RefusalClass;

/// The number of failures after which a deletion skips deprovisioning.
fn failures_until_given_up(deprovisioning: Fixture) -> usize {
    let mut fixture = deprovisioning
        .deleted()
        .node_with("clean failed", json!({ "last_error": "disk" }));
    for failures in 0..12 {
        fixture = fixture.performed();
        if fixture.state() != State::Deprovisioning {
            return failures;
        }
        // The next attempt is due, and fails the same way.
        fixture = fixture.hours_later(24).performed();
    }
    panic!("never given up: {}", fixture.host);
}

#[test]
fn each_host_has_the_same_number_of_deprovisioning_attempts() {
    let counts = |errors: i64, deployments: i64| json!({ "errorCount": errors, "provisioningFailCount": deployments });
    let mut violations = Vec::new();
    for (errors, deployments) in [(0, 0), (1, 1), (4, 0), (4, 4), (5, 1), (7, 2)] {
        let begun = || provisioning().status(counts(errors, deployments));
        let cases = [
            (
                "its deployment failed",
                begun().node_with("deploy failed", json!({ "last_error": "no room" })),
            ),
            (
                "its image was removed",
                begun().spec(json!({ "image": null })).node("deploying"),
            ),
            ("it is deleted", begun().deleted().node("deploying")),
        ];
        for (why, fixture) in cases {
            let fixture = fixture.performed();
            assert_eq!(fixture.state(), State::Deprovisioning);
            let failures = failures_until_given_up(fixture);
            if failures != 4 {
                violations.push(format!("{errors}/{deployments}, {why}: {failures}"));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Failures that are no attempts at all, or attempts that the user could wait for.
#[test]
fn failures_before_a_deletion_are_no_attempts_of_it() {
    let missing = "BMC CredentialsName secret doesn't exist: create Secret bmc with username and password";
    for (kind, message) in [
        ("registration error", missing),
        ("provisioning error", "the node is in maintenance (x)"),
    ] {
        let begun = deprovisioning()
            .status(failing(kind, message, 3))
            .no_secret()
            .node_with("active", written_for("a", UID))
            .performed();
        assert_eq!(begun.host["status"]["conditions"][0]["observedGeneration"], 1);
        let deleted = begun
            .deleted()
            .host(json!({ "metadata": { "generation": 2 } }))
            .status(failing(kind, message, 9))
            .live();
        let summary = deleted.summary();
        assert!(summary.starts_with("requests deleted"), "{kind}: {summary}");
        assert_eq!(deleted.performed().host["status"]["errorCount"], 0, "{kind}");
    }
}

#[test]
fn deletion_during_deprovisioning_has_all_its_attempts() {
    let begun = deprovisioning()
        .status(
            json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Error", "message": "x",
            "observedGeneration": 1, "lastTransitionTime": super::fixture::at(0) }] }),
        )
        .status(failing("registration error", "the Secret is missing", 7))
        .host(json!({ "metadata": { "generation": 2 } }));
    assert_eq!(failures_until_given_up(begun), 4);
}

/// The first status of the deletion is written by what delays it, and records the new generation.
#[test]
fn deletion_that_something_delays_at_first_has_all_its_attempts() {
    let begun = || {
        deprovisioning()
            .status(
                json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Error", "message": "x",
            "observedGeneration": 1, "lastTransitionTime": super::fixture::at(0) }] }),
            )
            .status(failing("registration error", "the Secret is missing", 7))
            .host(json!({ "metadata": { "generation": 2 } }))
            .node_with("clean failed", json!({ "last_error": "disk" }))
            .deleted()
    };
    let detached = "baremetalhost.metal3.io/detached";
    let by_annotation = begun().annotated(detached, r#"{"deleteAction":"delay"}"#);
    for (why, delayed) in [
        ("Ironic is unreachable", begun().ironic_unreachable()),
        ("the annotation delays it", by_annotation),
    ] {
        let delayed = delayed.performed();
        assert_eq!(
            delayed.host["status"]["conditions"][0]["observedGeneration"], 2,
            "{why}"
        );
        let goes_on = delayed
            .with(|fixture| fixture.outage = None)
            .host(json!({ "metadata": { "annotations": { detached: null } } }));
        assert_eq!(failures_until_given_up(goes_on), 4, "{why}");
    }
}

/// The number of rejections of the power-off after which the deletion goes on without it, if it does.
fn rejections_until_given_up(is_lock: bool) -> Option<usize> {
    let node = json!({ "power_state": "power on", "reservation": "c1" });
    let mut fixture = powering_off().node_with("available", node);
    for rejections in 0..12 {
        // The next attempt is due.
        fixture = fixture.hours_later(24).performed();
        if fixture.state() != State::PoweringOffBeforeDelete {
            return Some(rejections);
        }
        let rejected = fixture.refused("power off", RefusalClass::ServerError, "500: no database");
        let rejected = rejected.with(|fixture| {
            let refused = fixture.refused.as_mut().unwrap();
            (refused.is_fresh, refused.is_lock) = (true, is_lock);
        });
        fixture = rejected.performed().with(|fixture| {
            fixture.refused.as_mut().unwrap().is_fresh = false;
        });
    }
    None
}

/// There is nothing to clean any more.
#[test]
fn powering_off_that_ironic_cannot_do_has_the_same_number_of_attempts() {
    assert_eq!(rejections_until_given_up(false), Some(4));
    assert_eq!(rejections_until_given_up(true), None, "a lock ends, or is ended");
}
