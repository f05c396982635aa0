//! Fixtures: hosts in each state, and their nodes.

use metal3_api::metal3::v1alpha1::Image;
use metal3_ironic::model::inventory::Inspection;
use serde_json::{Value, json};

use crate::facts::HostFreshness;
use crate::node::Deployment;
use crate::node::deployment::Order;
use crate::tests::fixture::{Fixture, MAC, NODE, image};

pub(super) const FORCED: &str = r#"{"force":true}"#;

pub(super) fn new() -> Fixture {
    Fixture::new("")
}

pub(in crate::tests) fn registering() -> Fixture {
    Fixture::new("registering")
        .with(|fixture| fixture.ports = Some(vec![port()]))
        .status(json!({ "hardware": null }))
}

pub(crate) fn port() -> metal3_ironic::model::port::Port {
    serde_json::from_value(json!({ "uuid": "p", "node_uuid": NODE, "address": MAC, "pxe_enabled": true })).unwrap()
}

pub(in crate::tests) fn inspecting() -> Fixture {
    Fixture::new("inspecting").status(json!({ "hardware": null }))
}

pub(in crate::tests) fn preparing() -> Fixture {
    Fixture::new("preparing").with(|fixture| fixture.ports = Some(vec![port()]))
}

pub(in crate::tests) fn available() -> Fixture {
    Fixture::new("available").spec(json!({ "online": false }))
}

pub(in crate::tests) fn asked() -> Fixture {
    Fixture::new("available").spec_image("a").node("available")
}

pub(crate) fn provisioning() -> Fixture {
    Fixture::new("provisioning")
        .spec_image("a")
        .status(json!({ "lastAttemptedImage": image("a") }))
}

pub(in crate::tests) fn provisioned() -> Fixture {
    Fixture::new("provisioned").spec_image("a").status_image("a")
}

/// A host withheld from deprovisioning by the budget.
pub(in crate::tests) fn withheld() -> Fixture {
    let withheld = json!({ "type": "Held", "status": "True", "reason": "DeprovisionBudgetSpent", "message": "x",
        "lastTransitionTime": crate::tests::fixture::at(0) });
    provisioned().status(json!({ "conditions": [withheld] }))
}

pub(in crate::tests) fn external() -> Fixture {
    Fixture::new("externally provisioned")
        .spec(json!({ "externallyProvisioned": true }))
        .status(json!({ "poweredOn": true }))
}

pub(in crate::tests) fn deprovisioning() -> Fixture {
    Fixture::new("deprovisioning").status_image("a")
}

pub(in crate::tests) fn powering_off() -> Fixture {
    Fixture::new("powering off before delete")
        .deleted()
        .host_freshness(HostFreshness::Live)
}

pub(in crate::tests) fn deleting() -> Fixture {
    Fixture::new("deleting").deleted()
}

/// A node after it was configured for a deployment.
pub(crate) fn written(name: &str) -> Value {
    with(
        configured(name),
        json!({ "instance_uuid": crate::tests::fixture::UID, "power_state": "power on" }),
    )
}

/// A node after it was configured for a deploy step without an image.
pub(in crate::tests) fn configured_for_step(method: &str) -> Value {
    let uid = crate::tests::fixture::UID;
    let ordered = digest(&Deployment::new(None, Some(method)), uid);
    json!({ "deploy_interface": "custom-agent", "instance_uuid": uid,
        "instance_info": { "capabilities": {}, "root_device": { "name": "s== /dev/sda" }, "metal3_image": ordered,
            "metal3_deploy_step": method } })
}

/// The same for another instance.
pub(crate) fn written_for(name: &str, instance: &str) -> Value {
    let ordered = ordered(name, instance);
    with(
        configured(name),
        json!({ "instance_uuid": instance, "instance_info": { "metal3_image": ordered } }),
    )
}

fn ordered(name: &str, instance: &str) -> String {
    let image: Image = serde_json::from_value(image(name)).unwrap();
    digest(&image.into(), instance)
}

fn digest(deployment: &Deployment, instance: &str) -> String {
    Order::of(deployment).unwrap().digest(instance)
}

/// The part of it that does not depend on the host.
pub(crate) fn configured(name: &str) -> Value {
    let image = image(name);
    let ordered = ordered(name, crate::tests::fixture::UID);
    json!({
        "instance_info": { "image_source": image["url"], "image_os_hash_algo": "sha256",
            "image_os_hash_value": image["checksum"], "image_disk_format": "qcow2", "capabilities": {},
            "root_device": { "name": "s== /dev/sda" }, "metal3_image": ordered },
        "driver_info": { "force_persistent_boot_device": "Default" } })
}

pub(crate) fn with(mut node: Value, change: Value) -> Value {
    metal3_runtime::patch::apply(&change, &mut node);
    node
}

pub(in crate::tests) fn failing(kind: &str, message: &str, count: i64) -> Value {
    json!({ "operationalStatus": "error", "errorType": kind, "errorMessage": message, "errorCount": count })
}

pub(in crate::tests) fn details() -> Inspection {
    serde_json::from_value(
        json!({ "inventory": { "cpu": { "architecture": "x86_64", "count": 4 } }, "plugin_data": {} }),
    )
    .unwrap()
}
