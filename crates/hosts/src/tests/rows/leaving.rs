//! A host that is deleted.

use serde_json::json;

use super::given::{deleting, failing, held, powering_off, provisioned, with, written};
use super::{Row, row};
use crate::facts::{NodeSeen, Outage};
use crate::names::FORMER_ANNOTATION;
use crate::tests::scene::{OTHER_UID, at, secret};

pub(super) fn leaving() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    let outage = || Outage {
        since: at(-600),
        reason: "connection refused".into(),
    };
    let unmanaged = || {
        deleting()
            .spec(json!({ "bmc": null }))
            .status(json!({ "provisioning": { "state": "unmanaged", "ID": "" } }))
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
            "on, and Ironic holds the node",
            powering_off().node_with("available", json!({ "power_state": "power on", "reservation": "c1" })),
            "waits for the node",
        ),
        row(
            "off",
            powering_off().node("available"),
            "writes the status, to deleting, again",
        ),
        row(
            "off, and being switched on",
            powering_off().node_with(
                "available",
                json!({ "power_state": "power off", "target_power_state": "power on" }),
            ),
            "waits for the node",
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
            "on, and the node serves another",
            powering_off().node_with("active", with(on(), json!({ "instance_uuid": OTHER_UID }))),
            "writes the status, to deleting, again",
        ),
        row(
            "on, and the node is another's, found by the host's plain name",
            powering_off()
                .status(json!({ "provisioning": { "ID": "" } }))
                .node_with("active", with(on(), json!({ "name": "h" }))),
            "writes the status, to deleting, again",
        ),
        row(
            "on, and the node serves another with the same image",
            powering_off()
                .runs("a")
                .node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID })))
                .live(),
            "writes the status, to deleting, again",
        ),
        row(
            "on after a move, and what ran is removed",
            powering_off().node_with("available", on()),
            "asks power off, waits for the node",
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
            deleting().node_with("manageable", json!({ "instance_uuid": crate::tests::scene::UID })),
            "asks change node, asks delete node, again",
        ),
        row(
            "to be forgotten while in use",
            deleting().node("active"),
            "asks set maintenance, asks delete node, again",
        ),
        row(
            "to be forgotten, and the node serves another",
            deleting().node_with("active", json!({ "instance_uuid": OTHER_UID })),
            "changes Secret bmc, changes the host, again",
        ),
        row(
            "to be forgotten, and the node is another's, found by the host's plain name",
            deleting()
                .status(json!({ "provisioning": { "ID": "" } }))
                .node_with("active", json!({ "name": "h" })),
            "changes Secret bmc, changes the host, again",
        ),
        row(
            "to be forgotten, made before its status could say so",
            deleting()
                .status(json!({ "provisioning": { "ID": "" } }))
                .node("enroll"),
            "asks delete node, again",
        ),
        row(
            "to be forgotten, and the node serves another with the same image",
            deleting()
                .runs("a")
                .node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))),
            "changes Secret bmc, changes the host, again",
        ),
        row(
            "to be forgotten after a move, as written down then",
            deleting()
                .annotated(FORMER_ANNOTATION, OTHER_UID)
                .node_with("active", json!({ "instance_uuid": OTHER_UID })),
            "asks set maintenance, asks delete node, again",
        ),
        row(
            "to be forgotten, and its tear-down was given up",
            deleting()
                .runs("a")
                .node_with("clean failed", json!({ "instance_uuid": crate::tests::scene::UID })),
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
            "unmanaged, Ironic out of reach",
            unmanaged().with(|scene| scene.outage = Some(outage())),
            "writes the status, to deleting, again",
        ),
        row(
            "unmanaged and to be forgotten, Ironic out of reach",
            unmanaged()
                .status(json!({ "provisioning": { "state": "deleting" } }))
                .with(|scene| scene.outage = Some(outage())),
            "changes the host, again",
        ),
        row(
            "held, Ironic out of reach",
            held().deleted().with(|scene| {
                scene.outage = Some(outage());
                scene.left = 5;
            }),
            "held: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "a host at rest, Ironic out of reach",
            provisioned().with(|scene| scene.outage = Some(outage())),
            "reads Node, again",
        ),
    ]
}
