//! A removed image.

use metal3_ironic::slots::SlotState;
use serde_json::json;

use super::Row;
use super::given::{deprovisioning, failing, written_for};
use crate::facts::{HostFreshness, NodeFreshness};
use crate::names::FORMER_ANNOTATION;
use crate::tests::fixture::{Fixture, OTHER_UID, Stored, secret};

pub(super) fn removal() -> Vec<Row> {
    let crowded = || {
        deprovisioning()
            .spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } }))
            .node_with("active", json!({ "boot_interface": "ipxe" }))
            .live()
    };
    let restricted = || {
        let spec = json!({ "automatedCleaningMode": "disabled" });
        deprovisioning().spec(spec).node("active").live()
    };
    let unread = |fixture: &mut Fixture| {
        let secret = fixture.credentials.as_mut().and_then(Option::as_mut);
        secret.unwrap().values = None;
    };
    let network = || secret("net", &[("networkData", r#"{"links":[]}"#)]);
    let unread_network = || Stored {
        values: None,
        ..network()
    };
    vec![
        crowded().with(|fixture| fixture.slot = Some(SlotState::Waiting { ahead: 0 })).row("running, without a free slot", "writes the status, delayed, waits for a slot"),
        crowded().with(|fixture| fixture.slot = Some(SlotState::Granted)).row("running, with a free slot", "requests deleted, waits for the node"),
        deprovisioning().node("servicing").row("a service runs", "writes the status, waits for the node"),
        deprovisioning().node("service wait").live().row("a service waits", "requests deleted, waits for the node"),
        deprovisioning()
            .node_with("service failed", json!({ "maintenance": true, "fault": "service failure" }))
            .live()
            .row("a service failed, in maintenance", "requests clear maintenance, waits for the node"),
        deprovisioning().node("service failed").live().row("a service failed", "requests deleted, waits for the node"),
        deprovisioning().node("active").row("running, from the feed", "reads Node, reads Host, replan"),
        deprovisioning().node("active").live().row("running, read live", "requests deleted, waits for the node"),
        restricted()
            .node("manageable")
            .live()
            .row("to be cleaned, and the edit that removed the image forbids it", "requests change node, replan"),
        restricted()
            .node_with("error", json!({ "last_error": "x" }))
            .live()
            .status(failing("provisioning error", "x", 1))
            .hours_later(1)
            .row("removal failed, and cleaning is forbidden meanwhile", "requests change node, replan"),
        restricted().row("running, and the edit that removed the image forbids cleaning", "requests change node, replan"),
        restricted().with(unread).row("the same, with a Secret that was not read", "requests change node, replan"),
        restricted().deleted().no_secret().row("deleted, no Secret, and cleaning is forbidden", "requests change node, replan"),
        restricted().spec(json!({ "automatedCleaningMode": null, "disablePowerOff": true })).row("running, and powering off is forbidden", "requests change node, replan"),
        restricted().node_with("manageable", json!({})).live().row("not cleaned, and cleaning is forbidden", "requests change node, replan"),
        restricted().node_with("active", json!({ "automated_clean": false })).live().row("running, and the node is not cleaned", "requests deleted, waits for the node"),
        restricted().node_with("wait call-back", json!({ "target_provision_state": "active" })).live().row("deploying, and Ironic takes no change yet", "waits for the node"),
        deprovisioning().spec(json!({ "preprovisioningNetworkDataName": "net" })).with(|fixture| fixture.agent_network = Some(Some(unread_network()))).node("active").live().row("running, and the agent's network data are not compared yet", "reads AgentNetwork, replan"),
        deprovisioning().spec(json!({ "preprovisioningNetworkDataName": "net" })).with(|fixture| fixture.agent_network = Some(Some(network()))).node("active").live().row("running, and the agent's network data were corrected", "requests change node, replan"),
        deprovisioning().spec(json!({ "preprovisioningNetworkDataName": "net" })).with(|fixture| { fixture.agent_network = Some(Some(unread_network())); fixture.agent_network_on_node = true; }).node("active").live().row("running, and the agent's network data are on the node", "requests deleted, waits for the node"),
        deprovisioning().with(|fixture| fixture.settings.node.ramdisks.usual.iso = Some("http://192.0.2.9/new.iso".to_owned())).node("active").live().row("running, and the flags name another ramdisk", "requests change node, replan"),
        deprovisioning().node("active").with(|fixture| fixture.host_freshness = HostFreshness::Live).row("the host read live, the node not", "reads Node, replan"),
        deprovisioning().node_with("active", json!({ "instance_uuid": OTHER_UID })).live().row("running another instance", "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits for the node"),
        deprovisioning().annotated(FORMER_ANNOTATION, OTHER_UID).node_with("active", json!({ "instance_uuid": OTHER_UID })).live().row("running the former instance", "requests deleted, waits for the node"),
        deprovisioning().deleted().node_with("active", written_for("a", OTHER_UID)).live().status(failing("provisioning error", "x", 3)).row("deleted, and running another instance, even with the same image", "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits for a time"),
        deprovisioning().annotated(FORMER_ANNOTATION, OTHER_UID).node("available").row("done, with the former-instance annotation", "changes the host, replan"),
        deprovisioning().spec_image("a").node("active").row("the image is requested again", "writes the status, to provisioned, replan"),
        deprovisioning().spec_image("a").node("deleting").row("the image is requested again, too late", "waits for the node"),
        deprovisioning().node("cleaning").row("in progress", "waits for the node"),
        deprovisioning().node("deploying").row("deployment in progress", "waits for the node"),
        deprovisioning().node_with("clean wait", json!({ "maintenance": true, "maintenance_reason": "disk swap" })).row("a person works at a machine that is cleaned", "writes the status, provisioning error: the node is in maintenance (disk swap), so Ironic does not operate it; end its maintenance in Ironic, waits for the node"),
        deprovisioning().node("clean wait").status(failing("provisioning error", "the node is in maintenance (disk swap)", 1)).row("the same, recorded, and ended", "writes the status, error cleared, waits for the node"),
        deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" })).row("cleaning failed", "writes the status, provisioning error: Cleaning failed: disk, waits for a time"),
        deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" })).status(failing("provisioning error", "Cleaning failed: disk", 1)).row("cleaning failed, recorded", "waits for a time"),
        deprovisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" })).status(failing("provisioning error", "Cleaning failed: disk", 1)).live().hours_later(1).row("cleaning failed, recorded and later", "requests clear maintenance, requests manage, writes the status, error cleared, waits for the node"),
        deprovisioning().node_with("error", json!({ "last_error": "bmc" })).live().row("deprovisioning failed", "writes the status, provisioning error: bmc, waits for a time"),
        deprovisioning().node_with("error", json!({ "last_error": "bmc" })).live().status(failing("provisioning error", "bmc", 1)).hours_later(1).row("removal failed, recorded and later", "requests deleted, writes the status, error cleared, waits for the node"),
        deprovisioning().node("manageable").live().row("not cleaned", "requests provide, waits for the node"),
        deprovisioning().node("available").row("done", "writes the status, to available, replan"),
        deprovisioning().node("available").freshness(NodeFreshness::Current).row("done, in an observation older than the state", "reads Node, replan"),
        deprovisioning().spec_image("a").node("active").freshness(NodeFreshness::Current).row("the image is requested again, and still runs in an observation older than the state", "reads Node, replan"),
        deprovisioning().node("available").freshness(NodeFreshness::Stale).row("done, in a stale observation", "waits for the node"),
        deprovisioning().spec_image("a").status(json!({ "provisioning": { "image": { "url": "", "checksum": null, "checksumType": null, "format": null } }, "provisioningFailCount": 1, "errorCount": 1, "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Image provisioning failed" })).node("available").row("done after a failed deployment", "writes the status, to available, replan"),
        deprovisioning().no_node().row("Ironic lost the node", "requests create node, replan"),
        deprovisioning().node_with("active", json!({ "fault": "power failure" })).live().row("no answer from the BMC", "writes the status, provisioning error: Ironic cannot reach the BMC (power failure); check its address, network and credentials. Ironic continues once the BMC responds, waits for the node"),
        deprovisioning().spec(json!({ "externallyProvisioned": true })).node("active").live().row("externally provisioned", "writes the status, provisioning error: spec.externallyProvisioned is set, so the machine is not erased; remove the field to allow deployment and cleaning, waits for the user"),
        deprovisioning().deleted().node("available").row("deleted and done", "writes the status, to powering off before delete, replan"),
        deprovisioning().deleted().node("active").live().no_secret().row("deleted, no Secret", "requests deleted, waits for the node"),
        deprovisioning().deleted().no_node().no_secret().row("deleted, no Secret and no node", "writes the status, to deleting, replan"),
        deprovisioning().node("active").live().status(failing("provisioning error", "the node is in maintenance", 1)).row("in maintenance, recorded, and resolved", "requests deleted, writes the status, error cleared, waits for the node"),
        deprovisioning().node("manageable").live().status(failing("provisioning error", "the node is in maintenance", 1)).row("not cleaned, in maintenance, recorded, and resolved", "requests provide, writes the status, error cleared, waits for the node"),
        deprovisioning().node("deploy failed").live().status(failing("provisioning error", "the node is in maintenance", 2)).status(json!({ "provisioningFailCount": 1 })).row("in maintenance after a failed deployment, recorded, and resolved", "requests deleted, writes the status, error cleared, waits for the node"),
        deprovisioning().node("deploy failed").live().status(failing("provisioning error", "Image provisioning failed", 1)).status(json!({ "provisioningFailCount": 1 })).row("deprovisioned after a failed deployment", "requests deleted, waits for the node"),
        deprovisioning().node_with("clean failed", json!({ "last_error": "disk" })).status(failing("provisioning error", "Image provisioning failed", 1)).status(json!({ "provisioningFailCount": 1 })).row("cleaning failed after a failed deployment", "writes the status, provisioning error: Cleaning failed: disk, waits for a time"),
        deprovisioning().node("clean failed").status(failing("provisioning error", "Cleaning failed: disk", 2)).status(json!({ "provisioningFailCount": 1 })).row("the same, recorded, and Ironic erased the reason", "waits for a time"),
        deprovisioning().deleted().node("clean failed").status(failing("provisioning error", "Cleaning failed: disk", 4)).row("deleted, and failed too often", "writes the status, to powering off before delete, error cleared, replan"),
        deprovisioning().deleted().node("deploy failed").live().status(failing("provisioning error", "Image provisioning failed", 4)).status(json!({ "provisioningFailCount": 4 })).row("deleted, and deployments failed often", "requests deleted, waits for the node"),
        deprovisioning().deleted().spec(json!({ "externallyProvisioned": true })).node("active").live().row("deleted, and externally provisioned", "writes the status, to powering off before delete, replan"),
    ]
}
