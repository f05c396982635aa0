//! A deletion does not wait for a node that stays as it is.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;
use serde_json::json;

use super::fixture::Fixture;

#[test]
fn deletion_of_a_host_whose_node_is_held_is_bounded() {
    for state in ["clean hold", "deploy hold"] {
        let node = json!({ "power_state": "power on", "target_provision_state": "available" });
        let mut fixture = Fixture::new("powering off before delete")
            .deleted()
            .spec(json!({ "automatedCleaningMode": "disabled" }))
            .node_with(state, node)
            .live();
        let mut rounds = 0;
        while fixture.state() != State::Deleting {
            fixture = fixture.performed().hours_later(24);
            rounds += 1;
            assert!(rounds < 12, "{state}: {}", fixture.summary());
        }
    }
}
