//! What is written together with the state that a host comes to.

use serde_json::json;

use super::rows::given::{provisioning, written};
use super::scene::Scene;
use crate::action::Plan;

/// The scene once the first plan is carried out.
fn there(scene: Scene) -> Scene {
    let host = serde_json::to_value(scene.after(&scene.plan())).unwrap();
    scene.with(|scene| scene.host = host)
}

#[test]
fn nothing_is_left_to_write_of_a_host_that_has_just_come_to_its_state() {
    let provisioned = provisioning().node_with("active", written("a"));
    let available = Scene::new("deprovisioning")
        .status(json!({ "poweredOn": true, "lastAttemptedImage": { "url": "http://192.0.2.9/a.qcow2" } }))
        .spec(json!({ "online": false }))
        .node_with("available", json!({ "power_state": "power off" }));
    for (scene, state, on) in [(provisioned, "provisioned", true), (available, "available", false)] {
        let there = there(scene);
        let status = there.after(&Plan::default()).status;
        assert_eq!(
            (status.provisioning.state.to_string().as_str(), status.powered_on),
            (state, on)
        );
        assert_eq!(status.last_attempted_image.is_some(), on);
        assert!(there.plan().steps.is_empty(), "{state}: {}", there.tells());
    }
}
