//! Fields that are written together with a new state.

use serde_json::json;

use super::fixture::{Fixture, has_writes};
use super::rows::given::{provisioning, written};
use crate::action::Plan;

#[test]
fn host_that_entered_a_state_needs_no_further_write() {
    let provisioned = provisioning().node_with("active", written("a"));
    let available = Fixture::new("deprovisioning")
        .status(json!({ "poweredOn": true, "lastAttemptedImage": { "url": "http://192.0.2.9/a.qcow2" } }))
        .spec(json!({ "online": false }))
        .node_with("available", json!({ "power_state": "power off" }));
    for (fixture, state, on) in [(provisioned, "provisioned", true), (available, "available", false)] {
        let entered = fixture.performed();
        let status = entered.after(&Plan::default()).status;
        assert_eq!(
            (status.provisioning.state.to_string().as_str(), status.powered_on),
            (state, on)
        );
        assert_eq!(status.last_attempted_image.is_some(), on);
        assert!(!has_writes(&entered.plan()), "{state}: {}", entered.summary());
    }
}
