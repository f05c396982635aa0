//! Wishes that are not supported: an error of the state that would fulfil them.

use serde_json::{Value, json};

use super::fixture::{Fixture, UID, image};

/// Each field with a wish. Without an image nothing is provisioned.
fn wishes() -> [(&'static str, Value); 2] {
    [
        ("customDeploy", json!({ "method": "install" })),
        ("inspectionMode", json!("fast")),
    ]
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

/// No user took the deployment back: another manager that served the field was replaced.
#[test]
fn deployment_by_a_custom_step_that_a_go_manager_began_is_not_torn_down() {
    for node in ["available", "deploying", "wait call-back", "active"] {
        let left = Fixture::new("provisioning")
            .spec(json!({ "customDeploy": { "method": "install_coreos" } }))
            .node_with(
                node,
                json!({ "instance_uuid": UID, "deploy_interface": "custom-agent", "power_state": "power on" }),
            )
            .live();
        let after = left.clone().performed();
        // `active`: the next plan is "requests deleted", which erases the system that was just installed.
        assert_eq!(after.state().to_string(), "provisioning", "{node}: {}", after.summary());
        let message = after.host["status"]["errorMessage"].as_str().unwrap();
        assert!(message.starts_with("spec.customDeploy"), "{node}: {message:?}");
    }
}
