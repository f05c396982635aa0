//! Services that a Go manager or an operator of Ironic started.

use serde_json::{Value, json};

use super::fixture::Fixture;
use super::rows::given::{deprovisioning, external, failing, provisioned, provisioning, with, written};

/// Operational status, error type, and the reason of `Ready`.
fn shown(fixture: &Fixture) -> [&str; 3] {
    let status = &fixture.host["status"];
    let ready = &status["conditions"][0];
    assert_eq!(ready["type"], "Ready");
    [&status["operationalStatus"], &status["errorType"], &ready["reason"]].map(|value| value.as_str().unwrap_or(""))
}

fn off() -> Value {
    json!({ "power_state": "power off" })
}

/// The machine may be off during a service, and nothing else says what the host waits for.
#[test]
fn service_is_shown_while_it_runs_and_the_host_continues_when_it_ends() {
    let deployed = || with(written("a"), off());
    for (host, states, then, ended) in [
        (provisioned(), ["servicing", "service wait"], off(), "requests power on"),
        (external(), ["servicing", "service wait"], off(), "requests power on"),
        (
            provisioning(),
            ["servicing", "service wait"],
            deployed(),
            "writes the status, to provisioned",
        ),
        // What waits for its agent is undeployed at once.
        (deprovisioning(), ["servicing", "servicing"], off(), "requests deleted"),
    ] {
        for state in states {
            for recorded in ["OK", "servicing"] {
                let case = format!("{}, {state}, {recorded}", host.state());
                let begun = host.clone().status(json!({ "operationalStatus": recorded }));
                let waits = begun.node_with(state, off()).performed();
                assert_eq!(shown(&waits), ["servicing", "", "Servicing"], "{case}");
                assert_eq!(waits.summary(), "waits for the node", "{case}");
                let after = waits.node_with("active", then.clone()).live();
                assert!(after.summary().starts_with(ended), "{case}: {}", after.summary());
                let after = after.performed();
                assert_eq!(after.host["status"]["operationalStatus"], "OK", "{case}");
            }
        }
    }
}

/// An operator ended what the error is about, but not a maintenance, and not a failure of the power.
#[test]
fn error_that_a_service_ends_is_not_shown_during_it() {
    let failed = |kind| provisioned().status(failing(kind, "service hold", 1));
    let maintained = json!({ "maintenance": true });
    for (kind, node, expected) in [
        ("provisioned registration error", off(), ["servicing", "", "Servicing"]),
        ("servicing error", off(), ["servicing", "", "Servicing"]),
        (
            "provisioned registration error",
            maintained,
            ["error", "provisioned registration error", "Error"],
        ),
        (
            "power management error",
            off(),
            ["error", "power management error", "Error"],
        ),
    ] {
        let waits = failed(kind).node_with("servicing", node.clone()).performed();
        assert_eq!(shown(&waits), expected, "{kind}, {node}");
    }
}
