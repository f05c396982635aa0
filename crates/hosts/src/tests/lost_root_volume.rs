//! Ironic lost its database while a host with a software root volume is `provisioning`: the new node has no volumes.

use serde_json::{Value, json};

use super::fixture::Fixture;
use super::rows::given::{provisioning, with, written};
use crate::facts::NodeFreshness;

/// Everything but the volumes is as before: the root device is empty, because the root volume is the root device.
fn fixture(reported: Value) -> Fixture {
    let raid = json!({ "softwareRAIDVolumes": [{ "level": "1", "rootVolume": true }] });
    let node = json!({ "automated_clean": false, "raid_config": reported, "instance_info": { "root_device": { "name": null } } });
    provisioning()
        .spec(json!({ "raid": raid, "automatedCleaningMode": "disabled" }))
        .status(json!({ "provisioning": { "raid": raid, "rootDeviceHints": null } }))
        .node_with("available", with(written("a"), node))
        .live()
        .with(|fixture| fixture.validation = serde_json::from_value(json!({})).ok())
}

#[test]
fn image_is_not_deployed_to_a_guessed_disk_when_ironic_does_not_know_the_root_volume() {
    let made = json!({ "logical_disks": [{ "controller": "software", "raid_level": "1", "size_gb": "MAX", "is_root_volume": true }] });
    let ordinary = fixture(made).summary();
    assert!(ordinary.starts_with("requests active"), "{ordinary}");
    let lost = fixture(json!({})).summary();
    assert!(!lost.contains("requests active"), "{lost}");
}

/// The recorded root device may be one of the volumes, whatever the host asks for by now; and before the cleaning they are as lost.
#[test]
fn deployment_that_has_not_begun_ends_when_the_recorded_volumes_are_lost() {
    for asked in [
        json!({ "softwareRAIDVolumes": [{ "level": "1", "sizeGibibytes": 9 }] }),
        Value::Null,
    ] {
        let summary = fixture(json!({})).spec(json!({ "raid": asked })).summary();
        assert!(summary.contains("to deprovisioning"), "{asked}: {summary}");
    }
    let node = json!({ "automated_clean": false, "raid_config": {} });
    let lost = fixture(json!({})).node_with("manageable", node).live();
    assert!(lost.summary().contains("to deprovisioning"), "{}", lost.summary());
    let older = lost.freshness(NodeFreshness::Current).summary();
    assert_eq!(older, "reads Node, replan");
}

/// The record of the software volumes stays when hardware volumes take their place.
fn replaced() -> Fixture {
    let hardware = json!([{ "level": "5" }]);
    let report = json!({ "raid_interface": "redfish", "raid_config": { "logical_disks": [
        { "controller": "RAID.1", "raid_level": "5", "size_gb": 100 }] } });
    provisioning()
        .spec(json!({ "raid": { "hardwareRAIDVolumes": hardware } }))
        .status(json!({ "provisioning": { "raid": { "hardwareRAIDVolumes": hardware, "softwareRAIDVolumes": [{ "level": "1" }] } } }))
        .node_with("available", with(written("a"), report))
        .live()
        .with(|fixture| fixture.validation = serde_json::from_value(json!({})).ok())
}

#[test]
fn host_whose_software_volumes_were_replaced_by_hardware_volumes_is_deployed() {
    let summary = replaced().summary();
    assert!(summary.starts_with("requests active"), "{summary}");
}

/// The same as a loop without any delay: provisioning, deprovisioning, available, provisioning, ...
#[test]
fn lost_volumes_do_not_send_a_host_in_a_circle() {
    let granted = |fixture: Fixture| {
        fixture
            .live()
            .with(|f| f.slot = Some(metal3_ironic::slots::SlotState::Granted))
    };
    let mut fixture = granted(replaced());
    let mut states = Vec::new();
    for _ in 0..6 {
        fixture = granted(fixture.performed());
        states.push(fixture.state().to_string());
    }
    let again = states.iter().filter(|state| *state == "deprovisioning").count();
    assert!(again < 2, "{states:?}");
}
