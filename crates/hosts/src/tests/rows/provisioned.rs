//! A host that runs an image, provisioned or externally provisioned.

use std::time::Duration;

use serde_json::json;

use super::given::{external, failing, provisioned, withheld};
use super::{Row, row};

pub(super) fn running() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    vec![
        row("as it should be", provisioned().node_with("active", on()), "settled"),
        row(
            "no image requested",
            provisioned().spec(json!({ "image": null })).node_with("active", on()),
            "writes the status, to deprovisioning, replan",
        ),
        row(
            "another image requested",
            provisioned().spec_image("b").node_with("active", on()),
            "writes the status, to deprovisioning, replan",
        ),
        row(
            "another image requested, and the budget is spent",
            provisioned()
                .spec_image("b")
                .node_with("active", on())
                .with(|fixture| fixture.left = 0),
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "the same, confirmed",
            provisioned()
                .spec_image("b")
                .annotated("baremetalhost.metal3.io/confirm-deprovision", "")
                .node_with("active", on())
                .with(|fixture| fixture.left = 0),
            "writes the status, to deprovisioning, replan",
        ),
        row(
            "another image requested and withheld, and the budget has room again",
            withheld().spec_image("b").node_with("active", on()),
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "the same, confirmed",
            withheld()
                .spec_image("b")
                .annotated("baremetalhost.metal3.io/confirm-deprovision", "")
                .node_with("active", on()),
            "writes the status, to deprovisioning, replan",
        ),
        row(
            "withheld until the change was reverted",
            withheld().node_with("active", on()),
            "settled",
        ),
        row(
            "deleted and withheld, and the budget has room again",
            withheld().deleted().node_with("active", on()),
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "a new checksum requested",
            provisioned()
                .spec(json!({ "image": { "checksum": "1".repeat(64) } }))
                .node_with("active", on()),
            "settled",
        ),
        row(
            "Ironic lost the node",
            provisioned().no_node(),
            "requests create node, replan",
        ),
        row("the node is not known", provisioned(), "reads Node, replan"),
        row(
            "Ironic lost the node and is made again",
            provisioned().node("manageable"),
            "requests change node, requests adopt, waits for the node",
        ),
        row("taken over", provisioned().node("adopting"), "waits for the node"),
        row(
            "adoption failed",
            provisioned().node_with("adopt failed", json!({ "last_error": "no iso" })),
            "writes the status, provisioned registration error: Host adoption failed: no iso, waits for a time",
        ),
        row(
            "adoption failed, recorded and later",
            provisioned()
                .node_with("adopt failed", json!({ "last_error": "no iso" }))
                .status(failing(
                    "provisioned registration error",
                    "Host adoption failed: no iso",
                    1,
                ))
                .hours_later(1),
            "requests change node, requests adopt, writes the status, error cleared, waits for the node",
        ),
        row(
            "the node was made available",
            provisioned().node("available"),
            "writes the status, provisioned registration error: in Ironic the node is in state \"available\", which is unexpected for a host in state \"provisioned\"; the node is not changed. If the machine still runs the right system, bring the node to manageable in Ironic: it is then adopted as it is. To deploy it again, remove spec.image and set it again, waits for the node",
        ),
        row(
            "the node was cleaned",
            provisioned().node("clean failed"),
            "writes the status, provisioned registration error: in Ironic the node is in state \"clean failed\", which is unexpected for a host in state \"provisioned\"; the node is not changed. If the machine still runs the right system, bring the node to manageable in Ironic: it is then adopted as it is. To deploy it again, remove spec.image and set it again, waits for the node",
        ),
        row(
            "no Secret",
            provisioned()
                .node_with("active", on())
                .with(|fixture| fixture.credentials = Some(None)),
            "writes the status, registration error: BMC CredentialsName secret doesn't exist: create Secret bmc with username and password, waits for Secret bmc",
        ),
        row(
            "other credentials",
            provisioned()
                .status(json!({ "triedCredentials": { "credentialsVersion": "39" } }))
                .node_with("active", on()),
            "requests change node, writes the status, replan",
        ),
        row(
            "another version of the Secret with the same credentials",
            provisioned()
                .status(json!({ "triedCredentials": { "credentialsVersion": "39" } }))
                .node_with("active", on())
                .with(|fixture| fixture.login_unchanged_for = Some(Duration::ZERO)),
            "writes the status, settled",
        ),
        row(
            "deleted",
            provisioned().deleted().node_with("active", on()),
            "writes the status, to deprovisioning, replan",
        ),
        row(
            "deleted, and the budget is spent",
            provisioned()
                .deleted()
                .node_with("active", on())
                .with(|fixture| fixture.left = 0),
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "deleted, and externally provisioned",
            provisioned()
                .deleted()
                .spec(json!({ "externallyProvisioned": true }))
                .node_with("active", on()),
            "writes the status, to powering off before delete, replan",
        ),
        row(
            "external, as it should be",
            external().node_with("active", on()),
            "settled",
        ),
        row(
            "external, to be adopted",
            external().node_with("manageable", on()),
            "requests adopt, waits for the node",
        ),
        row(
            "external, and no longer external",
            external()
                .spec(json!({ "externallyProvisioned": null }))
                .spec_image("a")
                .node_with("active", on()),
            "writes the status, to provisioned, replan",
        ),
        row(
            "external, and deleted",
            external().deleted().node_with("active", on()),
            "writes the status, to powering off before delete, replan",
        ),
    ]
}
