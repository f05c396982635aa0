//! The deployment of an image.

use serde_json::{Value, json};

use super::Row;
use super::given::{FORCED, failing, provisioning, with, written, written_for};
use crate::tests::fixture::{Fixture, OTHER_UID, secret};

const LOGINS: &str = r#"{ "registry.example": { "username": "u", "password": "hunter2" } }"#;

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
    let of_registry = || {
        let image = json!({ "url": "oci://registry.example/os", "checksum": null, "ociAuthSecretName": "logins" });
        provisioning()
            .spec(json!({ "image": image }))
            .status(json!({ "lastAttemptedImage": image }))
            .node("available")
            .live()
    };
    let with_login = || {
        let url = "https://user:hunter2@192.0.2.9/a.qcow2";
        let change = json!({ "last_error": format!("no answer from {url}"),
            "instance_info": { "image_source": url, "metal3_image": null } });
        provisioning()
            .spec(json!({ "image": { "url": url } }))
            .status(json!({ "lastAttemptedImage": { "url": url } }))
            .node_with("deploy failed", with(written("a"), change))
    };
    vec![
        provisioning()
            .spec(json!({ "automatedCleaningMode": "disabled" }))
            .node("manageable")
            .live()
            .row("to be cleaned, and the edit that requested the image forbids it", "requests change node, replan"),
        provisioning()
            .spec(json!({ "disablePowerOff": true }))
            .node_with("available", written("a"))
            .live()
            .with(|fixture| fixture.validation = serde_json::from_value(json!({})).ok())
            .row("to be deployed, and never to be off", "requests change node, replan"),
        with_login().row(
            "deployment of an image whose URL has a login failed",
            "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: \
             https://***@192.0.2.9/a.qcow2, checksum: 0000000000000000000000000000000000000000000000000000000000000000): no answer from https://***@192.0.2.9/a.qcow2, replan",
        ),
        provisioning()
            .node("manageable")
            .row("a node that was not cleaned", "reads Node, reads Host, replan"),
        provisioning().node("manageable").live().row(
            "a node that was not cleaned, read live",
            "requests provide, waits for the node",
        ),
        provisioning()
            .node("manageable")
            .live()
            .status(failing("provisioning error", "the node is in maintenance", 1))
            .row(
                "a node that was not cleaned, in maintenance, recorded, and resolved",
                "requests provide, writes the status, error cleared, waits for the node",
            ),
        provisioning()
            .node("clean wait")
            .row("a node that is cleaned", "waits for the node"),
        provisioning()
            .node_with(
                "available",
                with(
                    written("a"),
                    json!({ "driver_internal_info": { "redfish_fw_updates": [{ "component": "bios", "url": "http://f/1" }] } }),
                ),
            )
            .live()
            .with(|fixture| fixture.validation = serde_json::from_value(json!({})).ok())
            .row(
                "an update that an earlier cleaning left",
                "writes the status, provisioning error: Ironic has updates of the firmware that an earlier cleaning left (bios), which \
                 it goes on with in each operation; the machine is not touched until Ironic gives them up, about two hours after they \
                 began, withheld: FirmwareUpdatesLeft, waits for a time",
            ),
        provisioning()
            .node_with("clean wait", json!({ "maintenance": true, "maintenance_reason": "disk swap" }))
            .row(
                "the same, and a person works at the machine",
                "writes the status, provisioning error: the node is in maintenance (disk swap), so Ironic does not operate it; \
                 end its maintenance in Ironic, waits for the node",
            ),
        provisioning()
            .node("service wait")
            .row("a service of another manager began after the deployment", "writes the status, waits for the node"),
        provisioning()
            .node_with(
                "service failed",
                json!({ "last_error": "stuck", "maintenance": true, "fault": "service failure" }),
            )
            .status(failing("servicing error", "stuck", 1))
            .live()
            .hours_later(1)
            .row(
                "a service of another manager failed after the deployment, recorded and later",
                "requests clear maintenance, requests abort, writes the status, error cleared, waits for the node",
            ),
        provisioning()
            .node_with("clean failed", json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }))
            .row(
                "cleaning failed",
                "writes the status, provisioning error: Cleaning failed: disk, waits for a time",
            ),
        provisioning()
            .node_with("clean failed", json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }))
            .status(failing("provisioning error", "Cleaning failed: disk", 1))
            .live()
            .hours_later(1)
            .row(
                "cleaning failed, recorded and later",
                "requests clear maintenance, requests manage, writes the status, error cleared, waits for \
                 the node",
            ),
        provisioning()
            .node("available")
            .row("a clean node from the feed", "reads Node, reads Host, replan"),
        provisioning()
            .node("available")
            .live()
            .row("a clean node, read live", "requests change node, replan"),
        ready().live().row("a node with the image", "reads Validation, replan"),
        ready()
            .live()
            .with(|fixture| fixture.validation = validation_result(false))
            .row(
                "a node that cannot deploy",
                "writes the status, provisioning error: host validation error: no kernel, waits for a time",
            ),
        ready()
            .live()
            .with(|fixture| fixture.validation = validation_result(true))
            .row("a node that can deploy", "requests active, waits for the node"),
        ready()
            .live()
            .with(|fixture| fixture.validation = validation_result(true))
            .status(failing("provisioning error", "host validation error: no kernel", 1))
            .annotated("reboot.metal3.io", "")
            .row(
                "a node that can deploy, an error recorded and a reboot requested",
                "changes the host, replan",
            ),
        ready()
            .live()
            .with(|fixture| fixture.validation = validation_result(true))
            .status(failing("provisioning error", "host validation error: no kernel", 1))
            .row(
                "a node that can deploy, and an error recorded",
                "requests active, writes the status, error cleared, waits for the node",
            ),
        data().row("user data not read", "reads UserData, replan"),
        data().with(|fixture| fixture.user_data = Some(None)).row(
            "user data missing",
            "writes the status, provisioning error: Secret first for the config drive does not exist; \
             create it, waits for Secret first",
        ),
        data()
            .with(|fixture| fixture.user_data = Some(Some(secret("first", &[("x", "y")]))))
            .row(
                "user data without a value",
                "writes the status, provisioning error: the Secret that spec.userData names has neither \
                 \"userData\" nor \"value\"; set one of them, waits for the user",
            ),
        of_registry().row("login to the registry not read", "reads PullSecret, replan"),
        of_registry().with(|fixture| fixture.pull_secret = Some(None)).row(
            "login to the registry missing",
            "writes the status, provisioning error: Secret logins for the image does not exist; create it, or remove \
             spec.image.ociAuthSecretName if the registry needs no login, waits for Secret logins",
        ),
        of_registry()
            .with(|fixture| fixture.pull_secret = Some(Some(secret("logins", &[("password", "hunter2")]))))
            .row(
                "Secret of another type",
                "writes the status, provisioning error: the Secret that spec.image.ociAuthSecretName names has neither \
                 \".dockerconfigjson\" nor \".dockercfg\"; create it with kubectl create secret docker-registry, or remove the \
                 field if the registry needs no login, waits for Secret logins",
            ),
        of_registry()
            .with(|fixture| fixture.pull_secret = Some(Some(secret("logins", &[(".dockercfg", "{}")]))))
            .row(
                "Secret without the login",
                "writes the status, provisioning error: the Secret that spec.image.ociAuthSecretName names has no login to \
                 registry.example, which spec.image.url names; add one, or remove the field if the registry needs none, waits for Secret logins",
            ),
        of_registry()
            .with(|fixture| fixture.pull_secret = Some(Some(secret("logins", &[(".dockercfg", LOGINS)]))))
            .row("image of a registry with its login", "requests change node, replan"),
        provisioning()
            .spec_image("b")
            .node("available")
            .live()
            .row("another image than was attempted", "writes the status, replan"),
        provisioning()
            .node_with("available", json!({ "instance_uuid": OTHER_UID }))
            .live()
            .row(
                "the node serves another instance",
                "writes the status, provisioning error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that \
                 instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of \
                 this host from before a move between clusters, set the annotation \
                 baremetalhost.metal3.io/former-instance to it, waits for the node",
            ),
        provisioning()
            .node("wait call-back")
            .row("under way", "waits for the node"),
        provisioning()
            .node("wait call-back")
            .annotated("reboot.metal3.io", FORCED)
            .row(
                "the agent does not connect, and a reboot is forced",
                "reads Node, reads Host, replan",
            ),
        provisioning()
            .node("wait call-back")
            .annotated("reboot.metal3.io", FORCED)
            .live()
            .row(
                "the agent does not connect, a reboot is forced, read live",
                "requests deleted, changes the host, replan",
            ),
        provisioning()
            .node_with("wait call-back", json!({ "maintenance": true }))
            .annotated("reboot.metal3.io", FORCED)
            .live()
            .row(
                "the agent does not connect, a reboot is forced, and the node is in maintenance",
                "writes the status, provisioning error: the node is in maintenance (no reason given), so \
                 Ironic does not operate it; end its maintenance in Ironic, waits for the node",
            ),
        provisioning()
            .node("deleting")
            .status(failing("provisioning error", "the node is in maintenance", 1))
            .row(
                "restarted after maintenance, recorded, and resolved",
                "writes the status, error cleared, waits for the node",
            ),
        provisioning()
            .node_with("wait call-back", json!({ "instance_uuid": OTHER_UID }))
            .annotated("reboot.metal3.io", FORCED)
            .live()
            .row(
                "the agent of another instance does not connect, and a reboot is forced",
                "writes the status, provisioning error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If \
                 nothing uses that instance, remove instance_uuid from node \
                 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before \
                 a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, \
                 waits for the node",
            ),
        provisioning()
            .node("deploying")
            .annotated("reboot.metal3.io", FORCED)
            .row("a reboot is forced too early", "waits for the node"),
        provisioning()
            .node("cleaning")
            .annotated("reboot.metal3.io", FORCED)
            .row("restarted, and the annotation still there", "changes the host, replan"),
        provisioning()
            .node("wait call-back")
            .annotated("reboot.metal3.io", "")
            .row("a reboot that is not forced", "changes the host, replan"),
        provisioning()
            .node("wait call-back")
            .annotated("reboot.metal3.io/client", FORCED)
            .row("a client keeps the host off, by force", "waits for the node"),
        provisioning()
            .node_with("deploy failed", with(written("b"), json!({ "last_error": "checksum" })))
            .row(
                "failed with another image",
                "writes the status, to deprovisioning, provisioning error: Image provisioning failed of the \
                 formerly requested image: checksum, replan",
            ),
        provisioning()
            .node_with("deploy failed", with(written("a"), json!({ "last_error": "checksum" })))
            .row(
                "failed",
                "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: \
                 http://192.0.2.9/a.qcow2, checksum: \
                 0000000000000000000000000000000000000000000000000000000000000000): checksum, replan",
            ),
        provisioning()
            .node_with("deploy failed", written("a"))
            .row("failed without a reason", "reads History, replan"),
        provisioning()
            .node_with("deploy failed", written("a"))
            .with(|fixture| fixture.history = Some(Some("agent lost".into())))
            .row(
                "failed without a reason, and history has it",
                "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: \
                 http://192.0.2.9/a.qcow2, checksum: \
                 0000000000000000000000000000000000000000000000000000000000000000): agent lost, replan",
            ),
        provisioning()
            .node_with("deploy failed", written("a"))
            .with(|fixture| fixture.history = Some(None))
            .row(
                "failed without a reason, and history has none",
                "writes the status, to deprovisioning, provisioning error: Image provisioning failed (url: \
                 http://192.0.2.9/a.qcow2, checksum: \
                 0000000000000000000000000000000000000000000000000000000000000000): Ironic reports no \
                 reason; check its log and the console of the machine, replan",
            ),
        provisioning()
            .node_with("active", written("a"))
            .row("done", "writes the status, to provisioned, replan"),
        provisioning()
            .node_with("active", written("a"))
            .annotated("reboot.metal3.io", FORCED)
            .row("done, and a reboot was forced meanwhile", "changes the host, replan"),
        provisioning().spec_image("b").node_with("active", written("a")).row(
            "done, and another image is requested",
            "writes the status, to provisioned, replan",
        ),
        provisioning().node_with("active", written("c")).row(
            "done with an image that was not requested",
            "writes the status, provisioning error: in Ironic the node is in state \"active\", which is \
             unexpected for a host in state \"provisioning\"; the node is not changed. It runs an image \
             that this host did not request. To replace it, remove spec.image and set it again, waits \
             for the node",
        ),
        left_by_another(json!({ "image_source": "https://mirror.example/2/a.qcow2" })).row(
            "done, ordered by another manager, and Ironic followed a redirect",
            "writes the status, to provisioned, replan",
        ),
        left_by_another(json!({ "image_os_hash_value": "1".repeat(64) })).row(
            "done, ordered by another manager, and Ironic converted the image",
            "writes the status, to provisioned, replan",
        ),
        left_by_another(json!({ "image_source": "https://mirror.example/2/a.qcow2", "image_os_hash_value": "1".repeat(64) })).row(
            "done, ordered by another manager, and nothing of the record is that of the image",
            "writes the status, provisioning error: in Ironic the node is in state \"active\", which is \
             unexpected for a host in state \"provisioning\"; the node is not changed. It runs an image \
             that this host did not request. To replace it, remove spec.image and set it again, waits \
             for the node",
        ),
        provisioning().node_with("active", written_for("a", OTHER_UID)).row(
            "done for another instance",
            "writes the status, provisioning error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that \
                 instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of \
                 this host from before a move between clusters, set the annotation \
                 baremetalhost.metal3.io/former-instance to it, waits for the node",
        ),
        provisioning()
            .spec(json!({ "image": null }))
            .node("wait call-back")
            .row("cancelled", "writes the status, to deprovisioning, replan"),
        provisioning()
            .node("wait call-back")
            .deleted()
            .row("deleted", "writes the status, to deprovisioning, replan"),
        provisioning().node_with("error", json!({ "last_error": "bmc" })).row(
            "deprovisioning failed",
            "writes the status, to deprovisioning, provisioning error: bmc, replan",
        ),
        provisioning().node("rescue").row(
            "the node is in rescue",
            "writes the status, provisioning error: in Ironic the node is in state \"rescue\", which is \
             unexpected for a host in state \"provisioning\"; the node is not changed. End the hold or the rescue in \
             Ironic, so that the node continues, waits for the node",
        ),
        provisioning()
            .spec(json!({ "externallyProvisioned": true }))
            .node("manageable")
            .live()
            .row(
                "externally provisioned later",
                "writes the status, provisioning error: spec.externallyProvisioned is set, so the machine \
                 is not erased; remove the field to allow deployment and cleaning, waits for the user",
            ),
    ]
}

/// A host whose deployment another manager ordered, and what Ironic changed in its record meanwhile.
fn left_by_another(changes: Value) -> Fixture {
    let record = json!({ "metal3_image": null });
    let node = with(
        with(written("a"), json!({ "instance_info": record })),
        json!({ "instance_info": changes }),
    );
    provisioning()
        .with(|fixture| fixture.began_elsewhere = true)
        .node_with("active", node)
}
