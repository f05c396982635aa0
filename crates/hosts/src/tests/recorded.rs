//! What the Go manager was recorded to do wrong, each by its name, done right.

use std::time::Duration;

use serde_json::json;

use super::scene::{NODE, Scene, image};
use crate::action::{Request, Wait};
use crate::facts::NodeSeen;
use crate::names::reason;
use metal3_ironic::calls::provision::Transition;

fn verbs(scene: &Scene) -> Vec<&'static str> {
    scene.plan().requests().map(Request::verb).collect()
}

fn live_iso() -> Scene {
    let iso =
        json!({ "url": "http://192.0.2.9/live.iso", "format": "live-iso", "checksum": null, "checksumType": null });
    Scene::new("provisioned")
        .asks("a")
        .runs("a")
        .spec(json!({ "image": iso }))
        .status(json!({ "provisioning": { "image": iso } }))
}

#[test]
fn provision_error_lost_is_told_from_the_history_and_cleaned_up_at_once() {
    let scene = Scene::new("provisioning")
        .asks("a")
        .status(json!({ "lastAttemptedImage": image("a") }))
        .node("deploy failed");
    let told = scene.with(|scene| scene.history = Some(Some("agent lost".to_owned())));
    let after = told.after(&told.plan()).status;
    assert_eq!(after.provisioning.state.to_string(), "deprovisioning");
    assert!(after.error_message.ends_with("agent lost"), "{}", after.error_message);
    assert_eq!((after.error_count, after.provisioning_fail_count), (1, 1));
}

#[test]
fn clean_error_needs_one_back_off() {
    let failed = json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" });
    let error = json!({ "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Cleaning failed: disk", "errorCount": 1 });
    let scene = Scene::new("deprovisioning")
        .runs("a")
        .node_with("clean failed", failed)
        .status(error)
        .later(1);
    assert_eq!(verbs(&scene), ["clear maintenance", "manage"]);
}

#[test]
fn move_leaves_the_machine_alone_at_every_moment_of_it() {
    let marked = || {
        Scene::new("provisioned")
            .asks("a")
            .runs("a")
            .annotated("clusterctl.cluster.x-k8s.io/delete-for-move", "")
    };
    for scene in [marked(), marked().deleted(), marked().deleted().later(24)] {
        let scene = scene.node_with("active", json!({ "power_state": "power on" })).live();
        assert!(scene.plan().steps.is_empty(), "{}", scene.tells());
    }
}

#[test]
fn live_iso_is_taken_over_after_ironic_lost_it_with_the_image_told_first() {
    let lost = live_iso().no_node();
    let plan = lost.plan();
    let Some(Request::CreateNode(new)) = plan.requests().next() else {
        panic!("{}", lost.tells())
    };
    assert_eq!(new.more.get("deploy_interface"), Some(&json!("ramdisk")));
    let again = live_iso()
        .node_with("manageable", json!({ "deploy_interface": "ramdisk" }))
        .seen(NodeSeen::Live);
    let plan = again.plan();
    let requests: Vec<_> = plan.requests().collect();
    let [
        Request::PatchNode(_, patch),
        Request::Provision(node, Transition::Adopt),
    ] = requests.as_slice()
    else {
        panic!("{}", again.tells())
    };
    assert_eq!(node.as_str(), NODE);
    let body = patch.clone().into_body().unwrap().to_string();
    assert!(body.contains("/instance_info/boot_iso"), "{body}");
}

#[test]
fn registration_error_of_a_missing_secret_is_written_once() {
    let mut scene = Scene::new("registering").with(|scene| scene.credentials = Some(None));
    scene.host = serde_json::to_value(scene.after(&scene.plan())).unwrap();
    assert!(scene.plan().steps.is_empty(), "{}", scene.tells());
}

#[test]
fn host_at_rest_writes_nothing() {
    let mut scene = Scene::new("provisioned")
        .asks("a")
        .runs("a")
        .node_with("active", json!({ "power_state": "power on" }));
    scene.host = serde_json::to_value(scene.after(&scene.plan())).unwrap();
    let plan = scene.plan();
    assert!(
        plan.steps.is_empty() && plan.reads.is_empty() && plan.events.is_empty(),
        "{}",
        scene.line(&plan)
    );
}

#[test]
fn access_is_told_as_verified_only_where_ironic_tried_the_login() {
    let is_told = |scene: &Scene| {
        scene
            .plan()
            .events
            .iter()
            .any(|event| event.reason == reason::ACCESS_VALIDATED)
    };
    let old = json!({ "goodCredentials": { "credentialsVersion": "39" } });
    let running = Scene::new("provisioned")
        .asks("a")
        .runs("a")
        .status(old.clone())
        .node_with("active", json!({ "power_state": "power on" }));
    assert!(!is_told(&running));
    let after = running.after(&running.plan()).status;
    assert_eq!(after.good_credentials, after.tried_credentials);
    let registering = Scene::new("registering").status(old).node("manageable");
    let registering = registering.with(|scene| scene.ports = Some(Vec::new()));
    assert!(is_told(&registering), "{}", registering.tells());
    let tried = json!({ "triedCredentials": { "credentialsVersion": "39" }, "goodCredentials": null });
    let labelled = registering
        .status(tried)
        .with(|scene| scene.same_login = Some(Duration::ZERO));
    assert!(is_told(&labelled), "{}", labelled.tells());
    let after = labelled.after(&labelled.plan()).status;
    assert_eq!(after.good_credentials.credentials_version.as_deref(), Some("40"));
    assert_eq!(after.good_credentials, after.tried_credentials);
}

#[test]
fn version_of_the_same_login_is_recorded_with_what_changes_anyway_or_when_the_host_has_rested() {
    let old = json!({ "credentialsVersion": "39" });
    let old = json!({ "goodCredentials": old, "triedCredentials": old });
    let labelled = Scene::new("provisioned")
        .asks("a")
        .runs("a")
        .status(old.clone())
        .node_with("active", json!({ "power_state": "power on" }))
        .with(|scene| scene.same_login = Some(Duration::ZERO));
    let after = labelled.after(&labelled.plan());
    let version = after.status.tried_credentials.credentials_version.as_deref();
    assert_eq!(version, Some("40"), "other conditions are written");
    assert_eq!(after.status.good_credentials, after.status.tried_credentials);
    let at_rest = labelled.with(|scene| scene.host = serde_json::to_value(after).unwrap());
    let again = at_rest.status(old);
    assert!(again.plan().steps.is_empty(), "{}", again.tells());
    let Wait::After(left, _) = again.plan().wait else {
        panic!("{}", again.tells());
    };
    let later = again.with(|scene| scene.same_login = Some(left));
    let after = later.after(&later.plan()).status;
    assert_eq!(after.tried_credentials.credentials_version.as_deref(), Some("40"));
    assert_eq!(after.good_credentials, after.tried_credentials);
}
