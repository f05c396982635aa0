//! How many failures a tear-down may have does not depend on what failed before it.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;
use serde_json::json;

use super::rows::given::provisioning;
use super::scene::Scene;

/// The host after the plan, in a view that the next pass has.
fn next(scene: Scene) -> Scene {
    let plan = scene.plan();
    let host = serde_json::to_value(scene.after(&plan)).unwrap();
    scene.with(|scene| scene.host = host)
}

/// The failures of its tear-down after which a deleted host goes without.
fn failures_until_given_up(deprovisioning: Scene) -> usize {
    let mut scene = deprovisioning
        .deleted()
        .node_with("clean failed", json!({ "last_error": "disk" }));
    for failures in 0..12 {
        scene = next(scene);
        if scene.state() != State::Deprovisioning {
            return failures;
        }
        // The next attempt is due, and fails the same way.
        scene = next(scene.later(24));
    }
    panic!("it never goes: {}", scene.host);
}

#[test]
fn each_host_has_the_same_number_of_attempts_to_be_torn_down() {
    let counts = |errors: i64, deployments: i64| json!({ "errorCount": errors, "provisioningFailCount": deployments });
    let mut wrong = Vec::new();
    for (errors, deployments) in [(0, 0), (1, 1), (4, 0), (4, 4), (5, 1), (7, 2)] {
        let begun = || provisioning().status(counts(errors, deployments));
        let ways = [
            (
                "its deployment failed",
                begun().node_with("deploy failed", json!({ "last_error": "no room" })),
            ),
            (
                "its image was taken off",
                begun().spec(json!({ "image": null })).node("deploying"),
            ),
            ("it is deleted", begun().deleted().node("deploying")),
        ];
        for (why, scene) in ways {
            let scene = next(scene);
            assert_eq!(scene.state(), State::Deprovisioning);
            let failures = failures_until_given_up(scene);
            if failures != 4 {
                wrong.push(format!("{errors}/{deployments}, {why}: {failures}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
