//! The object itself, credentials and registration.

use metal3_domain::ids::NodeUuid;
use metal3_ironic::slots::SlotState;
use serde_json::json;

use super::Row;
use super::given::{failing, new, provisioned, registering, written_for};
use crate::facts::{ForeignNode, NodeFreshness, PreviousView, RefusalClass, Refused};
use crate::names::FORMER_ANNOTATION;
use crate::settings::BmcSecrets;
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
        provisioned().spec(json!({ "image": null })).annotated("baremetalhost.metal3.io/paused", "").node("active").live().row("a paused host", "waits for the user"),
        provisioned().annotated("baremetalhost.metal3.io/paused", "x").deleted().node("active").live().row("a paused host that is deleted", "waits for the user"),
        provisioned().annotated("clusterctl.cluster.x-k8s.io/delete-for-move", "").deleted().node("active").live().row("a host that is deleted as part of a move", "waits for the user"),
        provisioned().deleted().node("active").live().with(|fixture| fixture.previous = unpaused).row("a host that was paused until its deletion", "waits for a time"),
        provisioned().deleted().node("active").hours_later(1).with(|fixture| fixture.previous = unpaused).row("the same a minute later, from a cache", "reads Host, replan"),
        provisioned().deleted().node("active").live().hours_later(1).with(|fixture| fixture.previous = unpaused).row("the same, read live", "writes the status, to deprovisioning, replan"),
        new().annotated("baremetalhost.metal3.io/status", &saved).row("a saved status", "reads Node, replan"),
        new().annotated("baremetalhost.metal3.io/status", &saved).no_node().row("a saved status, and no node in Ironic", "writes the status, to provisioned, replan"),
        new().annotated("baremetalhost.metal3.io/status", &saved).node_with("active", written_for("a", OTHER_UID)).live().row("a saved status, and the node serves the former instance", "changes the host, replan"),
        new().annotated("baremetalhost.metal3.io/status", &saved).annotated(FORMER_ANNOTATION, OTHER_UID).node_with("active", written_for("a", OTHER_UID)).live().row("the same, recorded in the annotation", "writes the status, to provisioned, replan"),
        new().annotated("baremetalhost.metal3.io/status", &saved).node_with("active", written_for("b", OTHER_UID)).live().row("a saved status, and the node serves another instance with another image", "writes the status, to provisioned, replan"),
        provisioned().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"OK","errorMessage":"","poweredOn":true,"provisioning":{"state":"provisioned","ID":"x"}}"#).row("a saved status that was restored", "changes the host, replan"),
        new().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"","errorMessage":"","poweredOn":false,"provisioning":{"state":"","ID":""}}"#).row("a status saved before registration", "changes the host, replan"),
        new().annotated("baremetalhost.metal3.io/status", "{").row("a saved status that cannot be read", "writes the status, registration error: the annotation baremetalhost.metal3.io/status is not a valid host status: EOF while parsing an object at line 1 column 1; correct it, or remove it to register the host as a new one, waits for the user"),
        new().host(json!({ "metadata": { "finalizers": null } })).row("no finalizer", "changes the host, replan"),
        provisioned().spec(json!({ "architecture": null })).row("no architecture, and inspection found it", "changes the host, replan"),
        new().annotated("inspect.metal3.io/hardwaredetails", r#"{"cpu":{"arch":"x86_64"}}"#).row("external hardware details", "writes the status, replan"),
        new().annotated("inspect.metal3.io/hardwaredetails", "[").row("hardware details that cannot be read", "writes the status, inspection error: the annotation inspect.metal3.io/hardwaredetails cannot be read: EOF while parsing a list at line 1 column 1; correct or remove it, waits for the user"),
        provisioned().annotated("inspect.metal3.io/hardwaredetails", "{}").row("hardware details, when they are known", "changes the host, replan"),
        Fixture::new("polishing").node("active").live().row("a state of another version", "writes the status, registration error: status.provisioning.state is \"polishing\", which this version does not support; the host is not changed. Return to the version that wrote it, waits for the user"),
    ]
}

const UNLABELLED: &str = "writes the status, registration error: Secret bmc is not labelled for use by hosts, so it is not read. If spec.bmc.credentialsName names the right Secret, run: kubectl label secret --namespace metal bmc environment.metal3.io=baremetal, waits for Secret bmc";

fn unlabelled(fixture: &mut Fixture) {
    if let Some(Some(one)) = &mut fixture.credentials {
        (one.metadata.labels, one.metadata.finalizers) = (None, None);
    }
}

pub(super) fn registration() -> Vec<Row> {
    vec![
        new().spec(json!({ "bmc": null })).row("no BMC", "writes the status, to unmanaged, replan"),
        Fixture::new("unmanaged").spec(json!({ "bmc": null })).status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })).row("still no BMC", "waits for the user"),
        Fixture::new("unmanaged").status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })).row("a BMC added", "writes the status, to registering, replan"),
        new().row("a BMC", "writes the status, to registering, replan"),
        registering().with(|fixture| fixture.credentials = None).row("Secret unknown", "reads Credentials, replan"),
        registering().no_secret().row("no Secret", "writes the status, registration error: BMC CredentialsName secret doesn't exist: create Secret bmc with username and password, waits for Secret bmc"),
        registering().no_node().with(|fixture| fixture.credentials = Some(Some(secret("bmc", &[("username", "u")])))).row("a Secret without password", "writes the status, registration error: Validation error with BMC credentials: the Secret that spec.bmc.credentialsName names has no \"password\"; set it, waits for the user"),
        registering().spec(json!({ "bmc": { "credentialsName": "" } })).row("no name of a Secret", "writes the status, registration error: No BMC CredentialsName defined; set spec.bmc.credentialsName to the name of a Secret, waits for the user"),
        registering().spec(json!({ "bmc": { "address": "" } })).row("no address", "writes the status, registration error: Empty BMC address; set spec.bmc.address, waits for the user"),
        registering().no_node().spec(json!({ "bmc": { "address": "pigeon://loft" } })).row("an address with unknown type", "writes the status, registration error: Unknown BMC type 'pigeon' for address pigeon://loft; begin spec.bmc.address with one of ipmi, libvirt, redfish, ilo5-redfish, idrac-redfish, redfish-virtualmedia, ilo5-virtualmedia, idrac-virtualmedia, redfish-uefihttp, waits for the user"),
        registering().with(|fixture| { if let Some(Some(one)) = &mut fixture.credentials { one.metadata.finalizers = None; } }).row("a Secret that is not marked", "changes Secret bmc, replan"),
        registering().with(|fixture| { if let Some(Some(one)) = &mut fixture.credentials { (one.metadata.finalizers, one.values) = (None, None); } }).row("the same, not read yet", "reads Credentials, replan"),
        registering().with(|fixture| { let mut other = secret("bmc", &[("tls.key", "k")]); other.metadata.finalizers = None; fixture.credentials = Some(Some(other)); }).row("a Secret that is not marked and holds no login", "writes the status, registration error: Validation error with BMC credentials: the Secret that spec.bmc.credentialsName names has no \"username\"; set it, waits for the user"),
        registering().with(unlabelled).status(json!({ "triedCredentials": null, "goodCredentials": null })).row("a new host, and a Secret without the label", UNLABELLED),
        registering().with(unlabelled).with(|fixture| if let Some(Some(one)) = &mut fixture.credentials { one.values = None; }).status(json!({ "triedCredentials": null, "goodCredentials": null })).row("the same, not read yet", UNLABELLED),
        registering().with(unlabelled).with(|fixture| fixture.settings.bmc_secrets = BmcSecrets::Any).status(json!({ "triedCredentials": null, "goodCredentials": null })).row("the same, and any Secret is allowed", "changes Secret bmc, replan"),
        registering().with(unlabelled).with(|fixture| if let Some(Some(one)) = &mut fixture.credentials { one.metadata.finalizers = Some(vec!["baremetalhost.metal3.io/secret".to_owned()]); }).row("a Secret without the label that a host used before", "changes Secret bmc, replan"),
        registering().with(unlabelled).row("a Secret without the label in the status of the host, which users restore", UNLABELLED),
        registering().with(unlabelled).status(json!({ "triedCredentials": { "credentials": { "name": "former" } }, "goodCredentials": { "credentials": { "name": "former" } } })).row("a host that was registered with another Secret", UNLABELLED),
        registering().spec(json!({ "preprovisioningNetworkDataName": "net" })).with(|fixture| { let mut net = secret("net", &[("networkData", "{}")]); net.metadata.labels = None; net.metadata.finalizers = None; net.values = None; fixture.agent_network = Some(Some(net)); }).row("network data for the agent without the label", "writes the status, registration error: Secret net is not labelled for use by hosts, so it is not read. If spec.preprovisioningNetworkDataName names the right Secret, run: kubectl label secret --namespace metal net environment.metal3.io=baremetal, waits for Secret net"),
        registering().no_node().spec(json!({ "preprovisioningNetworkDataName": "net" })).with(|fixture| { let mut net = secret("net", &[("tls.key", "k")]); net.metadata.finalizers = None; net.values = None; fixture.agent_network = Some(Some(net)); }).row("network data for the agent, not read yet", "reads AgentNetwork, replan"),
        registering().row("node unknown", "reads Node, replan"),
        registering().no_node().row("no node", "requests create node, replan"),
        registering().with(|fixture| fixture.foreign = Some(ForeignNode::Recorded { uuid: NodeUuid::parse(NODE).unwrap() })).row("the status records the node of another host", "writes the status, registration error: node 11111111-2222-4333-8444-555555555555 in status.provisioning.ID has not the name of this host in Ironic, so it may serve another host and is not changed. If it is the node of this host, an administrator of Ironic names it metal~h, waits for a time"),
        registering().with(|fixture| fixture.foreign = Some(ForeignNode::Address { name: Some("secret~other".into()) })).row("the MAC address of a node of another namespace", "writes the status, registration error: MAC address 52:54:00:00:00:01 conflicts with an existing node that is not of this namespace; correct spec.bootMACAddress, or ask the administrator of Ironic which machine has that address, waits for a time"),
        registering().with(|fixture| fixture.foreign = Some(ForeignNode::Address { name: Some("metal~other".into()) })).row("the MAC address of another node", "writes the status, registration error: MAC address 52:54:00:00:00:01 conflicts with existing node metal~other; correct spec.bootMACAddress, or remove that node from Ironic, waits for a time"),
        registering().status(json!({ "triedCredentials": {}, "goodCredentials": {}, "provisioning": { "ID": "" } })).node("enroll").freshness(NodeFreshness::Created).row("a new node", "requests manage, writes the status, waits for the node"),
        registering().status(json!({ "triedCredentials": {}, "goodCredentials": {} })).node("enroll").row("an existing node, with other credentials", "requests manage, waits for the node"),
        registering().node("enroll").with(|fixture| fixture.ports = None).row("a node that is not verified, and unknown ports", "reads Ports, replan"),
        registering().node("enroll").with(|fixture| fixture.ports = Some(Vec::new())).row("a node that is not verified, without ports", "requests create port, requests manage, waits for the node"),
        provisioned().node("enroll").with(|fixture| fixture.ports = Some(Vec::new())).row("a node made again for a running host", "requests create port, requests manage, waits for the node"),
        provisioned().node_with("active", written_for("a", crate::tests::fixture::UID)).with(|fixture| fixture.boot_port_exists = false).row("a boot MAC address that is no known card", "reads Ports, replan"),
        provisioned().node_with("active", written_for("a", crate::tests::fixture::UID)).with(|fixture| { fixture.boot_port_exists = false; fixture.ports = Some(Vec::new()); }).row("the same, without its port", "requests create port, replan"),
        registering().node("verifying").row("a node in verification", "waits for the node"),
        registering().node_with("enroll", json!({ "last_error": "401" })).row("a node with failed verification", "writes the status, registration error: 401, waits for a time"),
        registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)).row("the same, recorded", "waits for a time"),
        registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)).hours_later(1).row("the same, later", "requests manage, writes the status, error cleared, waits for the node"),
        registering().node_with("enroll", json!({ "last_error": "401" })).status(failing("registration error", "401", 1)).host(json!({ "metadata": { "generation": 2 }, "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "Error", "message": "", "lastTransitionTime": at(0), "observedGeneration": 1 }] } })).row("the same, and the host was changed", "requests manage, writes the status, error cleared, waits for the node"),
        registering().node("manageable").with(|fixture| fixture.ports = Some(Vec::new())).row("a manageable node, without ports", "requests create port, replan"),
        registering().node("manageable").row("a manageable node", "writes the status, to inspecting, replan"),
        registering().node("manageable").freshness(NodeFreshness::Stale).row("a manageable node with a stale observation", "waits for the node"),
        registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| fixture.slot = Some(SlotState::Waiting { ahead: 2 })).row("a node without a free slot", "writes the status, delayed, waits for a slot"),
        registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.ports = None; fixture.slot = Some(SlotState::Waiting { ahead: 2 }); }).row("the same, with unknown ports", "writes the status, delayed, waits for a slot"),
        registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.ports = None; fixture.slot = Some(SlotState::Granted); }).row("the same, with a slot", "reads Ports, replan"),
        registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).status(json!({ "operationalStatus": "delayed" })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.ports = Some(Vec::new()); fixture.slot = Some(SlotState::Granted); fixture.refused = Some(Refused { request: "create port", class: RefusalClass::Invalid, message: "exists".into(), is_fresh: false, is_over: false, is_lock: false }); }).row("a rejected port, with a slot", "requests create port, writes the status, replan"),
        registering().spec(json!({ "bmc": { "address": "redfish://192.0.2.10/redfish/v1/Systems/1" } })).status(json!({ "operationalStatus": "delayed" })).node_with("manageable", json!({ "boot_interface": "ipxe" })).with(|fixture| { fixture.slot = Some(SlotState::Waiting { ahead: 2 }); fixture.refused = Some(Refused { request: "create port", class: RefusalClass::Invalid, message: "exists".into(), is_fresh: false, is_over: false, is_lock: false }); }).row("a rejected port, waiting for a slot", "delayed, waits for a slot"),
        registering().node("manageable").spec(json!({ "inspectionMode": "disabled" })).row("inspection disabled", "writes the status, to preparing, replan"),
        registering().node("manageable").spec(json!({ "externallyProvisioned": true })).row("externally provisioned", "writes the status, to externally provisioned, replan"),
        registering().node("active").row("a node in use", "writes the status, registration error: in Ironic node 11111111-2222-4333-8444-555555555555 is in use (active, instance none), and this host has no record of it; it is not changed. Restore the host's status (annotation baremetalhost.metal3.io/status), or undeploy the node in Ironic. To keep the running system without that status, delete the host, which leaves the machine as it is, and create it again with spec.externallyProvisioned, waits for a time"),
        registering().node_with("manageable", json!({ "fault": "power failure", "maintenance": true })).row("a node with a power fault", "writes the status, registration error: Ironic cannot reach the BMC (power failure); check its address, network and credentials. Ironic continues once the BMC responds, waits for the node"),
        registering().node_with("manageable", json!({ "maintenance": true, "maintenance_reason": "disk swap" })).row("a node in maintenance", "writes the status, registration error: the node is in maintenance (disk swap), so Ironic does not operate it; end its maintenance in Ironic, waits for the node"),
        registering().node("enroll").refused("manage", RefusalClass::Invalid, "no").row("a request that Ironic rejected", "writes the status, registration error: Ironic rejected the request (manage): no, waits for a time"),
        registering().node("enroll").status(failing("registration error", "create Secret bmc", 1)).refused("manage", RefusalClass::Invalid, "no").row("the same, with another recorded error", "writes the status, registration error: Ironic rejected the request (manage): no, waits for a time"),
        registering().node("enroll").status(failing("registration error", "Ironic rejected the request (manage): no", 1)).with(|fixture| fixture.refused = Some(Refused { request: "manage", class: RefusalClass::Invalid, message: "no".into(), is_fresh: true, is_over: false, is_lock: false })).row("the same, rejected in this reconcile again", "writes the status, waits for a time"),
        registering().deleted().node("enroll").row("deleted", "writes the status, to deleting, replan"),
        new().deleted().row("deleted before registration", "writes the status, to deleting, replan"),
        Fixture::new("unmanaged").deleted().status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })).row("deleted without BMC", "writes the status, to deleting, replan"),
    ]
}
