//! A host without an image.

use serde_json::json;

use super::given::{asked, available};
use super::{Row, row};
use crate::tests::fixture::{Fixture, image};

pub(super) fn waiting() -> Vec<Row> {
    let delayed = available()
        .status(json!({ "operationalStatus": "delayed" }))
        .node("available");
    let failed = json!({ "lastAttemptedImage": image("a"), "provisioningFailCount": 1, "errorCount": 1, "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Image provisioning failed" });
    vec![
        row(
            "no image requested any more, after a delay",
            delayed,
            "writes the status, settled",
        ),
        row("nothing asked", available().node("available"), "settled"),
        row("an image, and off", asked().spec(json!({ "online": false })), "settled"),
        row("an image", asked(), "writes the status, to provisioning, replan"),
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
            asked().status(failed.clone()).hours_later(1),
            "writes the status, to provisioning, error cleared, replan",
        ),
        row(
            "an image that failed, and another now",
            asked().spec_image("b").status(failed.clone()),
            "writes the status, to provisioning, error cleared, replan",
        ),
        row(
            "an image that failed too often",
            asked()
                .status(failed.clone())
                .status(json!({ "provisioningFailCount": 5 }))
                .hours_later(9),
            "writes the status, provisioning error: provisioning failed 5 times, retry limit (5) reached; change image or reset provisioningFailCount to retry, waits for the user",
        ),
        row(
            "an image that failed, and is not requested any more",
            available().node("available").status(failed),
            "writes the status, error cleared, settled",
        ),
        row(
            "to be inspected again",
            available().node("available").annotated("inspect.metal3.io", ""),
            "writes the status, to inspecting, replan",
        ),
        row(
            "another disk",
            available()
                .node("available")
                .spec(json!({ "rootDeviceHints": { "deviceName": "/dev/sdb" } })),
            "writes the status, to preparing, replan",
        ),
        row(
            "externally provisioned",
            available()
                .node("available")
                .spec(json!({ "externallyProvisioned": true })),
            "writes the status, to externally provisioned, replan",
        ),
        row(
            "Ironic lost the node",
            available().no_node(),
            "requests create node, replan",
        ),
        row(
            "the node runs something",
            available().node("active"),
            "writes the status, preparation error: in Ironic the node is in state \"active\", which is unexpected for a host in state \"available\"; the node is not changed. Undeploy the node in Ironic if its system is not needed, waits for the node",
        ),
        row(
            "the older name ready",
            Fixture::new("ready").spec(json!({ "online": false })).node("available"),
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
            "writes the status, to powering off before delete, replan",
        ),
    ]
}
