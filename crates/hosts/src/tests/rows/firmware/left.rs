//! Updates that an earlier cleaning left in the node.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::Row;
use super::super::given::{failing, preparing, with};
use super::{URL, failed, made, update};
use crate::tests::fixture::Fixture;

const HELD: &str = "writes the status, preparation error: Ironic has updates of the firmware that an earlier cleaning left (bios), \
    which it goes on with in each operation; the machine is not touched until Ironic gives them up, about two hours after they began, \
    withheld: FirmwareUpdatesLeft, waits for a time";

pub(super) fn left() -> Vec<Row> {
    let keeps = |state: &str, more: Value, components: &[&str]| {
        let one = |name: &&str| json!({ "component": name, "url": URL, "task_monitor": "/m" });
        let left: Vec<_> = components.iter().map(one).collect();
        let node = with(more, json!({ "driver_internal_info": { "redfish_fw_updates": left } }));
        preparing()
            .components(json!([]), json!([]), Vec::new())
            .node_with(state, node)
            .status(failing("preparation error", "Timeout", 1))
            .hours_later(1)
            .live()
    };
    let minutes = |fixture: Fixture, minutes| {
        fixture.with(|fixture| fixture.updates_left_for = Some(Duration::from_mins(minutes)))
    };
    let volumes = json!({ "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } });
    let manageable = |components: &[&str]| {
        keeps("manageable", json!({ "raid_interface": "agent" }), components).spec(volumes.clone())
    };
    vec![
        minutes(keeps("clean failed", failed(), &["bios"]), 0).row("Ironic discards them", "waits for a time"),
        minutes(keeps("clean failed", failed(), &["bios"]), 15).row(
            "Ironic does not discard them",
            "requests clear maintenance, requests manage, writes the status, error cleared, waits for the node",
        ),
        minutes(keeps("clean failed", json!({}), &["bios"]), 0).row(
            "an operator ended the maintenance",
            "requests set maintenance, waits for a time",
        ),
        keeps(
            "clean failed",
            json!({ "maintenance": true, "maintenance_reason": "updates of the firmware that have not ended are discarded" }),
            &[],
        )
        .row(
            "discarded in a maintenance of this program",
            "requests clear maintenance, requests manage, writes the status, error cleared, waits for the node",
        ),
        keeps(
            "clean failed",
            json!({ "maintenance": true, "maintenance_reason": "Firmware update failed for node N, firmware F. Error: no" }),
            &[],
        )
        .row(
            "Ironic failed them in another cleaning",
            "requests clear maintenance, requests manage, writes the status, error cleared, waits for the node",
        ),
        minutes(manageable(&["bios"]), 1).row("one that is polled", HELD),
        keeps(
            "clean wait",
            json!({ "maintenance": true, "maintenance_reason": "Firmware update on node N has exceeded the overall timeout" }),
            &[],
        )
        .row("Ironic gave them up in a cleaning", "requests abort, waits for the node"),
        keeps("clean wait", json!({ "maintenance": true, "maintenance_reason": "a person works at it" }), &[]).row(
            "a maintenance in a cleaning",
            "writes the status, preparation error: the node is in maintenance (a person works at it), so Ironic does not operate \
             it; end its maintenance in Ironic, waits for the node",
        ),
        minutes(manageable(&["bios", "bmc"]), 1).row(
            "the next one would begin",
            "writes the status, preparation error: Ironic has updates of the firmware that an earlier cleaning left (bios, bmc), which \
             it goes on with in each operation; the machine is not touched until Ironic gives them up, about two hours after they \
             began, withheld: FirmwareUpdatesLeft, waits for a time",
        ),
        minutes(manageable(&["bios"]), 1)
            .components(update(URL), json!([]), Vec::new())
            .components_live()
            .machine_has("1")
            .row(
                "one that is requested again, before the volumes",
                "records UpdateOrdered, requests clean, writes the status, error cleared, waits for the node",
            ),
        minutes(manageable(&["bios"]), 1)
            .components(update(URL), update(URL), made(URL))
            .row("one that was made since", HELD),
        minutes(manageable(&["bios", "bmc"]), 130).row(
            "Ironic gives them up",
            "requests set RAID, requests clean, writes the status, error cleared, waits for the node",
        ),
    ]
}
