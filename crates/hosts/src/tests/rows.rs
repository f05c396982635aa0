//! Decision tables: for each state, what is given and what is done.
#![expect(clippy::too_many_lines, reason = "each function is a table")]

use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::slots::Turn;
use serde_json::{Value, json};

use super::scene::{MAC, NODE, OTHER_UID, Scene, at, image, node, secret};
use crate::facts::{Cure, HostSeen, LastView, NodeSeen, Outage, Refused};

/// Given, and what the plan says.
pub(crate) struct Row {
    pub(crate) given: &'static str,
    pub(crate) scene: Scene,
    pub(crate) then: &'static str,
}

fn row(given: &'static str, scene: Scene, then: &'static str) -> Row {
    Row { given, scene, then }
}

fn new() -> Scene {
    Scene::new("")
}

fn registering() -> Scene {
    Scene::new("registering")
        .with(|scene| scene.ports = Some(vec![port()]))
        .status(json!({ "hardware": null }))
}

fn port() -> metal3_ironic::model::port::Port {
    serde_json::from_value(json!({ "uuid": "p", "node_uuid": NODE, "address": MAC, "pxe_enabled": true })).unwrap()
}

fn inspecting() -> Scene {
    Scene::new("inspecting").status(json!({ "hardware": null }))
}

fn preparing() -> Scene {
    Scene::new("preparing").with(|scene| scene.ports = Some(vec![port()]))
}

fn available() -> Scene {
    Scene::new("available").spec(json!({ "online": false }))
}

fn asked() -> Scene {
    Scene::new("available").asks("a").node("available")
}

fn provisioning() -> Scene {
    Scene::new("provisioning")
        .asks("a")
        .status(json!({ "lastAttemptedImage": image("a") }))
}

fn provisioned() -> Scene {
    Scene::new("provisioned").asks("a").runs("a")
}

fn external() -> Scene {
    Scene::new("externally provisioned")
        .spec(json!({ "externallyProvisioned": true }))
        .status(json!({ "poweredOn": true }))
}

fn deprovisioning() -> Scene {
    Scene::new("deprovisioning").runs("a")
}

fn powering_off() -> Scene {
    Scene::new("powering off before delete").deleted()
}

fn deleting() -> Scene {
    Scene::new("deleting").deleted()
}

/// What the node shows after it was told to deploy.
fn written(name: &str) -> Value {
    let image = image(name);
    json!({ "instance_uuid": super::scene::UID, "power_state": "power on",
        "instance_info": { "image_source": image["url"], "image_os_hash_algo": "sha256", "image_os_hash_value": "0".repeat(64),
            "image_disk_format": "qcow2", "capabilities": {}, "root_device": { "name": "s== /dev/sda" } },
        "driver_info": { "force_persistent_boot_device": "Default" } })
}

fn with(mut node: Value, change: Value) -> Value {
    metal3_runtime::patch::apply(&change, &mut node);
    node
}

fn failing(kind: &str, message: &str, count: i64) -> Value {
    json!({ "operationalStatus": "error", "errorType": kind, "errorMessage": message, "errorCount": count })
}

fn details() -> Inspection {
    serde_json::from_value(
        json!({ "inventory": { "cpu": { "architecture": "x86_64", "count": 4 } }, "plugin_data": {} }),
    )
    .unwrap()
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = object();
    rows.extend(registration());
    rows.extend(inspection());
    rows.extend(preparation());
    rows.extend(waiting());
    rows.extend(deployment());
    rows.extend(running());
    rows.extend(power());
    rows.extend(removal());
    rows.extend(leaving());
    rows.extend(detached());
    rows
}

fn object() -> Vec<Row> {
    let unpaused = LastView {
        paused: true,
        moving: false,
    };
    vec![
        row("a paused host", provisioned().spec(json!({ "image": null })).annotated("baremetalhost.metal3.io/paused", "").node("active").live(), "waits for the user"),
        row("a paused host that is deleted", provisioned().annotated("baremetalhost.metal3.io/paused", "x").deleted().node("active").live(), "waits for the user"),
        row("a host that is deleted because it moved", provisioned().annotated("clusterctl.cluster.x-k8s.io/delete-for-move", "").deleted().node("active").live(), "waits for the user"),
        row("a host that was paused until it was deleted", provisioned().deleted().node("active").live().with(|scene| scene.before = unpaused), "waits for a time"),
        row("the same a minute later, from a cache", provisioned().deleted().node("active").later(1).with(|scene| scene.before = unpaused), "reads Host, again"),
        row("the same, read live", provisioned().deleted().node("active").live().later(1).with(|scene| scene.before = unpaused), "writes the status, to deprovisioning, again"),
        row("a saved status", new().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"OK","errorMessage":"","poweredOn":true,"errorCount":0,"provisioningFailCount":0,"provisioning":{"state":"provisioned","ID":"x","image":{"url":"http://192.0.2.9/a.qcow2"}}}"#), "writes the status, to provisioned, again"),
        row("a saved status that was restored", provisioned().annotated("baremetalhost.metal3.io/status", r#"{"operationalStatus":"OK","errorMessage":"","poweredOn":true,"provisioning":{"state":"provisioned","ID":"x"}}"#), "changes the host, again"),
        row("a saved status that cannot be read", new().annotated("baremetalhost.metal3.io/status", "{"), "writes the status, registration error: the annotation baremetalhost.metal3.io/status cannot be read as the status of a host: EOF while parsing an object at line 1 column 1; correct it, or remove it to have the host registered as a new one, waits for the user"),
        row("no finalizer", new().host(json!({ "metadata": { "finalizers": null } })), "changes the host, again"),
        row("no architecture, and inspection found it", provisioned().spec(json!({ "architecture": null })), "changes the host, again"),
        row("hardware details from outside", new().annotated("inspect.metal3.io/hardwaredetails", r#"{"cpu":{"arch":"x86_64"}}"#), "writes the status, again"),
        row("hardware details that cannot be read", new().annotated("inspect.metal3.io/hardwaredetails", "["), "writes the status, inspection error: the annotation inspect.metal3.io/hardwaredetails cannot be read: EOF while parsing a list at line 1 column 1; correct or remove it, waits for the user"),
        row("hardware details, when they are known", provisioned().annotated("inspect.metal3.io/hardwaredetails", "{}"), "changes the host, again"),
        row("a state of another version", Scene::new("polishing").node("active").live(), "writes the status, registration error: status.provisioning.state is \"polishing\", which this version does not know; the host is left as it is. Go back to the version that wrote it, waits for the user"),
    ]
}

fn registration() -> Vec<Row> {
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
        row("inspection disabled", registering().node("manageable").spec(json!({ "inspectionMode": "disabled" })), "writes the status, to preparing, again"),
        row("deployed by something else", registering().node("manageable").spec(json!({ "externallyProvisioned": true })), "writes the status, to externally provisioned, again"),
        row("a node that runs something", registering().node("active"), "writes the status, registration error: in Ironic node 11111111-2222-4333-8444-555555555555 is in use (active, instance none), and this host has no record of that; it is left as it is. Restore the host's status (annotation baremetalhost.metal3.io/status), or set spec.externallyProvisioned to keep what runs, or undeploy the node in Ironic, waits for a time"),
        row("a node that does not answer", registering().node_with("manageable", json!({ "fault": "power failure", "maintenance": true })), "writes the status, registration error: Ironic does not reach the BMC (power failure); check its address, network and login. Ironic goes on by itself once it does, waits for the node"),
        row("a node in maintenance", registering().node_with("manageable", json!({ "maintenance": true, "maintenance_reason": "disk swap" })), "writes the status, registration error: the node is in maintenance (disk swap), so Ironic leaves it alone; end its maintenance in Ironic, waits for the node"),
        row("a request that Ironic refused", registering().node("enroll").with(|scene| scene.refused = Some(Refused { request: "manage", cure: Cure::Change, message: "no".into() })), "writes the status, registration error: Ironic refuses the request (manage): no, waits for a time"),
        row("deleted", registering().deleted().node("enroll"), "writes the status, to deleting, again"),
        row("deleted before anything", new().deleted(), "writes the status, to deleting, again"),
        row("deleted without BMC", Scene::new("unmanaged").deleted().status(json!({ "operationalStatus": "discovered", "errorMessage": "", "poweredOn": false, "provisioning": { "state": "unmanaged", "ID": "" } })), "writes the status, to deleting, again"),
    ]
}

fn inspection() -> Vec<Row> {
    vec![
        row(
            "nothing known",
            inspecting().node("manageable"),
            "reads Inventory, again",
        ),
        row(
            "never inspected",
            inspecting()
                .node("manageable")
                .with(|scene| scene.inventory = Some(None)),
            "asks inspect, waits for the node",
        ),
        row(
            "inspected",
            inspecting()
                .node("manageable")
                .with(|scene| scene.inventory = Some(Some(details()))),
            "creates hardware data, writes the status, to preparing, again",
        ),
        row(
            "inspected, and hardware data unknown",
            inspecting().node("manageable").with(|scene| {
                scene.inventory = Some(Some(details()));
                scene.hardware_data = None;
            }),
            "reads HardwareData, again",
        ),
        row(
            "inspected, and to be inspected again",
            inspecting()
                .node("manageable")
                .annotated("inspect.metal3.io", "")
                .with(|scene| scene.inventory = Some(Some(details()))),
            "asks inspect, changes the host, again",
        ),
        row("under way", inspecting().node("inspect wait"), "waits for the node"),
        row(
            "under way, and the wish still there",
            inspecting().node("inspect wait").annotated("inspect.metal3.io", ""),
            "changes the host, again",
        ),
        row(
            "failed",
            inspecting().node_with("inspect failed", json!({ "last_error": "no lease" })),
            "writes the status, inspection error: no lease, waits for a time",
        ),
        row(
            "failed, told and later",
            inspecting()
                .node_with("inspect failed", json!({ "last_error": "no lease" }))
                .status(failing("inspection error", "no lease", 2))
                .later(1),
            "asks inspect, writes the status, well again, waits for the node",
        ),
        row(
            "disabled meanwhile",
            inspecting()
                .node("inspect wait")
                .spec(json!({ "inspectionMode": "disabled" })),
            "writes the status, to preparing, again",
        ),
        row(
            "the node is available",
            inspecting().node("available"),
            "asks manage, waits for the node",
        ),
        row(
            "the node runs something",
            inspecting().node("active"),
            "writes the status, inspection error: in Ironic the node is in state \"active\", which does not fit a host that is \"inspecting\"; it is left as it is. If nothing needs what runs there, undeploy the node in Ironic; else set spec.externallyProvisioned, waits for the node",
        ),
        row(
            "the node was forgotten",
            inspecting().no_node(),
            "asks create node, again",
        ),
        row(
            "deleted",
            inspecting().node("inspect wait").deleted(),
            "writes the status, to powering off before delete, again",
        ),
        row(
            "an older manager's state",
            Scene::new("match profile").node("manageable"),
            "writes the status, to preparing, again",
        ),
        row(
            "an older manager's state, deleted",
            Scene::new("match profile").node("manageable").deleted(),
            "writes the status, to powering off before delete, again",
        ),
    ]
}

fn preparation() -> Vec<Row> {
    vec![
        row(
            "nothing to do",
            preparing().node("manageable"),
            "writes the status, to available, again",
        ),
        row(
            "ports unknown",
            preparing().node("manageable").with(|scene| scene.ports = None),
            "reads Ports, again",
        ),
        row(
            "an unknown profile",
            preparing()
                .node("manageable")
                .status(json!({ "hardwareProfile": "antique" })),
            "writes the status, registration error: status.hardwareProfile: there is no hardware profile \"antique\"; set spec.rootDeviceHints and remove spec.hardwareProfile, waits for the user",
        ),
        row(
            "cleaning failed",
            preparing().node_with(
                "clean failed",
                json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
            ),
            "writes the status, preparation error: disk, waits for a time",
        ),
        row(
            "cleaning failed, told and later",
            preparing()
                .node_with(
                    "clean failed",
                    json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
                )
                .status(failing("preparation error", "disk", 1))
                .later(1),
            "asks clear maintenance, asks manage, writes the status, well again, waits for the node",
        ),
        row(
            "deleted",
            preparing().node("manageable").deleted(),
            "writes the status, to powering off before delete, again",
        ),
    ]
}

fn waiting() -> Vec<Row> {
    let delayed = available()
        .status(json!({ "operationalStatus": "delayed" }))
        .node("available");
    let failed = json!({ "lastAttemptedImage": image("a"), "provisioningFailCount": 1, "errorCount": 1, "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Image provisioning failed" });
    vec![
        row(
            "nothing asked any more, after a delay",
            delayed,
            "writes the status, settled",
        ),
        row("nothing asked", available().node("available"), "settled"),
        row("an image, and off", asked().spec(json!({ "online": false })), "settled"),
        row("an image", asked(), "writes the status, to provisioning, again"),
        row(
            "an image without checksum",
            asked().spec(json!({ "image": { "checksum": null } })),
            "writes the status, provisioning error: spec.image.checksum: the checksum is missing; set it to the image's digest or to the URL of a file of digests, waits for the user",
        ),
        row(
            "an image that failed just now",
            asked().status(failed.clone()),
            "waits for a time",
        ),
        row(
            "an image that failed a while ago",
            asked().status(failed.clone()).later(1),
            "writes the status, to provisioning, well again, again",
        ),
        row(
            "an image that failed, and another now",
            asked().asks("b").status(failed.clone()),
            "writes the status, to provisioning, well again, again",
        ),
        row(
            "an image that failed too often",
            asked()
                .status(failed.clone())
                .status(json!({ "provisioningFailCount": 5 }))
                .later(9),
            "writes the status, provisioning error: provisioning failed 5 times, retry limit (5) reached; change image or reset provisioningFailCount to retry, waits for the user",
        ),
        row(
            "an image that failed, and is not asked any more",
            available().node("available").status(failed),
            "writes the status, well again, settled",
        ),
        row(
            "to be inspected again",
            available().node("available").annotated("inspect.metal3.io", ""),
            "writes the status, to inspecting, again",
        ),
        row(
            "another disk",
            available()
                .node("available")
                .spec(json!({ "rootDeviceHints": { "deviceName": "/dev/sdb" } })),
            "writes the status, to preparing, again",
        ),
        row(
            "deployed by something else",
            available()
                .node("available")
                .spec(json!({ "externallyProvisioned": true })),
            "writes the status, to externally provisioned, again",
        ),
        row(
            "the node was forgotten",
            available().no_node(),
            "asks create node, again",
        ),
        row(
            "the node runs something",
            available().node("active"),
            "writes the status, preparation error: in Ironic the node is in state \"active\", which does not fit a host that is \"available\"; it is left as it is. Undeploy the node in Ironic if nothing needs what runs there, waits for the node",
        ),
        row(
            "the older word",
            Scene::new("ready").spec(json!({ "online": false })).node("available"),
            "settled",
        ),
        row(
            "cleaning failed",
            available().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })),
            "writes the status, preparation error: disk, waits for a time",
        ),
        row(
            "deleted",
            available().node("available").deleted(),
            "writes the status, to powering off before delete, again",
        ),
    ]
}

fn deployment() -> Vec<Row> {
    let ready = || provisioning().node_with("available", written("a"));
    let verdict =
        |good: bool| serde_json::from_value(json!({ "boot": { "result": good, "reason": "no kernel" } })).ok();
    let data = || {
        provisioning()
            .spec(json!({ "userData": { "name": "first" } }))
            .node("available")
            .live()
    };
    vec![
        row(
            "a node that was not cleaned",
            provisioning().node("manageable"),
            "reads Host, reads Node, again",
        ),
        row(
            "a node that was not cleaned, read live",
            provisioning().node("manageable").live(),
            "asks provide, waits for the node",
        ),
        row(
            "a node that is cleaned",
            provisioning().node("clean wait"),
            "waits for the node",
        ),
        row(
            "cleaning failed",
            provisioning().node_with("clean failed", json!({ "last_error": "disk", "maintenance": true })),
            "writes the status, provisioning error: Cleaning failed: disk, waits for a time",
        ),
        row(
            "cleaning failed, told and later",
            provisioning()
                .node_with("clean failed", json!({ "last_error": "disk", "maintenance": true }))
                .status(failing("provisioning error", "Cleaning failed: disk", 1))
                .later(1),
            "asks clear maintenance, asks manage, writes the status, well again, waits for the node",
        ),
        row(
            "a clean node from the feed",
            provisioning().node("available"),
            "reads Host, reads Node, again",
        ),
        row(
            "a clean node, read live",
            provisioning().node("available").live(),
            "asks change node, again",
        ),
        row("a node that knows the image", ready().live(), "reads Validation, again"),
        row(
            "a node that cannot deploy",
            ready().live().with(|scene| scene.validation = verdict(false)),
            "writes the status, provisioning error: host validation error: no kernel, waits for a time",
        ),
        row(
            "a node that can deploy",
            ready().live().with(|scene| scene.validation = verdict(true)),
            "asks active, waits for the node",
        ),
        row("user data not read", data(), "reads UserData, again"),
        row(
            "user data missing",
            data().with(|scene| scene.user_data = Some(None)),
            "writes the status, provisioning error: Secret first, which the host names for its first start, does not exist; create it, waits for Secret first",
        ),
        row(
            "user data without a value",
            data().with(|scene| scene.user_data = Some(Some(secret("first", &[("x", "y")])))),
            "writes the status, provisioning error: the Secret that spec.userData names has neither \"userData\" nor \"value\"; set one of them, waits for the user",
        ),
        row(
            "another image than was tried",
            provisioning().asks("b").node("available").live(),
            "writes the status, again",
        ),
        row(
            "the node serves another",
            provisioning()
                .node_with("available", json!({ "instance_uuid": OTHER_UID }))
                .live(),
            "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c; it is left as it is. If nothing needs that, remove instance_uuid from node 11111111-2222-4333-8444-555555555555, waits for a time",
        ),
        row("under way", provisioning().node("wait call-back"), "waits for the node"),
        row(
            "failed with another image",
            provisioning().node_with("deploy failed", with(written("b"), json!({ "last_error": "checksum" }))),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed of an image that was asked for before: checksum, again",
        ),
        row(
            "failed",
            provisioning().node_with("deploy failed", with(written("a"), json!({ "last_error": "checksum" }))),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: http://192.0.2.9/a.qcow2, checksum: 0000000000000000000000000000000000000000000000000000000000000000): checksum, again",
        ),
        row(
            "failed without a word",
            provisioning().node_with("deploy failed", written("a")),
            "reads History, again",
        ),
        row(
            "failed without a word, and history has it",
            provisioning()
                .node_with("deploy failed", written("a"))
                .with(|scene| scene.history = Some(Some("agent lost".into()))),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: http://192.0.2.9/a.qcow2, checksum: 0000000000000000000000000000000000000000000000000000000000000000): agent lost, again",
        ),
        row(
            "failed without a word, and history has none",
            provisioning()
                .node_with("deploy failed", written("a"))
                .with(|scene| scene.history = Some(None)),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: http://192.0.2.9/a.qcow2, checksum: 0000000000000000000000000000000000000000000000000000000000000000): Ironic gives no reason; look at its log and at the console of the machine, again",
        ),
        row(
            "done",
            provisioning().node_with("active", written("a")),
            "writes the status, to provisioned, again",
        ),
        row(
            "done, and another image is asked",
            provisioning().asks("b").node_with("active", written("a")),
            "writes the status, to provisioned, again",
        ),
        row(
            "done with an image that nobody asked for",
            provisioning().node_with("active", written("c")),
            "writes the status, provisioning error: in Ironic the node is in state \"active\", which does not fit a host that is \"provisioning\"; it is left as it is. It runs an image that this host did not ask for. To have it replaced, remove spec.image and set it again, waits for the node",
        ),
        row(
            "done for another",
            provisioning().node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))),
            "writes the status, provisioning error: in Ironic the node is in state \"active\", which does not fit a host that is \"provisioning\"; it is left as it is. It serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host, waits for the node",
        ),
        row(
            "cancelled",
            provisioning().spec(json!({ "image": null })).node("wait call-back"),
            "writes the status, to deprovisioning, again",
        ),
        row(
            "deleted",
            provisioning().node("wait call-back").deleted(),
            "writes the status, to deprovisioning, again",
        ),
        row(
            "tear-down failed",
            provisioning().node_with("error", json!({ "last_error": "bmc" })),
            "writes the status, to deprovisioning, provisioning error: bmc, again",
        ),
        row(
            "the node is in rescue",
            provisioning().node("rescue"),
            "writes the status, provisioning error: in Ironic the node is in state \"rescue\", which does not fit a host that is \"provisioning\"; it is left as it is. Bring the node to available in Ironic, waits for the node",
        ),
        row(
            "deployed by something else meanwhile",
            provisioning()
                .spec(json!({ "externallyProvisioned": true }))
                .node("manageable")
                .live(),
            "writes the status, provisioning error: spec.externallyProvisioned says that something else deployed the machine, so nothing on it is erased; remove the field to have it deployed or cleaned, waits for the user",
        ),
    ]
}

fn running() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    vec![
        row("as it should be", provisioned().node_with("active", on()), "settled"),
        row(
            "no image asked",
            provisioned().spec(json!({ "image": null })).node_with("active", on()),
            "writes the status, to deprovisioning, again",
        ),
        row(
            "another image asked",
            provisioned().asks("b").node_with("active", on()),
            "writes the status, to deprovisioning, again",
        ),
        row(
            "another image asked, and the budget is spent",
            provisioned()
                .asks("b")
                .node_with("active", on())
                .with(|scene| scene.left = 0),
            "held: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "the same, confirmed",
            provisioned()
                .asks("b")
                .annotated("baremetalhost.metal3.io/confirm-deprovision", "")
                .node_with("active", on())
                .with(|scene| scene.left = 0),
            "writes the status, to deprovisioning, again",
        ),
        row(
            "a new checksum asked",
            provisioned()
                .spec(json!({ "image": { "checksum": "1".repeat(64) } }))
                .node_with("active", on()),
            "settled",
        ),
        row(
            "the node was forgotten",
            provisioned().no_node(),
            "asks create node, again",
        ),
        row("the node is not known", provisioned(), "reads Node, again"),
        row(
            "the node was forgotten and is made again",
            provisioned().node("manageable"),
            "asks change node, asks adopt, waits for the node",
        ),
        row("taken over", provisioned().node("adopting"), "waits for the node"),
        row(
            "taking over failed",
            provisioned().node_with("adopt failed", json!({ "last_error": "no iso" })),
            "writes the status, provisioned registration error: Host adoption failed: no iso, waits for a time",
        ),
        row(
            "taking over failed, told and later",
            provisioned()
                .node_with("adopt failed", json!({ "last_error": "no iso" }))
                .status(failing(
                    "provisioned registration error",
                    "Host adoption failed: no iso",
                    1,
                ))
                .later(1),
            "asks change node, asks adopt, writes the status, well again, waits for the node",
        ),
        row(
            "the node was offered to others",
            provisioned().node("available"),
            "writes the status, provisioned registration error: in Ironic the node is in state \"available\", which does not fit a host that is \"provisioned\"; it is left as it is. If the machine still runs what it should, bring the node to manageable in Ironic: it is then taken over as it is. To deploy it anew, remove spec.image and set it again, waits for the node",
        ),
        row(
            "the node was cleaned",
            provisioned().node("clean failed"),
            "writes the status, provisioned registration error: in Ironic the node is in state \"clean failed\", which does not fit a host that is \"provisioned\"; it is left as it is. If the machine still runs what it should, bring the node to manageable in Ironic: it is then taken over as it is. To deploy it anew, remove spec.image and set it again, waits for the node",
        ),
        row(
            "no Secret",
            provisioned()
                .node_with("active", on())
                .with(|scene| scene.credentials = Some(None)),
            "writes the status, registration error: BMC CredentialsName secret doesn't exist: create Secret bmc with username and password, waits for Secret bmc",
        ),
        row(
            "another login",
            provisioned()
                .status(json!({ "triedCredentials": { "credentialsVersion": "39" } }))
                .node_with("active", on()),
            "asks change node, writes the status, again",
        ),
        row(
            "deleted",
            provisioned().deleted().node_with("active", on()),
            "writes the status, to deprovisioning, again",
        ),
        row(
            "deleted, and the budget is spent",
            provisioned()
                .deleted()
                .node_with("active", on())
                .with(|scene| scene.left = 0),
            "held: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "deleted, and something else deployed it",
            provisioned()
                .deleted()
                .spec(json!({ "externallyProvisioned": true }))
                .node_with("active", on()),
            "writes the status, to powering off before delete, again",
        ),
        row(
            "external, as it should be",
            external().node_with("active", on()),
            "settled",
        ),
        row(
            "external, to be taken over",
            external().node_with("manageable", on()),
            "asks adopt, waits for the node",
        ),
        row(
            "external, and claimed",
            external()
                .spec(json!({ "externallyProvisioned": null }))
                .asks("a")
                .node_with("active", on()),
            "writes the status, to provisioned, again",
        ),
        row(
            "external, and deleted",
            external().deleted().node_with("active", on()),
            "writes the status, to powering off before delete, again",
        ),
    ]
}

fn power() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    let off = || json!({ "power_state": "power off" });
    let told = "Continuing with hard poweroff after soft poweroff fails. More details: power: timeout";
    vec![
        row(
            "off, and to be on",
            provisioned().node_with("active", off()),
            "asks power on, writes the status, waits for the node",
        ),
        row(
            "off, known as such, and to be on",
            provisioned()
                .status(json!({ "poweredOn": false }))
                .node_with("active", off()),
            "asks power on, waits for the node",
        ),
        row(
            "switching",
            provisioned().node_with(
                "active",
                json!({ "power_state": "power off", "target_power_state": "power on" }),
            ),
            "writes the status, waits for the node",
        ),
        row(
            "on, and to be off",
            provisioned().spec(json!({ "online": false })).node_with("active", on()),
            "reads Host, reads Node, again",
        ),
        row(
            "on, and to be off, read live",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live(),
            "asks soft power off, waits for the node",
        ),
        row(
            "switching off failed",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "last_error": "power: timeout" }),
                )
                .live(),
            "writes the status, power management error: Continuing with hard poweroff after soft poweroff fails. More details: power: timeout, waits for a time",
        ),
        row(
            "switching off failed, told and later",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "last_error": "power: timeout" }),
                )
                .live()
                .status(failing("power management error", told, 1))
                .later(1),
            "asks power off, writes the status, well again, waits for the node",
        ),
        row(
            "soft refused",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live()
                .with(|scene| {
                    scene.refused = Some(Refused {
                        request: "soft power off",
                        cure: Cure::Change,
                        message: "unsupported".into(),
                    })
                }),
            "asks power off, waits for the node",
        ),
        row(
            "an error that is not of power",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "last_error": "service aborted" }),
                )
                .live(),
            "asks soft power off, waits for the node",
        ),
        row(
            "a reboot asked",
            provisioned()
                .annotated("reboot.metal3.io", "")
                .node_with("active", on())
                .live(),
            "asks soft power off, waits for the node",
        ),
        row(
            "a hard reboot asked",
            provisioned()
                .annotated("reboot.metal3.io", r#"{"mode":"hard"}"#)
                .node_with("active", on())
                .live(),
            "asks power off, waits for the node",
        ),
        row(
            "a reboot half done",
            provisioned()
                .annotated("reboot.metal3.io", "")
                .node_with("active", off()),
            "changes the host, again",
        ),
        row(
            "held off",
            provisioned()
                .annotated("reboot.metal3.io/client", "")
                .status(json!({ "poweredOn": false }))
                .node_with("active", off()),
            "settled",
        ),
        row(
            "a reboot asked of a host without image",
            available()
                .spec(json!({ "online": true }))
                .annotated("reboot.metal3.io", "")
                .status(json!({ "poweredOn": true }))
                .node_with("available", on())
                .live(),
            "settled",
        ),
        row(
            "a reboot asked of a host that is never off",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live(),
            "asks soft rebooting, changes the host, again",
        ),
        row(
            "a host held off that is never off",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io/client", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live(),
            "held: RequestRefused, waits for the user",
        ),
        row(
            "power unknown",
            provisioned().node_with("active", json!({ "power_state": null })),
            "waits for the node",
        ),
    ]
}

fn removal() -> Vec<Row> {
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
        row("running for another", deprovisioning().node_with("active", json!({ "instance_uuid": OTHER_UID })).live(), "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; it is left as it is. If nothing needs that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555, waits for the node"),
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
        row("done, as an old view shows", deprovisioning().node("available").seen(NodeSeen::Stale), "waits for the node"),
        row("done after a failed deployment", deprovisioning().asks("a").status(json!({ "provisioning": { "image": { "url": "", "checksum": null, "checksumType": null, "format": null } }, "provisioningFailCount": 1, "errorCount": 1, "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Image provisioning failed" })).node("available"), "writes the status, to available, again"),
        row("the node was forgotten", deprovisioning().no_node(), "asks create node, again"),
        row("no answer from the BMC", deprovisioning().node_with("active", json!({ "fault": "power failure" })).live(), "writes the status, provisioning error: Ironic does not reach the BMC (power failure); check its address, network and login. Ironic goes on by itself once it does, waits for the node"),
        row("deployed by something else", deprovisioning().spec(json!({ "externallyProvisioned": true })).node("active").live(), "writes the status, provisioning error: spec.externallyProvisioned says that something else deployed the machine, so nothing on it is erased; remove the field to have it deployed or cleaned, waits for the user"),
        row("deleted and done", deprovisioning().deleted().node("available"), "writes the status, to powering off before delete, again"),
        row("deleted, no Secret", deprovisioning().deleted().node("active").live().with(|scene| scene.credentials = Some(None)), "asks deleted, waits for the node"),
        row("deleted, no Secret and no node", deprovisioning().deleted().no_node().with(|scene| scene.credentials = Some(None)), "writes the status, to deleting, again"),
        row("deleted, and failed too often", deprovisioning().deleted().node("clean failed").status(failing("provisioning error", "Cleaning failed: disk", 4)), "writes the status, to powering off before delete, again"),
        row("deleted, and something else deployed it", deprovisioning().deleted().spec(json!({ "externallyProvisioned": true })).node("active").live(), "writes the status, to powering off before delete, again"),
    ]
}

fn leaving() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    let outage = || Outage {
        since: at(-600),
        reason: "connection refused".into(),
    };
    vec![
        row(
            "on",
            powering_off().node_with("available", on()),
            "asks power off, waits for the node",
        ),
        row(
            "on, and external",
            powering_off()
                .spec(json!({ "externallyProvisioned": true }))
                .node_with("active", on()),
            "reads Host, reads Node, again",
        ),
        row(
            "on, and external, read live",
            powering_off()
                .spec(json!({ "externallyProvisioned": true }))
                .node_with("active", on())
                .live(),
            "asks power off, waits for the node",
        ),
        row(
            "off",
            powering_off().node("available"),
            "writes the status, to deleting, again",
        ),
        row(
            "never off",
            powering_off()
                .spec(json!({ "disablePowerOff": true }))
                .node_with("available", on()),
            "writes the status, to deleting, again",
        ),
        row(
            "no node",
            powering_off().no_node(),
            "writes the status, to deleting, again",
        ),
        row("no word of the node", powering_off(), "reads Node, again"),
        row(
            "inspection waits",
            powering_off().node_with("inspect wait", on()),
            "asks abort, waits for the node",
        ),
        row(
            "switching off failed",
            powering_off().node_with(
                "available",
                json!({ "power_state": "power on", "last_error": "power: bmc" }),
            ),
            "writes the status, power management error: PowerOff operation failed: power: bmc, waits for a time",
        ),
        row(
            "switching off failed too often",
            powering_off()
                .node_with("available", on())
                .status(failing("power management error", "x", 4)),
            "writes the status, to deleting, well again, again",
        ),
        row(
            "a fault",
            powering_off().node_with(
                "available",
                json!({ "power_state": "power on", "fault": "power failure" }),
            ),
            "writes the status, power management error: the machine cannot be switched off while its node has a fault or is in maintenance (power failure); after 3 more attempts the host goes without, waits for a time",
        ),
        row(
            "no Secret",
            powering_off()
                .node_with("available", on())
                .with(|scene| scene.credentials = Some(None)),
            "asks power off, waits for the node",
        ),
        row("to be forgotten, no word of the node", deleting(), "reads Node, again"),
        row(
            "to be forgotten, an old view of the node",
            deleting().node("available").seen(NodeSeen::Stale),
            "reads Node, again",
        ),
        row(
            "to be forgotten",
            deleting().node("available"),
            "asks delete node, again",
        ),
        row(
            "to be forgotten, with an instance",
            deleting().node_with("manageable", json!({ "instance_uuid": super::scene::UID })),
            "asks change node, asks delete node, again",
        ),
        row(
            "to be forgotten while in use",
            deleting().node("active"),
            "asks set maintenance, asks delete node, again",
        ),
        row(
            "to be forgotten while it waits",
            deleting().node("clean wait"),
            "asks abort, waits for the node",
        ),
        row(
            "to be forgotten while it works",
            deleting().node("cleaning"),
            "waits for the node",
        ),
        row(
            "forgotten",
            deleting().no_node(),
            "changes Secret bmc, changes the host, again",
        ),
        row(
            "forgotten, and Secrets unknown",
            deleting().no_node().with(|scene| scene.credentials = None),
            "reads Credentials, again",
        ),
        row(
            "forgotten, with a Secret without values and no word of hardware data",
            deleting().no_node().with(|scene| {
                scene.credentials = Some(Some(secret("bmc", &[])));
                scene.hardware_data = None;
            }),
            "reads HardwareData, again",
        ),
        row(
            "our finalizer gone",
            deleting()
                .host(json!({ "metadata": { "finalizers": ["other"] } }))
                .no_node(),
            "settled",
        ),
        row(
            "Ironic out of reach",
            deleting().with(|scene| scene.outage = Some(outage())),
            "held: IronicUnreachable, waits for a time",
        ),
        row(
            "a host at rest, Ironic out of reach",
            provisioned().with(|scene| scene.outage = Some(outage())),
            "reads Node, again",
        ),
    ]
}

fn detached() -> Vec<Row> {
    let mark = "baremetalhost.metal3.io/detached";
    let apart = |scene: Scene| {
        scene
            .annotated(mark, "")
            .status(json!({ "operationalStatus": "detached" }))
    };
    let going = |scene: Scene| scene.annotated(mark, r#"{"deleteAction":"delete"}"#).deleted();
    vec![
        row(
            "to be detached",
            provisioned().annotated(mark, "").node("active"),
            "asks set maintenance, asks delete node, again",
        ),
        row(
            "to be detached, in maintenance",
            provisioned()
                .annotated(mark, "")
                .node_with("active", json!({ "maintenance": true })),
            "asks delete node, again",
        ),
        row(
            "to be detached, no node",
            provisioned().annotated(mark, "").no_node(),
            "writes the status, waits for the user",
        ),
        row("detached", apart(provisioned()), "waits for the user"),
        row(
            "attached again",
            apart(provisioned()).host(json!({ "metadata": { "annotations": { mark: null } } })),
            "writes the status, again",
        ),
        row(
            "to be detached in the middle",
            provisioning().annotated(mark, "").node("wait call-back"),
            "waits for the node",
        ),
        row(
            "to be detached in the middle, by force",
            provisioning()
                .annotated(mark, r#"{"force":true}"#)
                .node("wait call-back"),
            "asks abort, waits for the node",
        ),
        row(
            "detached and deleted, delayed",
            apart(provisioned()).deleted(),
            "waits for the user",
        ),
        row(
            "detached and deleted",
            going(apart(provisioned())),
            "writes the status, to deleting, again",
        ),
        row(
            "available, detached and deleted",
            going(available()),
            "writes the status, to deleting, again",
        ),
        row(
            "external, detached and deleted",
            going(external()),
            "writes the status, to deleting, again",
        ),
        row(
            "provisioning, detached and deleted",
            going(provisioning()),
            "writes the status, to deleting, again",
        ),
        row(
            "deprovisioning, detached and deleted",
            going(deprovisioning()),
            "writes the status, to deleting, again",
        ),
        row(
            "powering off, detached and deleted",
            going(powering_off()),
            "writes the status, to deleting, again",
        ),
        row(
            "registering, detached and deleted",
            going(registering()),
            "writes the status, to deleting, again",
        ),
        row(
            "inspecting, detached and deleted",
            going(inspecting()),
            "writes the status, to deleting, again",
        ),
        row(
            "preparing, detached and deleted",
            going(preparing()),
            "writes the status, to deleting, again",
        ),
    ]
}

/// Not a state: a node that is read by the tables below.
#[test]
fn a_node_of_these_tables_is_as_the_host_wants_it() {
    let scene = provisioned().with(|scene| scene.node = Some(Some((node("active"), NodeSeen::Current))));
    assert!(!scene.tells().contains("change node"), "{}", scene.tells());
}
