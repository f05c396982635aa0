//! A node that an operator of Ironic gave to another instance: nothing is ordered of it.

use metal3_ironic::slots::SlotState;
use serde_json::json;

use super::fixture::{Fixture, OTHER_UID};
use super::rows::given::port;

#[test]
fn nothing_is_ordered_of_a_node_that_serves_another_instance() {
    let external = json!({ "externallyProvisioned": true });
    let image = |fixture: Fixture| fixture.spec_image("a").status_image("a");
    for (name, fixture, state) in [
        (
            "manage",
            Fixture::new("externally provisioned").spec(external.clone()),
            "available",
        ),
        (
            "adopt",
            Fixture::new("externally provisioned").spec(external),
            "manageable",
        ),
        (
            "power on",
            image(Fixture::new("provisioned").spec(json!({ "online": true }))),
            "active",
        ),
        ("inspect", Fixture::new("inspecting"), "manageable"),
        ("recover", Fixture::new("preparing"), "clean failed"),
        ("verify", Fixture::new("registering"), "enroll"),
    ] {
        let other = json!({ "instance_uuid": OTHER_UID, "power_state": "power off" });
        let mut fixture = fixture.node_with(state, other).live().with(|fixture| {
            fixture.ports = Some(vec![port()]);
            fixture.inventory = Some(None);
            fixture.history = Some(None);
            fixture.slot = Some(SlotState::Granted);
        });
        for _ in 0..3 {
            let summary = fixture.summary();
            assert!(!summary.contains("requests"), "{name}: {summary}");
            fixture = fixture.performed().hours_later(9).live();
        }
        let error = fixture.host["status"]["errorMessage"].as_str().unwrap().to_owned();
        assert!(error.contains("serves instance"), "{name}: {error:?}");
    }
}
