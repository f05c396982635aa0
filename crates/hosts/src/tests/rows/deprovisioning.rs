//! A removed image.

use metal3_ironic::slots::SlotState;
use serde_json::json;

use super::given::{deprovisioning, failing, with, written};
use super::{Row, row};
use crate::facts::{HostFreshness, NodeFreshness};
use crate::names::FORMER_ANNOTATION;
use crate::tests::fixture::OTHER_UID;

pub(super) fn removal() -> Vec<Row> {
    let crowded = || {
        deprovisioning()
            .spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } }))
            .node_with("active", json!({ "boot_interface": "ipxe" }))
            .live()
    };
    vec![
        row(
            "running, without a free slot",
            crowded().with(|fixture| fixture.slot = Some(SlotState::Waiting { ahead: 0 })),
            "writes the status, delayed, waits for a slot",
        ),
        row(
            "running, with a free slot",
            crowded().with(|fixture| fixture.slot = Some(SlotState::Granted)),
            "requests deleted, waits for the node",
        ),
        row("running, from the feed", deprovisioning().node("active"), "reads Host, reads Node, replan"),
        row("running, read live", deprovisioning().node("active").live(), "requests deleted, waits for the node"),
        row("the host read live, the node not", deprovisioning().node("active").with(|fixture| fixture.host_freshness = HostFreshness::Live), "reads Node, replan"),
        row("running another instance", deprovisioning().node_with("active", json!({ "instance_uuid": OTHER_UID })).live(), "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits for the node"),
        row("running the former instance", deprovisioning().annotated(FORMER_ANNOTATION, OTHER_UID).node_with("active", json!({ "instance_uuid": OTHER_UID })).live(), "requests deleted, waits for the node"),
        row("deleted, and running another instance, even with the same image", deprovisioning().deleted().node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))).live().status(failing("provisioning error", "x", 3)), "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits for a time"),
        row("done, with the former-instance annotation", deprovisioning().annotated(FORMER_ANNOTATION, OTHER_UID).node("available"), "changes the host, replan"),
        row("the image is requested again", deprovisioning().spec_image("a").node("active"), "writes the status, to provisioned, replan"),
        row("the image is requested again, too late", deprovisioning().spec_image("a").node("deleting"), "waits for the node"),
        row("in progress", deprovisioning().node("cleaning"), "waits for the node"),
        row("deployment in progress", deprovisioning().node("deploying"), "waits for the node"),
        row("cleaning failed", deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })), "writes the status, provisioning error: Cleaning failed: disk, waits for a time"),
        row("cleaning failed, recorded", deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })).status(failing("provisioning error", "Cleaning failed: disk", 1)), "waits for a time"),
        row("cleaning failed, recorded and later", deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })).status(failing("provisioning error", "Cleaning failed: disk", 1)).hours_later(1), "requests clear maintenance, requests manage, writes the status, error cleared, waits for the node"),
        row("deprovisioning failed", deprovisioning().node_with("error", json!({ "last_error": "bmc" })).live(), "writes the status, provisioning error: bmc, waits for a time"),
        row("removal failed, recorded and later", deprovisioning().node_with("error", json!({ "last_error": "bmc" })).live().status(failing("provisioning error", "bmc", 1)).hours_later(1), "requests deleted, writes the status, error cleared, waits for the node"),
        row("not cleaned", deprovisioning().node("manageable").live(), "requests provide, waits for the node"),
        row("done", deprovisioning().node("available"), "writes the status, to available, replan"),
        row("done, in an observation older than the state", deprovisioning().node("available").freshness(NodeFreshness::Current), "reads Node, replan"),
        row("the image is requested again, and still runs in an observation older than the state", deprovisioning().spec_image("a").node("active").freshness(NodeFreshness::Current), "reads Node, replan"),
        row("done, in a stale observation", deprovisioning().node("available").freshness(NodeFreshness::Stale), "waits for the node"),
        row("done after a failed deployment", deprovisioning().spec_image("a").status(json!({ "provisioning": { "image": { "url": "", "checksum": null, "checksumType": null, "format": null } }, "provisioningFailCount": 1, "errorCount": 1, "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Image provisioning failed" })).node("available"), "writes the status, to available, replan"),
        row("Ironic lost the node", deprovisioning().no_node(), "requests create node, replan"),
        row("no answer from the BMC", deprovisioning().node_with("active", json!({ "fault": "power failure" })).live(), "writes the status, provisioning error: Ironic cannot reach the BMC (power failure); check its address, network and credentials. Ironic continues once the BMC responds, waits for the node"),
        row("externally provisioned", deprovisioning().spec(json!({ "externallyProvisioned": true })).node("active").live(), "writes the status, provisioning error: spec.externallyProvisioned is set, so the machine is not erased; remove the field to allow deployment and cleaning, waits for the user"),
        row("deleted and done", deprovisioning().deleted().node("available"), "writes the status, to powering off before delete, replan"),
        row("deleted, no Secret", deprovisioning().deleted().node("active").live().with(|fixture| fixture.credentials = Some(None)), "requests deleted, waits for the node"),
        row("deleted, no Secret and no node", deprovisioning().deleted().no_node().with(|fixture| fixture.credentials = Some(None)), "writes the status, to deleting, replan"),
        row("in maintenance, recorded, and resolved", deprovisioning().node("active").live().status(failing("provisioning error", "the node is in maintenance", 1)), "requests deleted, writes the status, error cleared, waits for the node"),
        row("not cleaned, in maintenance, recorded, and resolved", deprovisioning().node("manageable").live().status(failing("provisioning error", "the node is in maintenance", 1)), "requests provide, writes the status, error cleared, waits for the node"),
        row("in maintenance after a failed deployment, recorded, and resolved", deprovisioning().node("deploy failed").live().status(failing("provisioning error", "the node is in maintenance", 2)).status(json!({ "provisioningFailCount": 1 })), "requests deleted, writes the status, error cleared, waits for the node"),
        row("deprovisioned after a failed deployment", deprovisioning().node("deploy failed").live().status(failing("provisioning error", "Image provisioning failed", 1)).status(json!({ "provisioningFailCount": 1 })), "requests deleted, waits for the node"),
        row("cleaning failed after a failed deployment", deprovisioning().node_with("clean failed", json!({ "last_error": "disk" })).status(failing("provisioning error", "Image provisioning failed", 1)).status(json!({ "provisioningFailCount": 1 })), "writes the status, provisioning error: Cleaning failed: disk, waits for a time"),
        row("the same, recorded, and Ironic erased the reason", deprovisioning().node("clean failed").status(failing("provisioning error", "Cleaning failed: disk", 2)).status(json!({ "provisioningFailCount": 1 })), "waits for a time"),
        row("deleted, and failed too often", deprovisioning().deleted().node("clean failed").status(failing("provisioning error", "Cleaning failed: disk", 4)), "writes the status, to powering off before delete, error cleared, replan"),
        row("deleted, and deployments failed often", deprovisioning().deleted().node("deploy failed").live().status(failing("provisioning error", "Image provisioning failed", 4)).status(json!({ "provisioningFailCount": 4 })), "requests deleted, waits for the node"),
        row("deleted, and externally provisioned", deprovisioning().deleted().spec(json!({ "externallyProvisioned": true })).node("active").live(), "writes the status, to powering off before delete, replan"),
    ]
}
