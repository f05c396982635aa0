//! A host that runs an image, provisioned or externally provisioned.

use std::time::Duration;

use serde_json::json;

use super::Row;
use super::given::{external, failing, provisioned, withheld};

pub(super) fn running() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    vec![
        provisioned()
            .node_with("active", on())
            .row("as it should be", "settled"),
        provisioned()
            .spec(json!({ "image": null }))
            .node_with("active", on())
            .row("no image requested", "writes the status, to deprovisioning, replan"),
        provisioned().spec_image("b").node_with("active", on()).row(
            "another image requested",
            "writes the status, to deprovisioning, replan",
        ),
        provisioned()
            .spec_image("b")
            .node_with("active", on())
            .with(|fixture| fixture.left = 0)
            .row(
                "another image requested, and the budget is spent",
                "withheld: DeprovisionBudgetSpent, waits for the user",
            ),
        provisioned()
            .spec_image("b")
            .annotated("baremetalhost.metal3.io/confirm-deprovision", "")
            .node_with("active", on())
            .with(|fixture| fixture.left = 0)
            .row("the same, confirmed", "writes the status, to deprovisioning, replan"),
        withheld().spec_image("b").node_with("active", on()).row(
            "another image requested and withheld, and the budget has room again",
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        withheld()
            .spec_image("b")
            .annotated("baremetalhost.metal3.io/confirm-deprovision", "")
            .node_with("active", on())
            .row("the same, confirmed", "writes the status, to deprovisioning, replan"),
        withheld()
            .node_with("active", on())
            .row("withheld until the change was reverted", "settled"),
        withheld().deleted().node_with("active", on()).row(
            "deleted and withheld, and the budget has room again",
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        provisioned()
            .spec(json!({ "image": { "checksum": "1".repeat(64) } }))
            .node_with("active", on())
            .row("a new checksum requested", "settled"),
        provisioned()
            .no_node()
            .row("Ironic lost the node", "requests create node, replan"),
        provisioned().row("the node is not known", "reads Node, replan"),
        provisioned().node("manageable").row(
            "Ironic lost the node and is made again",
            "requests change node, requests adopt, waits for the node",
        ),
        provisioned().node("adopting").row("taken over", "waits for the node"),
        provisioned()
            .node_with("adopt failed", json!({ "last_error": "no iso" }))
            .row(
                "adoption failed",
                "writes the status, provisioned registration error: Host adoption failed: no iso, waits for \
                 a time",
            ),
        provisioned()
            .node_with("adopt failed", json!({ "last_error": "no iso" }))
            .status(failing(
                "provisioned registration error",
                "Host adoption failed: no iso",
                1,
            ))
            .hours_later(1)
            .row(
                "adoption failed, recorded and later",
                "requests change node, requests adopt, writes the status, error cleared, waits for the node",
            ),
        provisioned()
            .status(json!({ "operationalStatus": "servicing" }))
            .node("servicing")
            .row("a service of another manager runs", "waits for the node"),
        provisioned()
            .status(json!({ "operationalStatus": "servicing" }))
            .node("service wait")
            .row("a service of another manager waits for its agent", "waits for the node"),
        provisioned()
            .node("servicing")
            .row("a service of an operator runs", "writes the status, waits for the node"),
        provisioned()
            .status(json!({ "operationalStatus": "servicing" }))
            .node_with("active", on())
            .row("a service of another manager has ended", "writes the status, settled"),
        provisioned()
            .status(failing("servicing error", "no firmware", 1))
            .node_with("active", on())
            .row(
                "a service of another manager failed and has ended",
                "writes the status, error cleared, settled",
            ),
        provisioned()
            .status(json!({ "operationalStatus": "servicing" }))
            .node_with(
                "service failed",
                json!({ "last_error": "no firmware", "maintenance": true, "fault": "service failure" }),
            )
            .row(
                "a service of another manager failed",
                "writes the status, servicing error: no firmware, waits for a time",
            ),
        provisioned()
            .status(failing("servicing error", "no firmware", 1))
            .node_with(
                "service failed",
                json!({ "last_error": "no firmware", "maintenance": true, "fault": "service failure" }),
            )
            .live()
            .hours_later(1)
            .row(
                "a service of another manager failed, recorded and later",
                "requests clear maintenance, requests abort, writes the status, error cleared, waits for the node",
            ),
        provisioned().node("service hold").row(
            "a service of another manager is on hold",
            "writes the status, provisioned registration error: in Ironic the node is in state \"service hold\", which is \
             unexpected for a host in state \"provisioned\"; the node is not changed. End the hold or the rescue in \
             Ironic, so that the node is active again, waits for the node",
        ),
        provisioned().node("available").row(
            "the node was made available",
            "writes the status, provisioned registration error: in Ironic the node is in state \
             \"available\", which is unexpected for a host in state \"provisioned\"; the node is not \
             changed. If the machine still runs the right system, bring the node to manageable in \
             Ironic: it is then adopted as it is. To deploy it again, remove spec.image and set it \
             again, waits for the node",
        ),
        provisioned().node("clean failed").row(
            "the node was cleaned",
            "writes the status, provisioned registration error: in Ironic the node is in state \"clean \
             failed\", which is unexpected for a host in state \"provisioned\"; the node is not changed. \
             If the machine still runs the right system, bring the node to manageable in Ironic: it is \
             then adopted as it is. To deploy it again, remove spec.image and set it again, waits for \
             the node",
        ),
        provisioned().node_with("active", on()).no_secret().row(
            "no Secret",
            "writes the status, registration error: BMC CredentialsName secret doesn't exist: create \
             Secret bmc with username and password, waits for Secret bmc",
        ),
        provisioned()
            .status(json!({ "triedCredentials": { "credentialsVersion": "39" } }))
            .node_with("active", on())
            .row("other credentials", "requests change node, writes the status, replan"),
        provisioned()
            .status(json!({ "goodCredentials": { "credentialsVersion": "39" }, "triedCredentials": { "credentialsVersion": "39" } }))
            .node_with("active", on())
            .with(|fixture| fixture.login_unchanged_for = Some(Duration::ZERO))
            .row(
                "another version of the Secret with the same credentials",
                "writes the status, settled",
            ),
        provisioned()
            .spec(json!({ "automatedCleaningMode": "disabled" }))
            .node_with("active", on())
            .row("cleaning is forbidden while it runs", "requests change node, replan"),
        provisioned()
            .deleted()
            .node_with("active", on())
            .row("deleted", "writes the status, to deprovisioning, replan"),
        provisioned()
            .deleted()
            .node_with("active", on())
            .with(|fixture| fixture.left = 0)
            .row(
                "deleted, and the budget is spent",
                "withheld: DeprovisionBudgetSpent, waits for the user",
            ),
        provisioned()
            .deleted()
            .spec(json!({ "externallyProvisioned": true }))
            .node_with("active", on())
            .row(
                "deleted, and externally provisioned",
                "writes the status, to powering off before delete, replan",
            ),
        external()
            .node_with("active", on())
            .row("external, as it should be", "settled"),
        external()
            .node_with("manageable", on())
            .row("external, to be adopted", "requests adopt, waits for the node"),
        external()
            .spec(json!({ "externallyProvisioned": null }))
            .spec_image("a")
            .node_with("active", on())
            .row(
                "external, and no longer external",
                "writes the status, to provisioned, replan",
            ),
        external().deleted().node_with("active", on()).row(
            "external, and deleted",
            "writes the status, to powering off before delete, replan",
        ),
    ]
}
