//! Hosts that a Go manager left in the middle of its work.

use serde_json::json;

use super::fixture::Fixture;

/// The Go manager sets it at the end of the registration. Without it the host became available with an empty one.
#[test]
fn host_that_was_left_while_it_registered_gets_its_operational_status() {
    for (state, node) in [("registering", "verifying"), ("inspecting", "inspecting")] {
        for left in ["", "discovered"] {
            let host = Fixture::new(state)
                .status(json!({ "operationalStatus": left }))
                .node(node);
            let plan = host.plan();
            let after = host.after(&plan);
            assert_eq!(
                serde_json::to_value(after.status.operational_status).unwrap(),
                "OK",
                "{state}, {left:?}: {}",
                host.summary()
            );
        }
    }
}
