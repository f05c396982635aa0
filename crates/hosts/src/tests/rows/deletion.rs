//! A host that is deleted.

use serde_json::json;

use super::given::{deleting, failing, powering_off, provisioned, with, withheld, written};
use super::{Row, row};
use crate::facts::{NodeFreshness, Outage};
use crate::names::FORMER_ANNOTATION;
use crate::tests::fixture::{OTHER_UID, at, secret};

pub(super) fn deletion() -> Vec<Row> {
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
            "requests power off, waits for the node",
        ),
        row(
            "on, and external",
            powering_off()
                .spec(json!({ "externallyProvisioned": true }))
                .node_with("active", on()),
            "reads Host, reads Node, replan",
        ),
        row(
            "on, and external, read live",
            powering_off()
                .spec(json!({ "externallyProvisioned": true }))
                .node_with("active", on())
                .live(),
            "requests power off, waits for the node",
        ),
        row(
            "on, and Ironic holds the node",
            powering_off().node_with("available", json!({ "power_state": "power on", "reservation": "c1" })),
            "waits for the node",
        ),
        row(
            "off",
            powering_off().node("available"),
            "writes the status, to deleting, replan",
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
            "writes the status, to deleting, replan",
        ),
        row(
            "no node",
            powering_off().no_node(),
            "writes the status, to deleting, replan",
        ),
        row("node unknown", powering_off(), "reads Node, replan"),
        row(
            "inspection waits",
            powering_off().node_with("inspect wait", on()),
            "requests abort, waits for the node",
        ),
        row(
            "on, and the node serves another instance",
            powering_off().node_with("active", with(on(), json!({ "instance_uuid": OTHER_UID }))),
            "writes the status, to deleting, replan",
        ),
        row(
            "on, and the node is of another host, found by the host's plain name",
            powering_off()
                .status(json!({ "provisioning": { "ID": "" } }))
                .node_with("active", with(on(), json!({ "name": "h" }))),
            "writes the status, to deleting, replan",
        ),
        row(
            "on, and the node serves another instance with the same image",
            powering_off()
                .status_image("a")
                .node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID })))
                .live(),
            "writes the status, to deleting, replan",
        ),
        row(
            "on after a move, and what ran is removed",
            powering_off().node_with("available", on()),
            "requests power off, waits for the node",
        ),
        row(
            "powering off failed",
            powering_off().node_with(
                "available",
                json!({ "power_state": "power on", "last_error": "power: bmc" }),
            ),
            "writes the status, power management error: PowerOff operation failed: power: bmc, waits for a time",
        ),
        row(
            "powering off failed too often",
            powering_off()
                .node_with("available", on())
                .status(failing("power management error", "x", 4)),
            "writes the status, to deleting, error cleared, replan",
        ),
        row(
            "a fault",
            powering_off().node_with(
                "available",
                json!({ "power_state": "power on", "fault": "power failure" }),
            ),
            "writes the status, power management error: the machine cannot be powered off while its node has a fault or is in maintenance (power failure); after 3 more attempts the deletion continues without powering off, waits for a time",
        ),
        row(
            "no Secret",
            powering_off()
                .node_with("available", on())
                .with(|fixture| fixture.credentials = Some(None)),
            "requests power off, waits for the node",
        ),
        row("node to be deleted, unknown", deleting(), "reads Node, replan"),
        row(
            "node to be deleted, stale observation",
            deleting().node("available").freshness(NodeFreshness::Stale),
            "reads Node, replan",
        ),
        row(
            "node to be deleted",
            deleting().node("available"),
            "requests delete node, replan",
        ),
        row(
            "node to be deleted, with an instance",
            deleting().node_with("manageable", json!({ "instance_uuid": crate::tests::fixture::UID })),
            "requests change node, requests delete node, replan",
        ),
        row(
            "node to be deleted while in use",
            deleting().node("active"),
            "requests set maintenance, requests delete node, replan",
        ),
        row(
            "node to be deleted, and the node serves another instance",
            deleting().node_with("active", json!({ "instance_uuid": OTHER_UID })),
            "changes Secret bmc, changes the host, replan",
        ),
        row(
            "node to be deleted, and the node is of another host, found by the host's plain name",
            deleting()
                .status(json!({ "provisioning": { "ID": "" } }))
                .node_with("active", json!({ "name": "h" })),
            "changes Secret bmc, changes the host, replan",
        ),
        row(
            "node to be deleted, created before its status recorded it",
            deleting()
                .status(json!({ "provisioning": { "ID": "" } }))
                .node("enroll"),
            "requests delete node, replan",
        ),
        row(
            "node to be deleted, and the node serves another instance with the same image",
            deleting()
                .status_image("a")
                .node_with("active", with(written("a"), json!({ "instance_uuid": OTHER_UID }))),
            "changes Secret bmc, changes the host, replan",
        ),
        row(
            "node to be deleted after a move, as recorded by the annotation",
            deleting()
                .annotated(FORMER_ANNOTATION, OTHER_UID)
                .node_with("active", json!({ "instance_uuid": OTHER_UID })),
            "requests set maintenance, requests delete node, replan",
        ),
        row(
            "node to be deleted, and its deprovisioning was given up",
            deleting()
                .status_image("a")
                .node_with("clean failed", json!({ "instance_uuid": crate::tests::fixture::UID })),
            "requests set maintenance, requests delete node, replan",
        ),
        row(
            "node to be deleted while it waits",
            deleting().node("clean wait"),
            "requests abort, waits for the node",
        ),
        row(
            "node to be deleted while it works",
            deleting().node("cleaning"),
            "waits for the node",
        ),
        row(
            "node deleted",
            deleting().no_node(),
            "changes Secret bmc, changes the host, replan",
        ),
        row(
            "node deleted, and Secrets unknown",
            deleting().no_node().with(|fixture| fixture.credentials = None),
            "reads Credentials, replan",
        ),
        row(
            "node deleted, with a Secret without values and hardware data unknown",
            deleting().no_node().with(|fixture| {
                fixture.credentials = Some(Some(secret("bmc", &[])));
                fixture.hardware_data = None;
            }),
            "reads HardwareData, replan",
        ),
        row(
            "finalizer removed",
            deleting()
                .host(json!({ "metadata": { "finalizers": ["other"] } }))
                .no_node(),
            "settled",
        ),
        row(
            "Ironic unreachable",
            deleting().with(|fixture| fixture.outage = Some(outage())),
            "withheld: IronicUnreachable, waits for a time",
        ),
        row(
            "unmanaged, Ironic unreachable",
            unmanaged().with(|fixture| fixture.outage = Some(outage())),
            "writes the status, to deleting, replan",
        ),
        row(
            "unmanaged with a node to be deleted, Ironic unreachable",
            unmanaged()
                .status(json!({ "provisioning": { "state": "deleting" } }))
                .with(|fixture| fixture.outage = Some(outage())),
            "changes the host, replan",
        ),
        row(
            "withheld, Ironic unreachable",
            withheld().deleted().with(|fixture| {
                fixture.outage = Some(outage());
                fixture.left = 5;
            }),
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "a steady host, Ironic unreachable",
            provisioned().with(|fixture| fixture.outage = Some(outage())),
            "reads Node, replan",
        ),
    ]
}
