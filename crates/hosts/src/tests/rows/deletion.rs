//! A host that is deleted.

use serde_json::json;

use super::Row;
use super::given::{deleting, failing, powering_off, provisioned, with, withheld, written_for};
use crate::facts::{HostFreshness, NodeFreshness, RefusalClass};
use crate::names::FORMER_ANNOTATION;
use crate::tests::fixture::{OTHER_UID, UID, secret};

pub(super) fn deletion() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    let writing = || {
        let left = json!([{ "component": "bios", "url": "http://f/1" }]);
        with(on(), json!({ "driver_internal_info": { "redfish_fw_updates": left } }))
    };
    let unmanaged = || {
        deleting()
            .spec(json!({ "bmc": null }))
            .status(json!({ "provisioning": { "state": "unmanaged", "ID": "" } }))
    };
    vec![
        powering_off()
            .node_with("available", on())
            .live()
            .row("on", "requests power off, waits for the node"),
        powering_off()
            .host_freshness(HostFreshness::Cached)
            .node_with("available", on())
            .row("on, and the host is from the cache", "reads Node, reads Host, replan"),
        powering_off()
            .node_with("available", on())
            .row("on, and the node is from the feed", "reads Node, replan"),
        powering_off()
            .node("available")
            .freshness(NodeFreshness::Current)
            .row("off, as the feed showed before the deletion", "reads Node, replan"),
        powering_off()
            .spec(json!({ "externallyProvisioned": true }))
            .host_freshness(HostFreshness::Cached)
            .node_with("active", on())
            .row("on, and external", "reads Node, reads Host, replan"),
        powering_off()
            .spec(json!({ "externallyProvisioned": true }))
            .node_with("active", on())
            .live()
            .row("on, and external, read live", "requests power off, waits for the node"),
        powering_off()
            .node_with("available", json!({ "power_state": "power on", "reservation": "c1" }))
            .reserved_for(60)
            .row("on, and Ironic holds the node", "waits for a time"),
        powering_off()
            .node_with("available", json!({ "power_state": "power on", "reservation": "c1" }))
            .reserved_for(900)
            .live()
            .row(
                "on, and a reservation of the node stays",
                "requests power off, waits for the node",
            ),
        powering_off()
            .node("available")
            .row("off", "writes the status, to deleting, replan"),
        powering_off()
            .node_with(
                "available",
                json!({ "power_state": "power off", "target_power_state": "power on", "reservation": "conductor" }),
            )
            .reserved_for(60)
            .row("off, and being switched on", "waits for a time"),
        powering_off()
            .node_with(
                "available",
                json!({ "power_state": "power off", "target_power_state": "power on", "reservation": "conductor" }),
            )
            .reserved_for(900)
            .live()
            .row(
                "off, and being switched on for longer than any power change takes",
                "requests power off, waits for the node",
            ),
        powering_off()
            .node_with(
                "available",
                json!({ "power_state": "power on", "target_power_state": "power off" }),
            )
            .live()
            .row(
                "being switched off when its conductor died",
                "requests power off, waits for the node",
            ),
        powering_off()
            .spec(json!({ "disablePowerOff": true }))
            .node_with("available", on())
            .row("never off", "writes the status, to deleting, replan"),
        powering_off()
            .no_node()
            .row("no node", "writes the status, to deleting, replan"),
        powering_off().row("node unknown", "reads Node, replan"),
        powering_off()
            .node_with("inspect wait", on())
            .row("inspection waits, from the feed", "reads Node, replan"),
        powering_off()
            .node_with("inspect wait", on())
            .live()
            .row("inspection waits", "requests abort, waits for the node"),
        powering_off()
            .node_with("active", with(on(), json!({ "instance_uuid": OTHER_UID })))
            .row(
                "on, and the node serves another instance",
                "writes the status, to deleting, replan",
            ),
        powering_off()
            .status(json!({ "provisioning": { "ID": "" } }))
            .node_with("active", with(on(), json!({ "name": "h" })))
            .row(
                "on, and the node is of another host, found by the host's plain name",
                "writes the status, to deleting, replan",
            ),
        powering_off()
            .status_image("a")
            .node_with("active", written_for("a", OTHER_UID))
            .live()
            .row(
                "on, and the node serves another instance with the same image",
                "writes the status, to deleting, replan",
            ),
        powering_off().node_with("available", on()).live().row(
            "on after a move, and what ran is removed",
            "requests power off, waits for the node",
        ),
        powering_off()
            .node_with(
                "available",
                json!({ "power_state": "power on", "last_error": "power: bmc" }),
            )
            .live()
            .row(
                "on, with an error of another time",
                "requests power off, waits for the node",
            ),
        powering_off()
            .node_with(
                "available",
                json!({ "power_state": "power on", "last_error": "power: bmc" }),
            )
            .requested_power(false)
            .row(
                "powering off failed",
                "writes the status, power management error: PowerOff operation failed: power: bmc, waits \
                 for a time",
            ),
        powering_off()
            .node_with("available", on())
            .status(failing("power management error", "x", 4))
            .row(
                "powering off failed too often",
                "writes the status, to deleting, error cleared, replan",
            ),
        powering_off()
            .node_with(
                "available",
                json!({ "power_state": "power on", "fault": "power failure" }),
            )
            .row(
                "a fault",
                "writes the status, power management error: the machine cannot be powered off while its \
                 node has a fault or is in maintenance (power failure); after 3 more attempts the deletion \
                 continues without powering off, waits for a time",
            ),
        powering_off()
            .node_with("available", on())
            .no_secret()
            .live()
            .row("no Secret", "requests power off, waits for the node"),
        powering_off()
            .node_with("available", on())
            .refused("power off", RefusalClass::Persistent, "no")
            .row(
                "power-off rejected again and again",
                "writes the status, power management error: Ironic rejected the request (power off): no, waits for a \
                 time",
            ),
        powering_off()
            .node_with("available", on())
            .refused("power off", RefusalClass::Persistent, "no")
            .status(failing(
                "power management error",
                "Ironic rejected the request (power off): no",
                4,
            ))
            .hours_later(24)
            .row(
                "power-off rejected too often",
                "writes the status, to deleting, error cleared, replan",
            ),
        deleting()
            .status(json!({ "provisioning": { "ID": "" } }))
            .node("verifying")
            .row(
                "node to be deleted, in verification, not recorded yet",
                "writes the status, waits for the node",
            ),
        deleting()
            .node("verifying")
            .row("node to be deleted, in verification", "waits for the node"),
        deleting().row("node to be deleted, unknown", "reads Node, replan"),
        deleting()
            .node("available")
            .freshness(NodeFreshness::Stale)
            .row("node to be deleted, stale observation", "reads Node, replan"),
        deleting().node("available").row(
            "node to be deleted, and the host is from the cache",
            "reads Node, reads Host, replan",
        ),
        deleting()
            .node("available")
            .live()
            .row("node to be deleted", "requests delete node, replan"),
        deleting().node_with("manageable", json!({ "instance_uuid": UID })).row(
            "node to be deleted, with an instance, from the feed",
            "reads Node, reads Host, replan",
        ),
        deleting()
            .node_with("manageable", json!({ "instance_uuid": UID }))
            .live()
            .row(
                "node to be deleted, with an instance",
                "requests change node, requests delete node, replan",
            ),
        deleting().node("active").row(
            "node to be deleted while in use, from the feed",
            "reads Node, reads Host, replan",
        ),
        deleting().node("active").live().row(
            "node to be deleted while in use",
            "requests set maintenance, requests delete node, replan",
        ),
        deleting()
            .node_with("active", json!({ "instance_uuid": OTHER_UID }))
            .row(
                "node to be deleted, and the node serves another instance",
                "changes Secret bmc, changes the host, replan",
            ),
        deleting()
            .status(json!({ "provisioning": { "ID": "" } }))
            .node_with("active", json!({ "name": "h" }))
            .row(
                "node to be deleted, and the node is of another host, found by the host's plain name",
                "changes Secret bmc, changes the host, replan",
            ),
        deleting()
            .status(json!({ "provisioning": { "ID": "" } }))
            .node("enroll")
            .live()
            .row(
                "node to be deleted, created before its status recorded it",
                "requests delete node, replan",
            ),
        deleting()
            .status_image("a")
            .node_with("active", written_for("a", OTHER_UID))
            .row(
                "node to be deleted, and the node serves another instance with the same image",
                "changes Secret bmc, changes the host, replan",
            ),
        deleting()
            .annotated(FORMER_ANNOTATION, OTHER_UID)
            .node_with("active", json!({ "instance_uuid": OTHER_UID }))
            .live()
            .row(
                "node to be deleted after a move, as recorded by the annotation",
                "requests set maintenance, requests delete node, replan",
            ),
        deleting()
            .status_image("a")
            .node_with("clean failed", json!({ "instance_uuid": UID }))
            .live()
            .row(
                "node to be deleted, and its deprovisioning was given up",
                "requests set maintenance, requests delete node, replan",
            ),
        deleting().node("clean wait").row(
            "node to be deleted while it waits, and the host is from the cache",
            "reads Node, reads Host, replan",
        ),
        deleting().node("clean wait").live().row(
            "node to be deleted while it waits",
            "requests abort, waits for the node",
        ),
        deleting()
            .node_with("clean wait", json!({ "clean_step": { "abort_after": true } }))
            .live()
            .row("the same, in a step that cannot be interrupted", "waits for the node"),
        deleting()
            .node_with(
                "clean wait",
                json!({ "clean_step": { "abort_after": true }, "maintenance": true }),
            )
            .live()
            .row(
                "the same, which Ironic does not go on with",
                "requests delete node, replan",
            ),
        deleting().node("wait call-back").live().row(
            "node to be deleted during a deployment",
            "requests abort, waits for the node",
        ),
        deleting()
            .node("wait call-back")
            .with(|fixture| fixture.aborts_deployments = false)
            .row(
                "node to be deleted during a deployment, and Ironic is older than 1.110",
                "reads Node, reads Host, replan",
            ),
        deleting()
            .node("wait call-back")
            .live()
            .with(|fixture| fixture.aborts_deployments = false)
            .row(
                "node to be deleted during a deployment, and Ironic is older than 1.110, read live",
                "requests deleted, waits for the node",
            ),
        deleting()
            .spec(json!({ "automatedCleaningMode": "disabled" }))
            .node("wait call-back")
            .live()
            .with(|fixture| fixture.aborts_deployments = false)
            .row(
                "node to be deleted during a deployment, older Ironic, and cleaning is forbidden",
                "waits for the node",
            ),
        powering_off()
            .node_with("service wait", on())
            .live()
            .row("a service waits", "requests abort, waits for the node"),
        powering_off()
            .node_with("service wait", writing())
            .live()
            .row("the BMC writes firmware", "waits for the node"),
        deleting().node_with("service wait", on()).live().row(
            "node to be deleted during a service",
            "requests abort, waits for the node",
        ),
        deleting()
            .node_with("service wait", writing())
            .live()
            .row("node to be deleted while the BMC writes firmware", "waits for the node"),
        powering_off()
            .node_with("servicing", on())
            .row("a service runs", "waits for the node"),
        deleting()
            .node("cleaning")
            .row("node to be deleted while it works", "waits for the node"),
        deleting()
            .no_node()
            .row("node deleted", "changes Secret bmc, changes the host, replan"),
        deleting()
            .no_node()
            .with(|fixture| fixture.credentials = None)
            .row("node deleted, and Secrets unknown", "reads Credentials, replan"),
        deleting()
            .no_node()
            .with(|fixture| {
                fixture.credentials = Some(Some(secret("bmc", &[])));
                fixture.hardware_data = None;
            })
            .row(
                "node deleted, with a Secret without values and hardware data unknown",
                "reads HardwareData, replan",
            ),
        deleting()
            .host(json!({ "metadata": { "finalizers": ["other"] } }))
            .no_node()
            .row("finalizer removed", "settled"),
        deleting()
            .ironic_unreachable()
            .row("Ironic unreachable", "withheld: IronicUnreachable, waits for a time"),
        unmanaged().ironic_unreachable().row(
            "unmanaged, Ironic unreachable",
            "writes the status, to deleting, replan",
        ),
        unmanaged()
            .status(json!({ "provisioning": { "state": "deleting" } }))
            .ironic_unreachable()
            .row(
                "unmanaged with a node to be deleted, Ironic unreachable",
                "changes the host, replan",
            ),
        withheld().deleted().ironic_unreachable().row(
            "withheld, Ironic unreachable",
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        provisioned()
            .ironic_unreachable()
            .row("a steady host, Ironic unreachable", "reads Node, replan"),
    ]
}
