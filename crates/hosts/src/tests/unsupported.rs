//! Wishes that are not supported: an error of the state that would fulfil them.

use serde_json::{Value, json};

use super::fixture::{Fixture, image};

/// Each field with a wish. Without an image nothing is provisioned.
fn wishes() -> [(&'static str, Value); 1] {
    [("inspectionMode", json!("fast"))]
}

fn host(state: &str) -> Fixture {
    Fixture::new(state).spec(json!({ "image": image("a") }))
}

/// With a registration error, the Go manager that gets the host back offers it without what was asked.
#[test]
fn unsupported_wish_is_an_error_of_the_state_of_its_host() {
    for (field, wish) in wishes() {
        for (state, node, kind) in [
            ("registering", "manageable", "registration error"),
            ("inspecting", "manageable", "inspection error"),
            ("preparing", "manageable", "preparation error"),
            ("available", "available", "preparation error"),
            ("provisioning", "available", "provisioning error"),
        ] {
            let asking = host(state).spec(json!({ field: wish })).node(node).performed();
            let status = &asking.host["status"];
            let message = status["errorMessage"].as_str().unwrap();
            assert!(message.starts_with(&format!("spec.{field}")), "{state}: {message}");
            assert_eq!(status["errorType"], kind, "{field}, {state}");
            assert_eq!(status["provisioning"]["state"], state, "{field}");
        }
    }
}

/// The errors of a state are otherwise those of its operation.
#[test]
fn removed_wish_is_not_taken_for_the_failure_that_the_node_shows() {
    for (field, wish) in wishes() {
        for (state, node) in [
            ("inspecting", "inspect failed"),
            ("preparing", "clean failed"),
            ("available", "clean failed"),
            ("provisioning", "clean failed"),
        ] {
            let failed = json!({ "last_error": "no disk" });
            let given = host(state).node_with(node, failed);
            let asking = given.clone().spec(json!({ field: wish })).performed();
            let removed = given.with(|fixture| fixture.host["status"] = asking.host["status"].clone());
            assert_eq!(
                removed.summary(),
                "writes the status, error cleared, replan",
                "{field}, {state}"
            );
            let failed = removed.performed().performed();
            let message = failed.host["status"]["errorMessage"].as_str().unwrap();
            assert!(message.ends_with("no disk"), "{field}, {state}: {message}");
        }
    }
}

/// A version before that of deploy steps recorded it.
#[test]
fn recorded_rejection_of_a_deploy_step_ends() {
    let rejected = "spec.customDeploy is not supported yet: custom deploy steps; remove it and set spec.image";
    let host = Fixture::new("available")
        .spec(json!({ "customDeploy": { "method": "install" } }))
        .status(super::rows::given::failing("preparation error", rejected, 1))
        .node("available");
    assert_eq!(host.summary(), "writes the status, error cleared, replan");
    assert!(host.performed().summary().contains("to provisioning"));
}
