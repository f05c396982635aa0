//! The number of deprovisioning attempts does not depend on earlier failures.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;
use serde_json::json;

use super::fixture::Fixture;
use super::rows::given::provisioning;

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
