//! The object itself, credentials and registration.

use metal3_ironic::slots::SlotState;
use serde_json::json;

use super::given::{failing, new, provisioned, registering, with, written};
use super::{Row, row};
use crate::facts::{NodeFreshness, PreviousView, RefusalClass, Refused};
use crate::names::FORMER_ANNOTATION;
use crate::tests::fixture::{Fixture, NODE, OTHER_UID, at, image, secret};

pub(super) fn object() -> Vec<Row> {
    let unpaused = PreviousView {
        paused: true,
        moving: false,
    };
    let saved = json!({ "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0, "provisioningFailCount": 0,
        "provisioning": { "state": "provisioned", "ID": NODE, "image": image("a") } })
    .to_string();
    vec![
        row("a paused host", provisioned().spec(json!({ "image": null })).annotated("baremetalhost.metal3.io/paused", "").node("active").live(), "waits for the user"),
        row("a paused host that is deleted", provisioned().annotated("baremetalhost.metal3.io/paused", "x").deleted().node("active").live(), "waits for the user"),
        row("a host that is deleted as part of a move", provisioned().annotated("clusterctl.cluster.x-k8s.io/delete-for-move", "").deleted().node("active").live(), "waits for the user"),
        row("a host that was paused until its deletion", provisioned().deleted().node("active").live().with(|fixture| fixture.previous = unpaused), "waits for a time"),
        row("the same a minute later, from a cache", provisioned().deleted().node("active").hours_later(1).with(|fixture| fixture.previous = unpaused), "reads Host, replan"),
        row("the same, read live", provisioned().deleted().node("active").live().hours_later(1).with(|fixture| fixture.previous = unpaused), "writes the status, to deprovisioning, replan"),
        row("a saved status", new().annotated("baremetalhost.metal3.io/status", &saved), "reads Node, replan"),
        row("a saved status, and no node in Ironic", new().annotated("baremetalhost.metal3.io/status", &saved).no_node(), "writes the status, to provisioned, replan"),
        row("a saved status, and the node serves the former instance", new().annotated("baremetalhost.metal3.io/status", &saved).node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))).live(), "changes the host, replan"),
        row("the same, recorded in the annotation", new().annotated("baremetalhost.metal3.io/status", &saved).annotated(FORMER_ANNOTATION, OTHER_UID).node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))).live(), "writes the status, to provisioned, replan"),
        row("a saved status, and the node serves another instance with another image", new().annotated("baremetalhost.metal3.io/status", &saved).node_with("active", with(written("b"), json!({ "instance_uuid": OTHER_UID }))).live(), "writes the status, to provisioned, replan"),
        row("a saved status that was restored", provisioned().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"OK","errorMessage":"","poweredOn":true,"provisioning":{"state":"provisioned","ID":"x"}}"#), "changes the host, replan"),
        row("a status saved before registration", new().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"","errorMessage":"","poweredOn":false,"provisioning":{"state":"","ID":""}}"#), "changes the host, replan"),
        row("a saved status that cannot be read", new().annotated("baremetalhost.metal3.io/status", "{"), "writes the status, registration error: the annotation baremetalhost.metal3.io/status is not a valid host status: EOF while parsing an object at line 1 column 1; correct it, or remove it to register the host as a new one, waits for the user"),
        row("no finalizer", new().host(json!({ "metadata": { "finalizers": null } })), "changes the host, replan"),
        row("no architecture, and inspection found it", provisioned().spec(json!({ "architecture": null })), "changes the host, replan"),
        row("external hardware details", new().annotated("inspect.metal3.io/hardwaredetails", r#"{"cpu":{"arch":"x86_64"}}"#), "writes the status, replan"),
        row("hardware details that cannot be read", new().annotated("inspect.metal3.io/hardwaredetails", "["), "writes the status, inspection error: the annotation inspect.metal3.io/hardwaredetails cannot be read: EOF while parsing a list at line 1 column 1; correct or remove it, waits for the user"),
        row("hardware details, when they are known", provisioned().annotated("inspect.metal3.io/hardwaredetails", "{}"), "changes the host, replan"),
        row("a state of another version", Fixture::new("polishing").node("active").live(), "writes the status, registration error: status.provisioning.state is \"polishing\", which this version does not support; the host is not changed. Return to the version that wrote it, waits for the user"),
    ]
}

pub(super) fn registration() -> Vec<Row> {
    vec![
        row("no BMC", new().spec(json!({ "bmc": null })), "writes the status, to unmanaged, replan"),
        row("still no BMC", Fixture::new("unmanaged").spec(json!({ "bmc": null })).status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })), "waits for the user"),
        row("a BMC added", Fixture::new("unmanaged").status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })), "writes the status, to registering, replan"),
        row("a BMC", new(), "writes the status, to registering, replan"),
        row("Secret unknown", registering().with(|fixture| fixture.credentials = None), "reads Credentials, replan"),
        row("no Secret", registering().with(|fixture| fixture.credentials = Some(None)), "writes the status, registration error: BMC CredentialsName secret doesn't exist: create Secret bmc with username and password, waits for Secret bmc"),
        row("a Secret without password", registering().no_node().with(|fixture| fixture.credentials = Some(Some(secret("bmc", &[("username", "u")])))), "writes the status, registration error: Validation error with BMC credentials: the Secret that spec.bmc.credentialsName names has no \"password\"; set it, waits for the user"),
        row("no name of a Secret", registering().spec(json!({ "bmc": { "credentialsName": "" } })), "writes the status, registration error: No BMC CredentialsName defined; set spec.bmc.credentialsName to the name of a Secret, waits for the user"),
        row("no address", registering().spec(json!({ "bmc": { "address": "" } })), "writes the status, registration error: Empty BMC address; set spec.bmc.address, waits for the user"),
        row("an address with unknown type", registering().no_node().spec(json!({ "bmc": { "address": "pigeon://loft" } })), "writes the status, registration error: Unknown BMC type 'pigeon' for address pigeon://loft; begin spec.bmc.address with one of ipmi, libvirt, redfish, ilo5-redfish, idrac-redfish, redfish-virtualmedia, ilo5-virtualmedia, idrac-virtualmedia, redfish-uefihttp, waits for the user"),
        row("a Secret that is not marked", registering().with(|fixture| { if let Some(Some(one)) = &mut fixture.credentials { one.metadata.finalizers = None; } }), "changes Secret bmc, replan"),
        row("an unsupported feature", registering().spec(json!({ "customDeploy": { "method": "install" } })).node("manageable"), "writes the status, registration error: spec.customDeploy is not supported yet: custom deploy steps; remove it and set spec.image, waits for the user"),
        row("node unknown", registering(), "reads Node, replan"),
        row("no node", registering().no_node(), "requests create node, replan"),
        row("the MAC address of another node", registering().with(|fixture| fixture.foreign = Some("metal~other".into())), "writes the status, registration error: MAC address 52:54:00:00:00:01 conflicts with existing node metal~other; correct spec.bootMACAddress, or remove that node from Ironic, waits for a time"),
        row("a new node", registering().status(json!({ "triedCredentials": {}, "goodCredentials": {}, "provisioning": { "ID": "" } })).node("enroll").freshness(NodeFreshness::Created), "requests manage, writes the status, waits for the node"),
        row("an existing node, with other credentials", registering().status(json!({ "triedCredentials": {}, "goodCredentials": {} })).node("enroll"), "requests manage, waits for the node"),
        row("a node in verification", registering().node("verifying"), "waits for the node"),
        row("a node with failed verification", registering().node_with("enroll", json!({ "last_error": "401" })), "writes the status, registration error: 401, waits for a time"),
        row("the same, recorded", registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)), "waits for a time"),
        row("the same, later", registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)).hours_later(1), "requests manage, writes the status, error cleared, waits for the node"),
        row("the same, and the host was changed", registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)).host(json!({ "metadata": { "generation": 2 }, "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "Error", "message": "", "lastTransitionTime": at(0), "observedGeneration": 1 }] } })), "requests manage, writes the status, error cleared, waits for the node"),
        row("a manageable node, without ports", registering().node("manageable").with(|fixture| fixture.ports = Some(Vec::new())), "requests create port, replan"),
        row("a manageable node", registering().node("manageable"), "writes the status, to inspecting, replan"),
        row("a manageable node with a stale observation", registering().node("manageable").freshness(NodeFreshness::Stale), "waits for the node"),
        row("a node without a free slot", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| fixture.slot = Some(SlotState::Waiting { ahead: 2 })), "writes the status, delayed, waits for a slot"),
        row("the same, with unknown ports", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.ports = None; fixture.slot = Some(SlotState::Waiting { ahead: 2 }); }), "writes the status, delayed, waits for a slot"),
        row("the same, with a slot", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.ports = None; fixture.slot = Some(SlotState::Granted); }), "reads Ports, replan"),
        row("a rejected port, with a slot", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).status(json!({ "operationalStatus": "delayed" })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.ports = Some(Vec::new()); fixture.slot = Some(SlotState::Granted); fixture.refused = Some(Refused { request: "create port", class: RefusalClass::Invalid, message: "exists".into(), is_fresh: false }); }), "requests create port, writes the status, replan"),
        row("a rejected port, waiting for a slot", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).status(json!({ "operationalStatus": "delayed" })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.slot = Some(SlotState::Waiting { ahead: 2 }); fixture.refused = Some(Refused { request: "create port", class: RefusalClass::Invalid, message: "exists".into(), is_fresh: false }); }), "delayed, waits for a slot"),
        row("inspection disabled", registering().node("manageable").spec(json!({ "inspectionMode": "disabled" })), "writes the status, to preparing, replan"),
        row("externally provisioned", registering().node("manageable").spec(json!({ "externallyProvisioned": true })), "writes the status, to externally provisioned, replan"),
        row("a node in use", registering().node("active"), "writes the status, registration error: in Ironic node 11111111-2222-4333-8444-555555555555 is in use (active, instance none), and this host has no record of it; it is not changed. Restore the host's status (annotation baremetalhost.metal3.io/status), or set spec.externallyProvisioned to keep the running system, or undeploy the node in Ironic, waits for a time"),
        row("a node with a power fault", registering().node_with("manageable", json!({ "fault": "power failure", "maintenance": true })), "writes the status, registration error: Ironic cannot reach the BMC (power failure); check its address, network and credentials. Ironic continues once the BMC responds, waits for the node"),
        row("a node in maintenance", registering().node_with("manageable", json!({ "maintenance": true, "maintenance_reason": "disk swap" })), "writes the status, registration error: the node is in maintenance (disk swap), so Ironic does not operate it; end its maintenance in Ironic, waits for the node"),
        row("a request that Ironic rejected", registering().node("enroll").with(|fixture| fixture.refused = Some(Refused { request: "manage", class: RefusalClass::Invalid, message: "no".into(), is_fresh: false })), "writes the status, registration error: Ironic rejected the request (manage): no, waits for a time"),
        row("the same, with another recorded error", registering().node("enroll").status(failing("registration error", "create Secret bmc", 1)).with(|fixture| fixture.refused = Some(Refused { request: "manage", class: RefusalClass::Invalid, message: "no".into(), is_fresh: false })), "writes the status, registration error: Ironic rejected the request (manage): no, waits for a time"),
        row("the same, rejected in this reconcile again", registering().node("enroll").status(failing("registration error", "Ironic rejected the request (manage): no", 1)).with(|fixture| fixture.refused = Some(Refused { request: "manage", class: RefusalClass::Invalid, message: "no".into(), is_fresh: true })), "writes the status, waits for a time"),
        row("deleted", registering().deleted().node("enroll"), "writes the status, to deleting, replan"),
        row("deleted before registration", new().deleted(), "writes the status, to deleting, replan"),
        row("deleted without BMC", Fixture::new("unmanaged").deleted().status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })), "writes the status, to deleting, replan"),
    ]
}
