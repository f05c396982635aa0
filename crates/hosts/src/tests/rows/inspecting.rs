//! What the machine is made of, and what is prepared on it.

use serde_json::json;

use super::given::{FORCED, details, failing, inspecting, preparing};
use super::{Row, row};
use crate::tests::scene::Scene;

pub(super) fn inspection() -> Vec<Row> {
    vec![
        row(
            "nothing known",
            inspecting().node("manageable"),
            "reads Inventory, again",
        ),
        row(
            "never inspected",
            inspecting()
                .node("manageable")
                .with(|scene| scene.inventory = Some(None)),
            "asks inspect, waits for the node",
        ),
        row(
            "inspected",
            inspecting()
                .node("manageable")
                .with(|scene| scene.inventory = Some(Some(details()))),
            "creates hardware data, writes the status, to preparing, again",
        ),
        row(
            "inspected, and hardware data unknown",
            inspecting().node("manageable").with(|scene| {
                scene.inventory = Some(Some(details()));
                scene.hardware_data = None;
            }),
            "reads HardwareData, again",
        ),
        row(
            "inspected, and to be inspected again",
            inspecting()
                .node("manageable")
                .annotated("inspect.metal3.io", "")
                .with(|scene| scene.inventory = Some(Some(details()))),
            "asks inspect, changes the host, again",
        ),
        row("under way", inspecting().node("inspect wait"), "waits for the node"),
        row(
            "under way, and the wish still there",
            inspecting().node("inspect wait").annotated("inspect.metal3.io", ""),
            "changes the host, again",
        ),
        row(
            "the agent does not come, and a reboot is forced",
            inspecting().node("inspect wait").annotated("reboot.metal3.io", FORCED),
            "asks abort, waits for the node",
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
            "asks inspect, changes the host, again",
        ),
        row(
            "a reboot that is not forced",
            inspecting().node("inspect wait").annotated("reboot.metal3.io", ""),
            "changes the host, again",
        ),
        row(
            "a client holds the host off, by force",
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
            "failed, and Ironic has not said why",
            inspecting().node_with("inspect failed", json!({ "reservation": "conductor" })),
            "waits for the node",
        ),
        row(
            "failed, and Ironic has erased why",
            inspecting().node("inspect failed"),
            "reads History, again",
        ),
        row(
            "failed, told, and Ironic has erased its words",
            inspecting()
                .node("inspect failed")
                .status(failing("inspection error", "no lease", 1)),
            "waits for a time",
        ),
        row(
            "failed, told and later",
            inspecting()
                .node_with("inspect failed", json!({ "last_error": "no lease" }))
                .status(failing("inspection error", "no lease", 2))
                .later(1),
            "asks inspect, writes the status, well again, waits for the node",
        ),
        row(
            "disabled meanwhile",
            inspecting()
                .node("inspect wait")
                .spec(json!({ "inspectionMode": "disabled" })),
            "writes the status, to preparing, again",
        ),
        row(
            "the node is available",
            inspecting().node("available"),
            "asks manage, waits for the node",
        ),
        row(
            "the node runs something",
            inspecting().node("active"),
            "writes the status, inspection error: in Ironic the node is in state \"active\", which does not fit a host that is \"inspecting\"; it is left as it is. If nothing needs what runs there, undeploy the node in Ironic; else set spec.externallyProvisioned, waits for the node",
        ),
        row(
            "the node was forgotten",
            inspecting().no_node(),
            "asks create node, again",
        ),
        row(
            "deleted",
            inspecting().node("inspect wait").deleted(),
            "writes the status, to powering off before delete, again",
        ),
        row(
            "an older manager's state",
            Scene::new("match profile").node("manageable"),
            "writes the status, to preparing, again",
        ),
        row(
            "an older manager's state, deleted",
            Scene::new("match profile").node("manageable").deleted(),
            "writes the status, to powering off before delete, again",
        ),
    ]
}

pub(super) fn preparation() -> Vec<Row> {
    vec![
        row(
            "nothing to do",
            preparing().node("manageable"),
            "writes the status, to available, again",
        ),
        row(
            "ports unknown",
            preparing().node("manageable").with(|scene| scene.ports = None),
            "reads Ports, again",
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
            "cleaning failed, told and later",
            preparing()
                .node_with(
                    "clean failed",
                    json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
                )
                .status(failing("preparation error", "disk", 1))
                .later(1),
            "asks clear maintenance, asks manage, writes the status, well again, waits for the node",
        ),
        row(
            "deleted",
            preparing().node("manageable").deleted(),
            "writes the status, to powering off before delete, again",
        ),
    ]
}
