//! Which failures of a deploy step count: no field of the host records the step that failed.

use serde_json::{Value, json};

use super::fixture::{Fixture, at};
use super::rows::given::configured_for_step;

fn asking(state: &str, method: &str) -> Fixture {
    Fixture::new(state)
        .spec(json!({ "customDeploy": { "method": method } }))
        .status(json!({ "provisioningFailCount": 4 }))
}

fn count(fixture: Fixture) -> i64 {
    let count = &fixture.performed().host["status"]["provisioningFailCount"];
    count.as_i64().unwrap_or_default()
}

/// The status of a host whose spec was edited since.
fn edited() -> Value {
    json!({ "metadata": { "generation": 2 }, "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "Error",
        "message": "", "lastTransitionTime": at(0), "observedGeneration": 1 }] } })
}

/// The status is written in each of these states, and then shows the edit no more.
#[test]
fn edit_begins_the_attempts_again_in_whatever_state_it_arrives() {
    for (state, node) in [
        ("deprovisioning", "cleaning"),
        ("preparing", "cleaning"),
        ("provisioning", "cleaning"),
    ] {
        let host = || asking(state, "install").node(node);
        assert_eq!(count(host()), 4, "{state}");
        assert_eq!(count(host().host(edited())), 0, "{state}");
        let image = host().host(edited()).spec(json!({ "customDeploy": null }));
        assert_eq!(
            count(image.spec_image("a")),
            4,
            "{state}: of an image, the image decides"
        );
    }
}

#[test]
fn failure_of_a_former_step_is_none_of_the_step_that_is_asked_for() {
    for (method, expected) in [("install", 5), ("other", 0)] {
        let failed = super::rows::given::with(configured_for_step("install"), json!({ "last_error": "no" }));
        let host = asking("provisioning", method).node_with("deploy failed", failed);
        assert_eq!(count(host), expected, "{method}");
    }
}
