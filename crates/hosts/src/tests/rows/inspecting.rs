//! Inspection and preparation.

use serde_json::json;

use super::given::{FORCED, details, failing, inspecting, preparing};
use super::{Row, row};
use crate::tests::fixture::Fixture;

pub(super) fn inspection() -> Vec<Row> {
    vec![
        row(
            "nothing known",
            inspecting().node("manageable"),
            "reads Inventory, replan",
        ),
        row(
            "never inspected",
            inspecting()
                .node("manageable")
                .with(|fixture| fixture.inventory = Some(None)),
            "requests inspect, waits for the node",
        ),
        row(
            "inspected",
            inspecting()
                .node("manageable")
                .with(|fixture| fixture.inventory = Some(Some(details()))),
            "creates hardware data, writes the status, to preparing, replan",
        ),
        row(
            "inspected, and hardware data unknown",
            inspecting().node("manageable").with(|fixture| {
                fixture.inventory = Some(Some(details()));
                fixture.hardware_data = None;
            }),
            "reads HardwareData, replan",
        ),
        row(
            "inspected, and to be inspected again",
            inspecting()
                .node("manageable")
                .annotated("inspect.metal3.io", "")
                .with(|fixture| fixture.inventory = Some(Some(details()))),
            "requests inspect, changes the host, replan",
        ),
        row("under way", inspecting().node("inspect wait"), "waits for the node"),
        row(
            "in progress, and the annotation still there",
            inspecting().node("inspect wait").annotated("inspect.metal3.io", ""),
            "changes the host, replan",
        ),
        row(
            "the agent does not connect, and a reboot is forced",
            inspecting().node("inspect wait").annotated("reboot.metal3.io", FORCED),
            "requests abort, waits for the node",
        ),
        row(
            "a reboot is forced too early",
            inspecting().node("inspecting").annotated("reboot.metal3.io", FORCED),
            "waits for the node",
        ),
        row(
            "aborted for a forced reboot",
            inspecting()
                .node_with("inspect failed", json!({ "last_error": "aborted" }))
                .annotated("reboot.metal3.io", FORCED),
            "requests inspect, changes the host, replan",
        ),
        row(
            "a reboot that is not forced",
            inspecting().node("inspect wait").annotated("reboot.metal3.io", ""),
            "changes the host, replan",
        ),
        row(
            "a client keeps the host off, by force",
            inspecting()
                .node("inspect wait")
                .annotated("reboot.metal3.io/client", FORCED),
            "waits for the node",
        ),
        row(
            "failed",
            inspecting().node_with("inspect failed", json!({ "last_error": "no lease" })),
            "writes the status, inspection error: no lease, waits for a time",
        ),
        row(
            "failed, and Ironic has not reported why",
            inspecting().node_with("inspect failed", json!({ "reservation": "conductor" })),
            "waits for the node",
        ),
        row(
            "failed, and Ironic erased the reason",
            inspecting().node("inspect failed"),
            "reads History, replan",
        ),
        row(
            "failed, recorded, and Ironic erased the reason",
            inspecting()
                .node("inspect failed")
                .status(failing("inspection error", "no lease", 1)),
            "waits for a time",
        ),
        row(
            "failed, recorded and later",
            inspecting()
                .node_with("inspect failed", json!({ "last_error": "no lease" }))
                .status(failing("inspection error", "no lease", 2))
                .hours_later(1),
            "requests inspect, writes the status, error cleared, waits for the node",
        ),
        row(
            "disabled later",
            inspecting()
                .node("inspect wait")
                .spec(json!({ "inspectionMode": "disabled" })),
            "writes the status, to preparing, replan",
        ),
        row(
            "the node is available",
            inspecting().node("available"),
            "requests manage, waits for the node",
        ),
        row(
            "the node runs something",
            inspecting().node("active"),
            "writes the status, inspection error: in Ironic the node is in state \"active\", which is unexpected for a host in state \"inspecting\"; the node is not changed. If its system is not needed, undeploy the node in Ironic; otherwise set spec.externallyProvisioned, waits for the node",
        ),
        row(
            "Ironic lost the node",
            inspecting().no_node(),
            "requests create node, replan",
        ),
        row(
            "deleted",
            inspecting().node("inspect wait").deleted(),
            "writes the status, to powering off before delete, replan",
        ),
        row(
            "an older manager's state",
            Fixture::new("match profile").node("manageable"),
            "writes the status, to preparing, replan",
        ),
        row(
            "an older manager's state, deleted",
            Fixture::new("match profile").node("manageable").deleted(),
            "writes the status, to powering off before delete, replan",
        ),
    ]
}

pub(super) fn preparation() -> Vec<Row> {
    vec![
        row(
            "nothing to do",
            preparing().node("manageable"),
            "writes the status, to available, replan",
        ),
        row(
            "ports unknown",
            preparing().node("manageable").with(|fixture| fixture.ports = None),
            "reads Ports, replan",
        ),
        row(
            "an unknown profile",
            preparing()
                .node("manageable")
                .status(json!({ "hardwareProfile": "antique" })),
            "writes the status, registration error: status.hardwareProfile: there is no hardware profile \"antique\"; set spec.rootDeviceHints and remove spec.hardwareProfile, waits for the user",
        ),
        row(
            "cleaning failed",
            preparing().node_with(
                "clean failed",
                json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
            ),
            "writes the status, preparation error: disk, waits for a time",
        ),
        row(
            "cleaning failed, recorded and later",
            preparing()
                .node_with(
                    "clean failed",
                    json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
                )
                .status(failing("preparation error", "disk", 1))
                .hours_later(1),
            "requests clear maintenance, requests manage, writes the status, error cleared, waits for the node",
        ),
        row(
            "deleted",
            preparing().node("manageable").deleted(),
            "writes the status, to powering off before delete, replan",
        ),
    ]
}
