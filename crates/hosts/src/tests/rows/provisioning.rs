//! The deployment of an image.

use serde_json::json;

use super::given::{FORCED, failing, provisioning, with, written};
use super::{Row, row};
use crate::tests::fixture::{OTHER_UID, secret};

pub(super) fn deployment() -> Vec<Row> {
    let ready = || provisioning().node_with("available", written("a"));
    let validation_result =
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
            "reads Host, reads Node, replan",
        ),
        row(
            "a node that was not cleaned, read live",
            provisioning().node("manageable").live(),
            "requests provide, waits for the node",
        ),
        row(
            "a node that was not cleaned, in maintenance, recorded, and resolved",
            provisioning().node("manageable").live().status(failing(
                "provisioning error",
                "the node is in maintenance",
                1,
            )),
            "requests provide, writes the status, error cleared, waits for the node",
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
            "cleaning failed, recorded and later",
            provisioning()
                .node_with("clean failed", json!({ "last_error": "disk", "maintenance": true }))
                .status(failing("provisioning error", "Cleaning failed: disk", 1))
                .hours_later(1),
            "requests clear maintenance, requests manage, writes the status, error cleared, waits for the node",
        ),
        row(
            "a clean node from the feed",
            provisioning().node("available"),
            "reads Host, reads Node, replan",
        ),
        row(
            "a clean node, read live",
            provisioning().node("available").live(),
            "requests change node, replan",
        ),
        row("a node with the image", ready().live(), "reads Validation, replan"),
        row(
            "a node that cannot deploy",
            ready()
                .live()
                .with(|fixture| fixture.validation = validation_result(false)),
            "writes the status, provisioning error: host validation error: no kernel, waits for a time",
        ),
        row(
            "a node that can deploy",
            ready()
                .live()
                .with(|fixture| fixture.validation = validation_result(true)),
            "requests active, waits for the node",
        ),
        row(
            "a node that can deploy, an error recorded and a reboot requested",
            ready()
                .live()
                .with(|fixture| fixture.validation = validation_result(true))
                .status(failing("provisioning error", "host validation error: no kernel", 1))
                .annotated("reboot.metal3.io", ""),
            "changes the host, replan",
        ),
        row(
            "a node that can deploy, and an error recorded",
            ready()
                .live()
                .with(|fixture| fixture.validation = validation_result(true))
                .status(failing("provisioning error", "host validation error: no kernel", 1)),
            "requests active, writes the status, error cleared, waits for the node",
        ),
        row("user data not read", data(), "reads UserData, replan"),
        row(
            "user data missing",
            data().with(|fixture| fixture.user_data = Some(None)),
            "writes the status, provisioning error: Secret first for the config drive does not exist; create it, waits for Secret first",
        ),
        row(
            "user data without a value",
            data().with(|fixture| fixture.user_data = Some(Some(secret("first", &[("x", "y")])))),
            "writes the status, provisioning error: the Secret that spec.userData names has neither \"userData\" nor \"value\"; set one of them, waits for the user",
        ),
        row(
            "another image than was attempted",
            provisioning().spec_image("b").node("available").live(),
            "writes the status, replan",
        ),
        row(
            "the node serves another instance",
            provisioning()
                .node_with("available", json!({ "instance_uuid": OTHER_UID }))
                .live(),
            "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c; it is not changed. If nothing uses that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555, waits for a time",
        ),
        row("under way", provisioning().node("wait call-back"), "waits for the node"),
        row(
            "the agent does not connect, and a reboot is forced",
            provisioning()
                .node("wait call-back")
                .annotated("reboot.metal3.io", FORCED),
            "reads Host, reads Node, replan",
        ),
        row(
            "the agent does not connect, a reboot is forced, read live",
            provisioning()
                .node("wait call-back")
                .annotated("reboot.metal3.io", FORCED)
                .live(),
            "requests deleted, changes the host, replan",
        ),
        row(
            "the agent does not connect, a reboot is forced, and the node is in maintenance",
            provisioning()
                .node_with("wait call-back", json!({ "maintenance": true }))
                .annotated("reboot.metal3.io", FORCED)
                .live(),
            "writes the status, provisioning error: the node is in maintenance (no reason given), so Ironic does not operate it; end its maintenance in Ironic, waits for the node",
        ),
        row(
            "restarted after maintenance, recorded, and resolved",
            provisioning()
                .node("deleting")
                .status(failing("provisioning error", "the node is in maintenance", 1)),
            "writes the status, error cleared, waits for the node",
        ),
        row(
            "the agent of another instance does not connect, and a reboot is forced",
            provisioning()
                .node_with("wait call-back", json!({ "instance_uuid": OTHER_UID }))
                .annotated("reboot.metal3.io", FORCED)
                .live(),
            "writes the status, provisioning error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits for the node",
        ),
        row(
            "a reboot is forced too early",
            provisioning().node("deploying").annotated("reboot.metal3.io", FORCED),
            "waits for the node",
        ),
        row(
            "restarted, and the annotation still there",
            provisioning().node("cleaning").annotated("reboot.metal3.io", FORCED),
            "changes the host, replan",
        ),
        row(
            "a reboot that is not forced",
            provisioning().node("wait call-back").annotated("reboot.metal3.io", ""),
            "changes the host, replan",
        ),
        row(
            "a client keeps the host off, by force",
            provisioning()
                .node("wait call-back")
                .annotated("reboot.metal3.io/client", FORCED),
            "waits for the node",
        ),
        row(
            "failed with another image",
            provisioning().node_with("deploy failed", with(written("b"), json!({ "last_error": "checksum" }))),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed of the formerly requested image: checksum, replan",
        ),
        row(
            "failed",
            provisioning().node_with("deploy failed", with(written("a"), json!({ "last_error": "checksum" }))),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: http://192.0.2.9/a.qcow2, checksum: 0000000000000000000000000000000000000000000000000000000000000000): checksum, replan",
        ),
        row(
            "failed without a reason",
            provisioning().node_with("deploy failed", written("a")),
            "reads History, replan",
        ),
        row(
            "failed without a reason, and history has it",
            provisioning()
                .node_with("deploy failed", written("a"))
                .with(|fixture| fixture.history = Some(Some("agent lost".into()))),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: http://192.0.2.9/a.qcow2, checksum: 0000000000000000000000000000000000000000000000000000000000000000): agent lost, replan",
        ),
        row(
            "failed without a reason, and history has none",
            provisioning()
                .node_with("deploy failed", written("a"))
                .with(|fixture| fixture.history = Some(None)),
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: http://192.0.2.9/a.qcow2, checksum: 0000000000000000000000000000000000000000000000000000000000000000): Ironic reports no reason; check its log and the console of the machine, replan",
        ),
        row(
            "done",
            provisioning().node_with("active", written("a")),
            "writes the status, to provisioned, replan",
        ),
        row(
            "done, and a reboot was forced meanwhile",
            provisioning()
                .node_with("active", written("a"))
                .annotated("reboot.metal3.io", FORCED),
            "changes the host, replan",
        ),
        row(
            "done, and another image is requested",
            provisioning().spec_image("b").node_with("active", written("a")),
            "writes the status, to provisioned, replan",
        ),
        row(
            "done with an image that was not requested",
            provisioning().node_with("active", written("c")),
            "writes the status, provisioning error: in Ironic the node is in state \"active\", which is unexpected for a host in state \"provisioning\"; the node is not changed. It runs an image that this host did not request. To replace it, remove spec.image and set it again, waits for the node",
        ),
        row(
            "done for another instance",
            provisioning().node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))),
            "writes the status, provisioning error: in Ironic the node is in state \"active\", which is unexpected for a host in state \"provisioning\"; the node is not changed. It serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host, waits for the node",
        ),
        row(
            "cancelled",
            provisioning().spec(json!({ "image": null })).node("wait call-back"),
            "writes the status, to deprovisioning, replan",
        ),
        row(
            "deleted",
            provisioning().node("wait call-back").deleted(),
            "writes the status, to deprovisioning, replan",
        ),
        row(
            "deprovisioning failed",
            provisioning().node_with("error", json!({ "last_error": "bmc" })),
            "writes the status, to deprovisioning, provisioning error: bmc, replan",
        ),
        row(
            "the node is in rescue",
            provisioning().node("rescue"),
            "writes the status, provisioning error: in Ironic the node is in state \"rescue\", which is unexpected for a host in state \"provisioning\"; the node is not changed. Bring the node to available in Ironic, waits for the node",
        ),
        row(
            "externally provisioned later",
            provisioning()
                .spec(json!({ "externallyProvisioned": true }))
                .node("manageable")
                .live(),
            "writes the status, provisioning error: spec.externallyProvisioned is set, so the machine is not erased; remove the field to allow deployment and cleaning, waits for the user",
        ),
    ]
}
