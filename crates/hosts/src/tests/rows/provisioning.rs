//! An image on its way to the disk.

use serde_json::json;

use super::given::{FORCED, failing, provisioning, with, written};
use super::{Row, row};
use crate::tests::scene::{OTHER_UID, secret};

pub(super) fn deployment() -> Vec<Row> {
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
            "a node that was not cleaned, in maintenance, told, and cured",
            provisioning().node("manageable").live().status(failing(
                "provisioning error",
                "the node is in maintenance",
                1,
            )),
            "asks provide, writes the status, well again, waits for the node",
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
        row(
            "a node that can deploy, an error told and a reboot asked",
            ready()
                .live()
                .with(|scene| scene.validation = verdict(true))
                .status(failing("provisioning error", "host validation error: no kernel", 1))
                .annotated("reboot.metal3.io", ""),
            "changes the host, again",
        ),
        row(
            "a node that can deploy, and an error told",
            ready()
                .live()
                .with(|scene| scene.validation = verdict(true))
                .status(failing("provisioning error", "host validation error: no kernel", 1)),
            "asks active, writes the status, well again, waits for the node",
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
            "the agent does not come, and a reboot is forced",
            provisioning()
                .node("wait call-back")
                .annotated("reboot.metal3.io", FORCED),
            "reads Host, reads Node, again",
        ),
        row(
            "the agent does not come, a reboot is forced, read live",
            provisioning()
                .node("wait call-back")
                .annotated("reboot.metal3.io", FORCED)
                .live(),
            "asks deleted, changes the host, again",
        ),
        row(
            "the agent does not come, a reboot is forced, and the node is in maintenance",
            provisioning()
                .node_with("wait call-back", json!({ "maintenance": true }))
                .annotated("reboot.metal3.io", FORCED)
                .live(),
            "writes the status, provisioning error: the node is in maintenance (no reason given), so Ironic leaves it alone; end its maintenance in Ironic, waits for the node",
        ),
        row(
            "begun anew after maintenance, told, and cured",
            provisioning()
                .node("deleting")
                .status(failing("provisioning error", "the node is in maintenance", 1)),
            "writes the status, well again, waits for the node",
        ),
        row(
            "the agent of another does not come, and a reboot is forced",
            provisioning()
                .node_with("wait call-back", json!({ "instance_uuid": OTHER_UID }))
                .annotated("reboot.metal3.io", FORCED)
                .live(),
            "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; it is left as it is. If nothing needs that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is this host's own from before it moved between clusters, name it in the annotation baremetalhost.metal3.io/former-instance, waits for the node",
        ),
        row(
            "a reboot is forced too early",
            provisioning().node("deploying").annotated("reboot.metal3.io", FORCED),
            "waits for the node",
        ),
        row(
            "begun anew, and the wish still there",
            provisioning().node("cleaning").annotated("reboot.metal3.io", FORCED),
            "changes the host, again",
        ),
        row(
            "a reboot that is not forced",
            provisioning().node("wait call-back").annotated("reboot.metal3.io", ""),
            "changes the host, again",
        ),
        row(
            "a client holds the host off, by force",
            provisioning()
                .node("wait call-back")
                .annotated("reboot.metal3.io/client", FORCED),
            "waits for the node",
        ),
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
            "done, and a reboot was forced meanwhile",
            provisioning()
                .node_with("active", written("a"))
                .annotated("reboot.metal3.io", FORCED),
            "changes the host, again",
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
