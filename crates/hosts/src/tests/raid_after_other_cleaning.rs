//! A cleaning of other steps failed: the BIOS settings of a Go manager, or what an operator ordered.

use metal3_runtime::plan::Observed;
use serde_json::json;

use super::fixture::Fixture;
use super::rows::given::port;

#[test]
fn volumes_stay_recorded_when_a_cleaning_failed_that_did_not_touch_them() {
    let disks = json!({ "logical_disks": [
        { "controller": "software", "size_gb": "MAX", "raid_level": "1", "is_root_volume": false }] });
    let error =
        "Failed step {'interface': 'bios', 'step': 'apply_configuration', 'priority': 0}: the BMC refused the setting";
    for (raid, node) in [
        (
            json!({ "hardwareRAIDVolumes": [{ "level": "5" }] }),
            json!({ "raid_interface": "redfish" }),
        ),
        (
            json!({ "softwareRAIDVolumes": [{ "level": "1" }] }),
            // `raid.delete_configuration` would have removed the report of the volumes.
            json!({ "raid_interface": "agent", "raid_config": disks, "target_raid_config": disks }),
        ),
    ] {
        let failed = json!({ "last_error": error, "automated_clean": false, "maintenance": true,
            "maintenance_reason": error, "fault": "clean failure", "target_provision_state": "manageable" });
        let fixture = Fixture::new("preparing")
            .with(|fixture| fixture.ports = Some(vec![port()]))
            .spec(json!({ "raid": raid, "automatedCleaningMode": "disabled" }))
            .status(json!({ "provisioning": { "raid": raid } }))
            .node_with("clean failed", super::rows::given::with(failed, node.clone()))
            .live()
            .performed();
        assert_eq!(fixture.host["status"]["provisioning"]["raid"], raid);
        // The firmware objects ask for nothing any more, and the node is recovered.
        let usable = super::rows::given::with(json!({ "automated_clean": false }), node);
        let summary = fixture.node_with("manageable", usable).live().hours_later(9).summary();
        assert!(!summary.contains("requests clean"), "{summary}");
    }
}

/// The list that stays recorded of a host whose cleaning failed.
fn kept(error: Option<&str>, change: impl FnOnce(&mut Fixture)) -> bool {
    let raid = json!({ "hardwareRAIDVolumes": [{ "level": "5" }] });
    let fixture = Fixture::new("preparing")
        .spec(json!({ "raid": raid }))
        .status(json!({ "provisioning": { "raid": raid } }))
        .node_with("clean failed", json!({ "last_error": error }))
        .live()
        .with(change)
        .performed();
    fixture.host["status"]["provisioning"]["raid"]["hardwareRAIDVolumes"].is_array()
}

#[test]
fn cleaning_that_names_no_step_was_for_the_volumes_if_this_process_ordered_it() {
    let (step, none) = (
        "Clean step raid.create_configuration failed on node N. x",
        "Failed on step {}.",
    );
    let ordered = |fixture: &mut Fixture| fixture.erasing = Observed::Present(());
    assert!(!kept(Some(step), |_| {}) && !kept(Some(step), ordered));
    assert!(kept(Some(none), |_| {}) && !kept(Some(none), ordered));
}

#[test]
fn step_that_ironic_erased_is_taken_from_the_history() {
    let history = |error: &str| {
        let error = error.to_owned();
        move |fixture: &mut Fixture| fixture.history = Some(Some(error))
    };
    assert!(!kept(
        None,
        history("Clean step raid.delete_configuration failed on node N. x")
    ));
    assert!(kept(None, history("Clean step bios.factory_reset failed on node N. x")));
    let unread = Fixture::new("preparing").status(json!({ "provisioning": { "raid": { "softwareRAIDVolumes": [] } } }));
    assert_eq!(unread.node("clean failed").live().summary(), "reads History, replan");
}

/// It times out, and Ironic names no step.
#[test]
fn volumes_stay_recorded_when_a_cleaning_for_the_bios_alone_names_no_step() {
    use crate::facts::CleaningProgress;
    let none = Some("Timeout reached while cleaning the node. Failed on step {}.");
    assert!(!kept(none, |fixture| fixture.erasing = Observed::Present(())));
    assert!(kept(none, |fixture| {
        fixture.erasing = Observed::Present(());
        *fixture = fixture.clone().cleaning_order("Bios", CleaningProgress::Failed);
    }));
}

/// Ironic keeps the order of volumes whose cleaning failed, or that were removed since.
#[test]
fn volumes_are_not_recorded_by_a_cleaning_that_makes_none() {
    let raid = json!({ "hardwareRAIDVolumes": [{ "level": "5" }] });
    let disks = json!({ "logical_disks": [{ "raid_level": "5", "size_gb": "MAX" }] });
    let recorded = |interface: &str, step: &str| {
        let steps = json!([{ "interface": interface, "step": step }]);
        let node = json!({ "raid_interface": "redfish", "target_raid_config": disks, "target_provision_state": "manageable",
            "driver_internal_info": { "clean_steps": steps } });
        let fixture = Fixture::new("preparing")
            .with(|fixture| fixture.ports = Some(vec![port()]))
            .spec(json!({ "raid": raid }))
            .status(json!({ "provisioning": { "raid": {} } }))
            .node_with("clean wait", node)
            .performed();
        fixture.host["status"]["provisioning"]["raid"].clone()
    };
    assert_eq!(recorded("bios", "apply_configuration"), json!({}));
    assert_eq!(recorded("raid", "create_configuration"), raid);
}

/// Ironic fails the step that runs when it gives up an update that an earlier cleaning left.
#[test]
fn volumes_stay_recorded_only_when_the_failed_cleaning_had_updates_or_no_volumes() {
    let error = "Firmware update on node N has exceeded the overall timeout of 7200 seconds.";
    let step = |interface: &str, step: &str| {
        json!({ "interface": interface, "step": step, "args": { "settings": [
        { "component": "bios", "url": "http://f/1" }] } })
    };
    let volumes = step("raid", "create_configuration");
    let updates = step("firmware", "update");
    for (steps, is_kept) in [
        (json!([volumes]), false),
        (json!([volumes, updates]), true),
        (json!([updates]), true),
    ] {
        let internal = json!({ "clean_steps": steps });
        let found = kept(Some(error), |fixture| {
            if let Some(Some((node, _))) = &mut fixture.node {
                node["driver_internal_info"] = internal;
            }
        });
        assert_eq!(found, is_kept, "{steps}");
    }
}
