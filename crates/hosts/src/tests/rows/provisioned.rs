//! A host that runs an image, ours or somebody else's.

use std::time::Duration;

use serde_json::json;

use super::given::{external, failing, held, provisioned};
use super::{Row, row};

pub(super) fn running() -> Vec<Row> {
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
            "another image asked and held, and the budget has room again",
            held().asks("b").node_with("active", on()),
            "held: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "the same, confirmed",
            held()
                .asks("b")
                .annotated("baremetalhost.metal3.io/confirm-deprovision", "")
                .node_with("active", on()),
            "writes the status, to deprovisioning, again",
        ),
        row(
            "held until the change was taken back",
            held().node_with("active", on()),
            "settled",
        ),
        row(
            "deleted and held, and the budget has room again",
            held().deleted().node_with("active", on()),
            "held: DeprovisionBudgetSpent, waits for the user",
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
            "another version of the Secret with the same login",
            provisioned()
                .status(json!({ "triedCredentials": { "credentialsVersion": "39" } }))
                .node_with("active", on())
                .with(|scene| scene.same_login = Some(Duration::ZERO)),
            "writes the status, settled",
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
