//! A host and its node meet: the object itself, credentials, registration.

use metal3_ironic::slots::Turn;
use serde_json::json;

use super::given::{failing, new, provisioned, registering, with, written};
use super::{Row, row};
use crate::facts::{Cure, LastView, NodeSeen, Refused};
use crate::names::FORMER_ANNOTATION;
use crate::tests::scene::{NODE, OTHER_UID, Scene, at, image, secret};

pub(super) fn object() -> Vec<Row> {
    let unpaused = LastView {
        paused: true,
        moving: false,
    };
    let saved = json!({ "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0, "provisioningFailCount": 0,
        "provisioning": { "state": "provisioned", "ID": NODE, "image": image("a") } })
    .to_string();
    vec![
        row("a paused host", provisioned().spec(json!({ "image": null })).annotated("baremetalhost.metal3.io/paused", "").node("active").live(), "waits for the user"),
        row("a paused host that is deleted", provisioned().annotated("baremetalhost.metal3.io/paused", "x").deleted().node("active").live(), "waits for the user"),
        row("a host that is deleted because it moved", provisioned().annotated("clusterctl.cluster.x-k8s.io/delete-for-move", "").deleted().node("active").live(), "waits for the user"),
        row("a host that was paused until it was deleted", provisioned().deleted().node("active").live().with(|scene| scene.before = unpaused), "waits for a time"),
        row("the same a minute later, from a cache", provisioned().deleted().node("active").later(1).with(|scene| scene.before = unpaused), "reads Host, again"),
        row("the same, read live", provisioned().deleted().node("active").live().later(1).with(|scene| scene.before = unpaused), "writes the status, to deprovisioning, again"),
        row("a saved status", new().annotated("baremetalhost.metal3.io/status", &saved), "reads Node, again"),
        row("a saved status, and no node in Ironic", new().annotated("baremetalhost.metal3.io/status", &saved).no_node(), "writes the status, to provisioned, again"),
        row("a saved status, and the node serves what the host was before it moved", new().annotated("baremetalhost.metal3.io/status", &saved).node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))).live(), "changes the host, again"),
        row("the same, written down", new().annotated("baremetalhost.metal3.io/status", &saved).annotated(FORMER_ANNOTATION, OTHER_UID).node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))).live(), "writes the status, to provisioned, again"),
        row("a saved status, and the node serves another with another image", new().annotated("baremetalhost.metal3.io/status", &saved).node_with("active", with(written("b"), json!({ "instance_uuid": OTHER_UID }))).live(), "writes the status, to provisioned, again"),
        row("a saved status that was restored", provisioned().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"OK","errorMessage":"","poweredOn":true,"provisioning":{"state":"provisioned","ID":"x"}}"#), "changes the host, again"),
        row("a status that was saved before anything had begun", new().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"","errorMessage":"","poweredOn":false,"provisioning":{"state":"","ID":""}}"#), "changes the host, again"),
        row("a saved status that cannot be read", new().annotated("baremetalhost.metal3.io/status", "{"), "writes the status, registration error: the annotation baremetalhost.metal3.io/status cannot be read as the status of a host: EOF while parsing an object at line 1 column 1; correct it, or remove it to have the host registered as a new one, waits for the user"),
        row("no finalizer", new().host(json!({ "metadata": { "finalizers": null } })), "changes the host, again"),
        row("no architecture, and inspection found it", provisioned().spec(json!({ "architecture": null })), "changes the host, again"),
        row("hardware details from outside", new().annotated("inspect.metal3.io/hardwaredetails", r#"{"cpu":{"arch":"x86_64"}}"#), "writes the status, again"),
        row("hardware details that cannot be read", new().annotated("inspect.metal3.io/hardwaredetails", "["), "writes the status, inspection error: the annotation inspect.metal3.io/hardwaredetails cannot be read: EOF while parsing a list at line 1 column 1; correct or remove it, waits for the user"),
        row("hardware details, when they are known", provisioned().annotated("inspect.metal3.io/hardwaredetails", "{}"), "changes the host, again"),
        row("a state of another version", Scene::new("polishing").node("active").live(), "writes the status, registration error: status.provisioning.state is \"polishing\", which this version does not know; the host is left as it is. Go back to the version that wrote it, waits for the user"),
    ]
}

pub(super) fn registration() -> Vec<Row> {
    vec![
        row("no BMC", new().spec(json!({ "bmc": null })), "writes the status, to unmanaged, again"),
        row("still no BMC", Scene::new("unmanaged").spec(json!({ "bmc": null })).status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })), "waits for the user"),
        row("a BMC at last", Scene::new("unmanaged").status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })), "writes the status, to registering, again"),
        row("a BMC", new(), "writes the status, to registering, again"),
        row("no word of the Secret", registering().with(|scene| scene.credentials = None), "reads Credentials, again"),
        row("no Secret", registering().with(|scene| scene.credentials = Some(None)), "writes the status, registration error: BMC CredentialsName secret doesn't exist: create Secret bmc with username and password, waits for Secret bmc"),
        row("a Secret without password", registering().no_node().with(|scene| scene.credentials = Some(Some(secret("bmc", &[("username", "u")])))), "writes the status, registration error: Validation error with BMC credentials: the Secret that spec.bmc.credentialsName names has no \"password\"; set it, waits for the user"),
        row("no name of a Secret", registering().spec(json!({ "bmc": { "credentialsName": "" } })), "writes the status, registration error: No BMC CredentialsName defined; set spec.bmc.credentialsName to the name of a Secret, waits for the user"),
        row("no address", registering().spec(json!({ "bmc": { "address": "" } })), "writes the status, registration error: Empty BMC address; set spec.bmc.address, waits for the user"),
        row("an address that nothing drives", registering().no_node().spec(json!({ "bmc": { "address": "pigeon://loft" } })), "writes the status, registration error: Unknown BMC type 'pigeon' for address pigeon://loft; begin spec.bmc.address with one of ipmi, libvirt, redfish, ilo5-redfish, idrac-redfish, redfish-virtualmedia, ilo5-virtualmedia, idrac-virtualmedia, redfish-uefihttp, waits for the user"),
        row("a Secret that is not marked", registering().with(|scene| { if let Some(Some(one)) = &mut scene.credentials { one.metadata.finalizers = None; } }), "changes Secret bmc, again"),
        row("something not built", registering().spec(json!({ "customDeploy": { "method": "install" } })).node("manageable"), "writes the status, registration error: spec.customDeploy is not supported yet: deployments by a step of the agent; remove it and set spec.image, waits for the user"),
        row("no word of the node", registering(), "reads Node, again"),
        row("no node", registering().no_node(), "asks create node, again"),
        row("the MAC address of another node", registering().with(|scene| scene.foreign = Some("metal~other".into())), "writes the status, registration error: MAC address 52:54:00:00:00:01 conflicts with existing node metal~other; correct spec.bootMACAddress, or remove that node from Ironic, waits for a time"),
        row("a new node", registering().status(json!({ "triedCredentials": {}, "goodCredentials": {}, "provisioning": { "ID": "" } })).node("enroll").seen(NodeSeen::Created), "asks manage, writes the status, waits for the node"),
        row("a node that was found, with another login", registering().status(json!({ "triedCredentials": {}, "goodCredentials": {} })).node("enroll"), "asks manage, waits for the node"),
        row("a node that is tried", registering().node("verifying"), "waits for the node"),
        row("a node that refused", registering().node_with("enroll", json!({ "last_error": "401" })), "writes the status, registration error: 401, waits for a time"),
        row("the same, and told", registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)), "waits for a time"),
        row("the same, later", registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)).later(1), "asks manage, writes the status, well again, waits for the node"),
        row("the same, and the host was changed", registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)).host(json!({ "metadata": { "generation": 2 }, "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "Error", "message": "", "lastTransitionTime": at(0), "observedGeneration": 1 }] } })), "asks manage, writes the status, well again, waits for the node"),
        row("a node under control, without ports", registering().node("manageable").with(|scene| scene.ports = Some(Vec::new())), "asks create port, again"),
        row("a node under control", registering().node("manageable"), "writes the status, to inspecting, again"),
        row("a node under control, seen before our request", registering().node("manageable").seen(NodeSeen::Stale), "waits for the node"),
        row("a node of a network that is full", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|scene| scene.turn = Some(Turn::Waiting { ahead: 2 })), "writes the status, delayed, waits for its turn"),
        row("the same, and nobody looked at its ports", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|scene| { scene.ports = None; scene.turn = Some(Turn::Waiting { ahead: 2 }); }), "writes the status, delayed, waits for its turn"),
        row("the same, and its turn has come", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|scene| { scene.ports = None; scene.turn = Some(Turn::Granted); }), "reads Ports, again"),
        row("a port that was refused, and the turn has come", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).status(json!({ "operationalStatus": "delayed" })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|scene| { scene.ports = Some(Vec::new()); scene.turn = Some(Turn::Granted); scene.refused = Some(Refused { request: "create port", cure: Cure::Change, message: "exists".into(), is_fresh: false }); }), "asks create port, writes the status, again"),
        row("a port that was refused, and others are before it", registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).status(json!({ "operationalStatus": "delayed" })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|scene| { scene.turn = Some(Turn::Waiting { ahead: 2 }); scene.refused = Some(Refused { request: "create port", cure: Cure::Change, message: "exists".into(), is_fresh: false }); }), "delayed, waits for its turn"),
        row("inspection disabled", registering().node("manageable").spec(json!({ "inspectionMode": "disabled" })), "writes the status, to preparing, again"),
        row("deployed by something else", registering().node("manageable").spec(json!({ "externallyProvisioned": true })), "writes the status, to externally provisioned, again"),
        row("a node that runs something", registering().node("active"), "writes the status, registration error: in Ironic node 11111111-2222-4333-8444-555555555555 is in use (active, instance none), and this host has no record of that; it is left as it is. Restore the host's status (annotation baremetalhost.metal3.io/status), or set spec.externallyProvisioned to keep what runs, or undeploy the node in Ironic, waits for a time"),
        row("a node that does not answer", registering().node_with("manageable", json!({ "fault": "power failure", "maintenance": true })), "writes the status, registration error: Ironic does not reach the BMC (power failure); check its address, network and login. Ironic goes on by itself once it does, waits for the node"),
        row("a node in maintenance", registering().node_with("manageable", json!({ "maintenance": true, "maintenance_reason": "disk swap" })), "writes the status, registration error: the node is in maintenance (disk swap), so Ironic leaves it alone; end its maintenance in Ironic, waits for the node"),
        row("a request that Ironic refused", registering().node("enroll").with(|scene| scene.refused = Some(Refused { request: "manage", cure: Cure::Change, message: "no".into(), is_fresh: false })), "writes the status, registration error: Ironic refuses the request (manage): no, waits for a time"),
        row("the same, while another error is told", registering().node("enroll").status(failing("registration error", "create Secret bmc", 1)).with(|scene| scene.refused = Some(Refused { request: "manage", cure: Cure::Change, message: "no".into(), is_fresh: false })), "writes the status, registration error: Ironic refuses the request (manage): no, waits for a time"),
        row("the same, just now and once more", registering().node("enroll").status(failing("registration error", "Ironic refuses the request (manage): no", 1)).with(|scene| scene.refused = Some(Refused { request: "manage", cure: Cure::Change, message: "no".into(), is_fresh: true })), "writes the status, waits for a time"),
        row("deleted", registering().deleted().node("enroll"), "writes the status, to deleting, again"),
        row("deleted before anything", new().deleted(), "writes the status, to deleting, again"),
        row("deleted without BMC", Scene::new("unmanaged").deleted().status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })), "writes the status, to deleting, again"),
    ]
}
