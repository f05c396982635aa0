//! Inspection and preparation.

use serde_json::json;

use super::Row;
use super::given::{FORCED, details, failing, inspecting, preparing};
use crate::facts::NodeFreshness;
use crate::tests::fixture::Fixture;

pub(super) fn inspection() -> Vec<Row> {
    vec![
        inspecting()
            .node("manageable")
            .row("nothing known", "reads Inventory, replan"),
        inspecting()
            .node("manageable")
            .with(|fixture| fixture.inventory = Some(None))
            .row("never inspected, from the feed", "reads Host, replan"),
        inspecting()
            .node("manageable")
            .live()
            .with(|fixture| fixture.inventory = Some(None))
            .row("never inspected", "requests inspect, waits for the node"),
        inspecting()
            .node_with("manageable", json!({ "instance_uuid": crate::tests::fixture::OTHER_UID }))
            .live()
            .with(|fixture| fixture.inventory = Some(None))
            .row(
                "never inspected, and the node serves another instance",
                "writes the status, inspection error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that \
                 instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of \
                 this host from before a move between clusters, set the annotation \
                 baremetalhost.metal3.io/former-instance to it, waits for the node",
            ),
        inspecting()
            .node("manageable")
            .with(|fixture| fixture.inventory = Some(Some(details())))
            .row(
                "inspected",
                "creates hardware data, writes the status, to preparing, replan",
            ),
        inspecting()
            .node("manageable")
            .with(|fixture| {
                fixture.inventory = Some(Some(details()));
                fixture.hardware_data = None;
            })
            .row("inspected, and hardware data unknown", "reads HardwareData, replan"),
        inspecting()
            .node("manageable")
            .annotated("inspect.metal3.io", "")
            .row("to be inspected again, from the feed", "reads Node, reads Host, replan"),
        inspecting()
            .node("manageable")
            .live()
            .annotated("inspect.metal3.io", "")
            .with(|fixture| fixture.inventory = Some(Some(details())))
            .row(
                "inspected, and to be inspected again",
                "requests inspect, changes the host, replan",
            ),
        inspecting().node("inspect wait").row("under way", "waits for the node"),
        inspecting()
            .node("inspect wait")
            .annotated("inspect.metal3.io", "")
            .row(
                "in progress, and the annotation still there",
                "changes the host, replan",
            ),
        inspecting()
            .node("inspect wait")
            .annotated("reboot.metal3.io", FORCED)
            .row("a reboot is forced, from the feed", "reads Node, reads Host, replan"),
        inspecting()
            .node("inspect wait")
            .live()
            .annotated("reboot.metal3.io", FORCED)
            .row(
                "the agent does not connect, and a reboot is forced",
                "requests abort, waits for the node",
            ),
        inspecting()
            .node("inspecting")
            .annotated("reboot.metal3.io", FORCED)
            .row("a reboot is forced too early", "waits for the node"),
        inspecting()
            .node_with("inspect failed", json!({ "last_error": "aborted" }))
            .live()
            .annotated("reboot.metal3.io", FORCED)
            .row(
                "aborted for a forced reboot",
                "requests inspect, changes the host, replan",
            ),
        inspecting()
            .node("inspect wait")
            .annotated("reboot.metal3.io", "")
            .row("a reboot that is not forced", "changes the host, replan"),
        inspecting()
            .node("inspect wait")
            .annotated("reboot.metal3.io/client", FORCED)
            .row("a client keeps the host off, by force", "waits for the node"),
        inspecting()
            .node_with("inspect failed", json!({ "last_error": "no lease" }))
            .row(
                "failed",
                "writes the status, inspection error: no lease, waits for a time",
            ),
        inspecting()
            .node_with("inspect failed", json!({ "reservation": "conductor" }))
            .row("failed, and Ironic has not reported why", "waits for a time"),
        inspecting()
            .node("inspect failed")
            .row("failed, and Ironic erased the reason", "reads History, replan"),
        inspecting()
            .node("inspect failed")
            .status(failing("inspection error", "no lease", 1))
            .row("failed, recorded, and Ironic erased the reason", "waits for a time"),
        inspecting()
            .node_with("inspect failed", json!({ "last_error": "no lease" }))
            .status(failing("inspection error", "no lease", 2))
            .live()
            .hours_later(1)
            .row(
                "failed, recorded and later",
                "requests inspect, writes the status, error cleared, waits for the node",
            ),
        inspecting()
            .node("inspect wait")
            .spec(json!({ "inspectionMode": "disabled" }))
            .row("disabled later", "writes the status, to preparing, replan"),
        inspecting()
            .node("available")
            .row("the node is available", "reads Inventory, replan"),
        inspecting()
            .node("available")
            .with(|fixture| fixture.inventory = Some(None))
            .row(
                "the node is available and was never inspected",
                "requests manage, waits for the node",
            ),
        inspecting()
            .node("available")
            .with(|fixture| fixture.inventory = Some(Some(details())))
            .row(
                "the node is available and its inventory is known",
                "creates hardware data, writes the status, to preparing, replan",
            ),
        inspecting()
            .node("available")
            .annotated("inspect.metal3.io", "")
            .row(
                "the node is available and is to be inspected",
                "requests manage, waits for the node",
            ),
        inspecting().node("active").row(
            "the node runs something",
            "writes the status, inspection error: in Ironic the node is in state \"active\", which is \
             unexpected for a host in state \"inspecting\"; the node is not changed. If its system is \
             not needed, undeploy the node in Ironic; to keep it, set spec.disablePowerOff, delete the host and create it again with spec.externallyProvisioned, waits \
             for the node",
        ),
        inspecting()
            .no_node()
            .row("Ironic lost the node", "requests create node, replan"),
        inspecting()
            .node("inspect wait")
            .deleted()
            .row("deleted", "writes the status, to powering off before delete, replan"),
        Fixture::new("match profile")
            .node("manageable")
            .row("an older manager's state", "writes the status, to preparing, replan"),
        Fixture::new("match profile").node("manageable").deleted().row(
            "an older manager's state, deleted",
            "writes the status, to powering off before delete, replan",
        ),
    ]
}

fn volumes() -> serde_json::Value {
    json!({ "softwareRAIDVolumes": [{ "level": "1" }] })
}

fn volumes_of_ironic() -> serde_json::Value {
    json!({ "logical_disks": [
        { "controller": "software", "size_gb": "MAX", "raid_level": "1", "is_root_volume": false },
    ] })
}

fn cleaning(target: &str) -> serde_json::Value {
    let step = json!({ "interface": "raid", "step": "create_configuration" });
    json!({ "raid_interface": "agent", "target_provision_state": target, "target_raid_config": volumes_of_ironic(),
        "driver_internal_info": { "clean_steps": [step] } })
}

fn asks_for_volumes() -> Fixture {
    preparing().spec(json!({ "raid": volumes() }))
}

fn has_volumes() -> Fixture {
    asks_for_volumes().status(json!({ "provisioning": { "raid": volumes() } }))
}

pub(super) fn preparation() -> Vec<Row> {
    vec![
        preparing()
            .node("manageable")
            .row("nothing to do", "writes the status, to available, replan"),
        preparing()
            .node("manageable")
            .with(|fixture| fixture.ports = None)
            .row("ports unknown", "reads Ports, replan"),
        preparing()
            .node("manageable")
            .status(json!({ "hardwareProfile": "antique" }))
            .row(
                "an unknown profile",
                "writes the status, registration error: status.hardwareProfile: there is no hardware \
                 profile \"antique\"; set spec.rootDeviceHints and remove spec.hardwareProfile, waits for \
                 the user",
            ),
        preparing()
            .node_with(
                "clean failed",
                json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
            )
            .row(
                "cleaning failed",
                "writes the status, preparation error: disk, waits for a time",
            ),
        preparing()
            .node_with(
                "clean failed",
                json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
            )
            .status(failing("preparation error", "disk", 1))
            .hours_later(1)
            .row("cleaning failed, recorded and later, from the feed", "reads Node, replan"),
        preparing()
            .node_with(
                "clean failed",
                json!({ "last_error": "disk", "maintenance": true, "fault": "clean failure" }),
            )
            .freshness(NodeFreshness::Live)
            .status(failing("preparation error", "disk", 1))
            .hours_later(1)
            .row(
                "cleaning failed, recorded and later",
                "requests clear maintenance, requests manage, writes the status, error cleared, waits for \
                 the node",
            ),
        asks_for_volumes()
            .node("manageable")
            .row("other volumes, and another RAID interface", "requests change node, replan"),
        asks_for_volumes()
            .node_with("manageable", json!({ "raid_interface": "agent" }))
            .row("other volumes are asked for", "reads Node, reads Host, replan"),
        asks_for_volumes()
            .node_with("manageable", json!({ "raid_interface": "agent" }))
            .live()
            .row(
                "other volumes, and the interface that makes them",
                "requests set RAID, requests clean, writes the status, waits for the node",
            ),
        asks_for_volumes()
            .node("available")
            .row("other volumes of an available node", "requests manage, waits for the node"),
        asks_for_volumes()
            .node_with("clean wait", json!({ "raid_interface": "agent" }))
            .row("a cleaning for something else", "waits for the node"),
        asks_for_volumes()
            .node_with("clean wait", cleaning("manageable"))
            .row(
                "a cleaning for these volumes, not recorded",
                "writes the status, waits for the node",
            ),
        asks_for_volumes()
            .node_with("clean wait", cleaning("manageable"))
            .with(|fixture| {
                if let Some(Some((node, _))) = &mut fixture.node {
                    node["driver_internal_info"]["clean_steps"][0]["interface"] = json!("bios");
                }
            })
            .row(
                "a cleaning for the BIOS, of a node with such an order",
                "waits for the node",
            ),
        asks_for_volumes()
            .node_with("clean wait", cleaning("available"))
            .row("an automated cleaning", "waits for the node"),
        asks_for_volumes()
            .node_with("clean wait", cleaning("manageable"))
            .with(|fixture| {
                if let Some(Some((node, _))) = &mut fixture.node {
                    node["raid_config"] = volumes_of_ironic();
                }
            })
            .row(
                "a cleaning of an operator, of a machine that has such volumes",
                "waits for the node",
            ),
        has_volumes()
            .spec(json!({ "automatedCleaningMode": "disabled" }))
            .status(failing("preparation error", "spec.raid.softwareRAIDVolumes: Ironic knows nothing", 1))
            .node_with("manageable", json!({ "raid_interface": "agent", "automated_clean": false }))
            .with(|fixture| fixture.began_elsewhere = true)
            .live()
            .row(
                "volumes that Ironic does not know, of disks that are kept, after a restart",
                "writes the status, preparation error: spec.raid.softwareRAIDVolumes: Ironic knows nothing of these volumes any \
                 more, and to make them again erases disks that automatedCleaningMode: disabled keeps; set it to metadata, or \
                 remove the list and set rootDeviceHints, waits for the user",
            ),
        asks_for_volumes()
            .spec(json!({ "hardwareProfile": "antique" }))
            .status(json!({ "hardwareProfile": null }))
            .node_with("manageable", json!({ "raid_interface": "agent" }))
            .live()
            .row(
                "other volumes, and an unknown profile",
                "writes the status, registration error: spec.hardwareProfile: there is no hardware profile \"antique\"; set \
                 spec.rootDeviceHints and remove spec.hardwareProfile, waits for the user",
            ),
        has_volumes()
            .node_with("manageable", json!({ "raid_config": volumes_of_ironic() }))
            .row("the volumes are made", "writes the status, to available, replan"),
        has_volumes()
            .node_with("manageable", json!({ "raid_interface": "agent" }))
            .live()
            .row(
                "Ironic does not know the volumes",
                "requests set RAID, requests clean, waits for the node",
            ),
        has_volumes()
            .node_with("manageable", json!({ "target_raid_config": volumes_of_ironic() }))
            .row(
                "Ironic does not report the volumes",
                "writes the status, preparation error: Ironic reports other software volumes than those that were ordered; \
                 look at the agent's log of the last cleaning, they are made again, waits for a time",
            ),
        has_volumes()
            .status(failing("preparation error", "Clean step raid.create_configuration failed on node x. disk", 1))
            .node_with(
                "manageable",
                json!({ "raid_interface": "agent", "raid_config": volumes_of_ironic(),
                    "target_raid_config": volumes_of_ironic() }),
            )
            .with(|fixture| fixture.began_elsewhere = true)
            .live()
            .row(
                "another process left a failure of the volumes",
                "requests clean, writes the status, error cleared, waits for the node",
            ),
        has_volumes()
            .node_with("manageable", json!({ "instance_uuid": crate::tests::fixture::OTHER_UID }))
            .live()
            .row(
                "the node serves another instance",
                "writes the status, preparation error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that \
                 instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of \
                 this host from before a move between clusters, set the annotation \
                 baremetalhost.metal3.io/former-instance to it, waits for the node",
            ),
        has_volumes()
            .node_with("clean failed", json!({ "last_error": "disk" }))
            .row(
                "their cleaning failed",
                "writes the status, preparation error: disk, waits for a time",
            ),
        has_volumes()
            .spec(json!({ "raid": { "softwareRAIDVolumes": [{ "level": "0" }] } }))
            .node("manageable")
            .row(
                "volumes that cannot be made",
                "writes the status, preparation error: spec.raid.softwareRAIDVolumes[0].level: the first software \
                 volume must be of level 1, from which the machine boots; set it to \"1\", waits for the user",
            ),
        has_volumes()
            .spec(json!({ "raid": null }))
            .node_with("manageable", json!({ "raid_interface": "agent", "target_raid_config": volumes_of_ironic() }))
            .live()
            .row(
                "no volumes are asked for any more",
                "requests clean, writes the status, waits for the node",
            ),
        preparing()
            .status(json!({ "provisioning": { "raid": { "softwareRAIDVolumes": [] } } }))
            .node_with("manageable", json!({ "target_raid_config": volumes_of_ironic() }))
            .row(
                "the volumes are removed",
                "requests set RAID, writes the status, to available, replan",
            ),
        asks_for_volumes()
            .spec(json!({ "externallyProvisioned": true }))
            .node("manageable")
            .row(
                "volumes of a machine of another",
                "writes the status, to available, replan",
            ),
        preparing()
            .node("manageable")
            .deleted()
            .row("deleted", "writes the status, to powering off before delete, replan"),
    ]
}
