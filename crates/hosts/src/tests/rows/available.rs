//! A host without an image.

use serde_json::json;

use super::given::{asked, available};
use super::{Row, row};
use crate::tests::scene::{Scene, image};

pub(super) fn waiting() -> Vec<Row> {
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
