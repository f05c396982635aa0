//! What is given: hosts in each state, and what their nodes show.

use metal3_ironic::model::inventory::Inspection;
use serde_json::{Value, json};

use crate::tests::scene::{MAC, NODE, Scene, image};

/// A reboot that waits for nothing.
pub(super) const FORCED: &str = r#"{"force":true}"#;

pub(super) fn new() -> Scene {
    Scene::new("")
}

pub(super) fn registering() -> Scene {
    Scene::new("registering")
        .with(|scene| scene.ports = Some(vec![port()]))
        .status(json!({ "hardware": null }))
}

pub(super) fn port() -> metal3_ironic::model::port::Port {
    serde_json::from_value(json!({ "uuid": "p", "node_uuid": NODE, "address": MAC, "pxe_enabled": true })).unwrap()
}

pub(super) fn inspecting() -> Scene {
    Scene::new("inspecting").status(json!({ "hardware": null }))
}

pub(super) fn preparing() -> Scene {
    Scene::new("preparing").with(|scene| scene.ports = Some(vec![port()]))
}

pub(super) fn available() -> Scene {
    Scene::new("available").spec(json!({ "online": false }))
}

pub(super) fn asked() -> Scene {
    Scene::new("available").asks("a").node("available")
}

pub(crate) fn provisioning() -> Scene {
    Scene::new("provisioning")
        .asks("a")
        .status(json!({ "lastAttemptedImage": image("a") }))
}

pub(super) fn provisioned() -> Scene {
    Scene::new("provisioned").asks("a").runs("a")
}

/// It was to be torn down, and the budget was spent.
pub(super) fn held() -> Scene {
    let held = json!({ "type": "Held", "status": "True", "reason": "DeprovisionBudgetSpent", "message": "x",
        "lastTransitionTime": crate::tests::scene::at(0) });
    provisioned().status(json!({ "conditions": [held] }))
}

pub(super) fn external() -> Scene {
    Scene::new("externally provisioned")
        .spec(json!({ "externallyProvisioned": true }))
        .status(json!({ "poweredOn": true }))
}

pub(super) fn deprovisioning() -> Scene {
    Scene::new("deprovisioning").runs("a")
}

pub(super) fn powering_off() -> Scene {
    Scene::new("powering off before delete").deleted()
}

pub(super) fn deleting() -> Scene {
    Scene::new("deleting").deleted()
}

/// What the node shows after it was told to deploy.
pub(crate) fn written(name: &str) -> Value {
    let image = image(name);
    json!({ "instance_uuid": crate::tests::scene::UID, "power_state": "power on",
        "instance_info": { "image_source": image["url"], "image_os_hash_algo": "sha256", "image_os_hash_value": "0".repeat(64),
            "image_disk_format": "qcow2", "capabilities": {}, "root_device": { "name": "s== /dev/sda" } },
        "driver_info": { "force_persistent_boot_device": "Default" } })
}

pub(super) fn with(mut node: Value, change: Value) -> Value {
    metal3_runtime::patch::apply(&change, &mut node);
    node
}

pub(super) fn failing(kind: &str, message: &str, count: i64) -> Value {
    json!({ "operationalStatus": "error", "errorType": kind, "errorMessage": message, "errorCount": count })
}

pub(super) fn details() -> Inspection {
    serde_json::from_value(
        json!({ "inventory": { "cpu": { "architecture": "x86_64", "count": 4 } }, "plugin_data": {} }),
    )
    .unwrap()
}
