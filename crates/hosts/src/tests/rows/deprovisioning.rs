//! An image taken off.

use metal3_ironic::slots::Turn;
use serde_json::json;

use super::given::{deprovisioning, failing, with, written};
use super::{Row, row};
use crate::facts::{HostSeen, NodeSeen};
use crate::names::FORMER_ANNOTATION;
use crate::tests::scene::OTHER_UID;

pub(super) fn removal() -> Vec<Row> {
    let crowded = || {
        deprovisioning()
            .spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } }))
            .node_with("active", json!({ "boot_interface": "ipxe" }))
            .live()
    };
    vec![
        row(
            "running, on a network that is full",
            crowded().with(|scene| scene.turn = Some(Turn::Waiting { ahead: 0 })),
            "writes the status, delayed, waits for its turn",
        ),
        row(
            "running, on a network with room",
            crowded().with(|scene| scene.turn = Some(Turn::Granted)),
            "asks deleted, waits for the node",
        ),
        row("running, from the feed", deprovisioning().node("active"), "reads Host, reads Node, again"),
        row("running, read live", deprovisioning().node("active").live(), "asks deleted, waits for the node"),
        row("the host read live, the node not", deprovisioning().node("active").with(|scene| scene.host_seen = HostSeen::Live), "reads Node, again"),
        row("running for another", deprovisioning().node_with("active", json!({ "instance_uuid": OTHER_UID })).live(), "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; it is left as it is. If nothing needs that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is this host's own from before it moved between clusters, name it in the annotation baremetalhost.metal3.io/former-instance, waits for the node"),
        row("running for what the host was before it moved", deprovisioning().annotated(FORMER_ANNOTATION, OTHER_UID).node_with("active", json!({ "instance_uuid": OTHER_UID })).live(), "asks deleted, waits for the node"),
        row("deleted, and running for another, even with the same image", deprovisioning().deleted().node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))).live().status(failing("provisioning error", "x", 3)), "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; it is left as it is. If nothing needs that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is this host's own from before it moved between clusters, name it in the annotation baremetalhost.metal3.io/former-instance, waits for a time"),
        row("done, and what it was before it moved does not matter any more", deprovisioning().annotated(FORMER_ANNOTATION, OTHER_UID).node("available"), "changes the host, again"),
        row("the image is wanted again", deprovisioning().asks("a").node("active"), "writes the status, to provisioned, again"),
        row("the image is wanted again, too late", deprovisioning().asks("a").node("deleting"), "waits for the node"),
        row("under way", deprovisioning().node("cleaning"), "waits for the node"),
        row("deployment goes on", deprovisioning().node("deploying"), "waits for the node"),
        row("cleaning failed", deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })), "writes the status, provisioning error: Cleaning failed: disk, waits for a time"),
        row("cleaning failed, told", deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })).status(failing("provisioning error", "Cleaning failed: disk", 1)), "waits for a time"),
        row("cleaning failed, told and later", deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })).status(failing("provisioning error", "Cleaning failed: disk", 1)).later(1), "asks clear maintenance, asks manage, writes the status, well again, waits for the node"),
        row("tear-down failed", deprovisioning().node_with("error", json!({ "last_error": "bmc" })).live(), "writes the status, provisioning error: bmc, waits for a time"),
        row("tear-down failed, told and later", deprovisioning().node_with("error", json!({ "last_error": "bmc" })).live().status(failing("provisioning error", "bmc", 1)).later(1), "asks deleted, writes the status, well again, waits for the node"),
        row("not cleaned", deprovisioning().node("manageable").live(), "asks provide, waits for the node"),
        row("done", deprovisioning().node("available"), "writes the status, to available, again"),
        row("done, as a view from before the host came here shows", deprovisioning().node("available").seen(NodeSeen::Current), "reads Node, again"),
        row("the image is wanted again, and still runs in a view from before", deprovisioning().asks("a").node("active").seen(NodeSeen::Current), "reads Node, again"),
        row("done, as an old view shows", deprovisioning().node("available").seen(NodeSeen::Stale), "waits for the node"),
        row("done after a failed deployment", deprovisioning().asks("a").status(json!({ "provisioning": { "image": { "url": "", "checksum": null, "checksumType": null, "format": null } }, "provisioningFailCount": 1, "errorCount": 1, "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Image provisioning failed" })).node("available"), "writes the status, to available, again"),
        row("the node was forgotten", deprovisioning().no_node(), "asks create node, again"),
        row("no answer from the BMC", deprovisioning().node_with("active", json!({ "fault": "power failure" })).live(), "writes the status, provisioning error: Ironic does not reach the BMC (power failure); check its address, network and login. Ironic goes on by itself once it does, waits for the node"),
        row("deployed by something else", deprovisioning().spec(json!({ "externallyProvisioned": true })).node("active").live(), "writes the status, provisioning error: spec.externallyProvisioned says that something else deployed the machine, so nothing on it is erased; remove the field to have it deployed or cleaned, waits for the user"),
        row("deleted and done", deprovisioning().deleted().node("available"), "writes the status, to powering off before delete, again"),
        row("deleted, no Secret", deprovisioning().deleted().node("active").live().with(|scene| scene.credentials = Some(None)), "asks deleted, waits for the node"),
        row("deleted, no Secret and no node", deprovisioning().deleted().no_node().with(|scene| scene.credentials = Some(None)), "writes the status, to deleting, again"),
        row("in maintenance, told, and cured", deprovisioning().node("active").live().status(failing("provisioning error", "the node is in maintenance", 1)), "asks deleted, writes the status, well again, waits for the node"),
        row("not cleaned, in maintenance, told, and cured", deprovisioning().node("manageable").live().status(failing("provisioning error", "the node is in maintenance", 1)), "asks provide, writes the status, well again, waits for the node"),
        row("in maintenance after a failed deployment, told, and cured", deprovisioning().node("deploy failed").live().status(failing("provisioning error", "the node is in maintenance", 2)).status(json!({ "provisioningFailCount": 1 })), "asks deleted, writes the status, well again, waits for the node"),
        row("a failed deployment is why it is torn down", deprovisioning().node("deploy failed").live().status(failing("provisioning error", "Image provisioning failed", 1)).status(json!({ "provisioningFailCount": 1 })), "asks deleted, waits for the node"),
        row("cleaning failed after a failed deployment", deprovisioning().node_with("clean failed", json!({ "last_error": "disk" })).status(failing("provisioning error", "Image provisioning failed", 1)).status(json!({ "provisioningFailCount": 1 })), "writes the status, provisioning error: Cleaning failed: disk, waits for a time"),
        row("the same, told, and Ironic erased its words", deprovisioning().node("clean failed").status(failing("provisioning error", "Cleaning failed: disk", 2)).status(json!({ "provisioningFailCount": 1 })), "waits for a time"),
        row("deleted, and failed too often", deprovisioning().deleted().node("clean failed").status(failing("provisioning error", "Cleaning failed: disk", 4)), "writes the status, to powering off before delete, well again, again"),
        row("deleted, and deployments failed often", deprovisioning().deleted().node("deploy failed").live().status(failing("provisioning error", "Image provisioning failed", 4)).status(json!({ "provisioningFailCount": 4 })), "asks deleted, waits for the node"),
        row("deleted, and something else deployed it", deprovisioning().deleted().spec(json!({ "externallyProvisioned": true })).node("active").live(), "writes the status, to powering off before delete, again"),
    ]
}
