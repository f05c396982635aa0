//! A host without an image.

use serde_json::json;

use super::Row;
use super::given::{asked, available};
use crate::tests::fixture::{Fixture, image};

pub(super) fn waiting() -> Vec<Row> {
    let delayed = available()
        .status(json!({ "operationalStatus": "delayed" }))
        .node("available");
    let failed = json!({ "lastAttemptedImage": image("a"), "provisioningFailCount": 1, "errorCount": 1, "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "Image provisioning failed" });
    vec![
        delayed.row(
            "no image requested any more, after a delay",
            "writes the status, settled",
        ),
        available()
            .status(json!({ "operationalStatus": "servicing" }))
            .node("available")
            .row("the image was removed during a service", "writes the status, settled"),
        available().node("available").row("nothing asked", "settled"),
        asked()
            .spec(json!({ "online": false }))
            .row("an image, and off", "settled"),
        asked().row("an image", "writes the status, to provisioning, replan"),
        asked().spec(json!({ "image": { "checksum": null } })).row(
            "an image without checksum",
            "writes the status, provisioning error: spec.image.checksum: the checksum is missing; set \
             it to the image's digest or to the URL of a file of digests, waits for the user",
        ),
        asked()
            .status(failed.clone())
            .row("an image that failed just now", "waits for a time"),
        asked().status(failed.clone()).hours_later(1).row(
            "an image that failed a while ago",
            "writes the status, to provisioning, error cleared, replan",
        ),
        asked().spec_image("b").status(failed.clone()).row(
            "an image that failed, and another now",
            "writes the status, to provisioning, error cleared, replan",
        ),
        asked()
            .status(failed.clone())
            .status(json!({ "provisioningFailCount": 5 }))
            .hours_later(9)
            .row(
                "an image that failed too often",
                "writes the status, provisioning error: provisioning failed 5 times, retry limit (5) \
                 reached; change image or reset provisioningFailCount to retry, waits for the user",
            ),
        available().node("available").status(failed).row(
            "an image that failed, and is not requested any more",
            "writes the status, error cleared, settled",
        ),
        available()
            .node("available")
            .annotated("inspect.metal3.io", "")
            .row("to be inspected again", "writes the status, to inspecting, replan"),
        available()
            .node("available")
            .spec(json!({ "rootDeviceHints": { "deviceName": "/dev/sdb" } }))
            .row("another disk", "writes the status, to preparing, replan"),
        available()
            .node("available")
            .spec(json!({ "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } }))
            .row("other volumes", "writes the status, to preparing, replan"),
        available()
            .node("available")
            .spec(json!({ "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } }))
            .status(json!({ "provisioning": { "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } } }))
            .row(
                "volumes that Ironic does not know",
                "writes the status, to preparing, replan",
            ),
        available()
            .node("available")
            .spec(json!({ "externallyProvisioned": true }))
            .row(
                "externally provisioned",
                "writes the status, to externally provisioned, replan",
            ),
        available()
            .no_node()
            .row("Ironic lost the node", "requests create node, replan"),
        available().node("active").row(
            "the node runs something",
            "writes the status, preparation error: in Ironic the node is in state \"active\", which is \
             unexpected for a host in state \"available\"; the node is not changed. Undeploy the node in \
             Ironic if its system is not needed, waits for the node",
        ),
        Fixture::new("ready")
            .spec(json!({ "online": false }))
            .node("available")
            .row("the older name ready", "settled"),
        available()
            .node_with(
                "clean failed",
                json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
            )
            .row(
                "cleaning failed",
                "writes the status, preparation error: disk, waits for a time",
            ),
        available()
            .node("available")
            .deleted()
            .row("deleted", "writes the status, to powering off before delete, replan"),
    ]
}
