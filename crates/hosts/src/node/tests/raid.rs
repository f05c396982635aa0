//! RAID volumes: what is wanted, and the cleaning that makes it.

use metal3_api::metal3::v1alpha1::{AutomatedCleaningMode, BareMetalHost};
use metal3_ironic::model::node::Node;
use serde_json::{Value, json};

use super::super::BmcEndpoint;
use super::super::raid::{self, FailedCleaning, RaidChange};
use super::{InvalidHost, settings, with_status};
use crate::tests::fixture::node;

const BMC: &str = "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1";

fn mirror() -> Value {
    json!([{ "level": "1", "sizeGibibytes": 50, "rootVolume": true,
        "physicalDisks": [{ "deviceName": "/dev/sda" }, { "serialNumber": "s2" }] }])
}

/// Software volumes in Ironic's record.
fn disks(volumes: &Value) -> Value {
    let volumes = volumes.as_array().cloned().unwrap_or_default();
    let disk = |volume: &Value| json!({ "controller": "software", "raid_level": volume["level"], "size_gb": 1 });
    json!({ "logical_disks": volumes.iter().map(disk).collect::<Vec<_>>() })
}

/// The cleaning of a node that has these orders, and the software volumes that are recorded.
fn change_at(
    address: &str,
    spec: &Value,
    recorded: &Value,
    ordered: &Value,
) -> Result<Option<RaidChange>, InvalidHost> {
    let made = disks(&recorded["softwareRAIDVolumes"]);
    let node = node_with(&json!({ "target_raid_config": ordered, "raid_config": made }));
    let profile = BmcEndpoint::of(address, &settings()).unwrap().profile();
    raid::change(&host_with(spec, recorded), &profile, &node)
}

fn host_with(spec: &Value, recorded: &Value) -> BareMetalHost {
    with_status(
        json!({ "raid": spec }),
        &json!({ "raid": recorded, "state": "preparing" }),
    )
}

fn node_with(change: &Value) -> Node {
    let mut shown = node("manageable");
    super::merge(&mut shown, change);
    serde_json::from_value(shown).unwrap()
}

fn change(spec: &Value, recorded: &Value) -> Option<RaidChange> {
    change_at(BMC, spec, recorded, &json!({})).unwrap()
}

/// The steps, as one text.
fn steps(change: Option<&RaidChange>) -> String {
    let all = change.iter().flat_map(|change| &change.steps);
    all.map(|step| format!("{step:?}")).collect::<Vec<_>>().join(" ")
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn each_difference_has_its_cleaning() {
    const NEW_SOFTWARE: &str = "raid.delete_configuration deploy.erase_devices_metadata raid.create_configuration";
    const NO_SOFTWARE: &str = "raid.delete_configuration deploy.erase_devices_metadata";
    const NEW_HARDWARE: &str = "raid.delete_configuration raid.create_configuration";
    let (soft, hard) = (mirror(), json!([{ "level": "5" }]));
    let software = |volumes: &Value| json!({ "softwareRAIDVolumes": volumes });
    let hardware = |volumes: &Value| json!({ "hardwareRAIDVolumes": volumes });
    for (given, spec, recorded, expected) in [
        ("nothing asked", Value::Null, Value::Null, ""),
        ("an empty wish", json!({}), Value::Null, ""),
        ("software volumes", software(&soft), Value::Null, NEW_SOFTWARE),
        ("the same", software(&soft), software(&soft), ""),
        (
            "others",
            software(&json!([{ "level": "1" }])),
            software(&soft),
            NEW_SOFTWARE,
        ),
        ("none any more", software(&json!([])), software(&soft), NO_SOFTWARE),
        ("the wish is removed", Value::Null, software(&soft), NO_SOFTWARE),
        ("none, and none before", software(&json!([])), Value::Null, ""),
        ("after a failure", software(&soft), json!({}), NEW_SOFTWARE),
        ("hardware volumes", hardware(&hard), Value::Null, NEW_HARDWARE),
        ("the same hardware", hardware(&hard), hardware(&hard), ""),
        (
            "no hardware",
            hardware(&json!([])),
            hardware(&hard),
            "raid.delete_configuration",
        ),
        (
            "no hardware, unknown before",
            hardware(&json!([])),
            Value::Null,
            "raid.delete_configuration",
        ),
        ("the wish for hardware is removed", Value::Null, hardware(&hard), ""),
        (
            "software instead of hardware",
            software(&soft),
            hardware(&hard),
            NEW_SOFTWARE,
        ),
        (
            "hardware, and no software any more",
            json!({ "hardwareRAIDVolumes": hard, "softwareRAIDVolumes": [] }),
            software(&soft),
            NO_SOFTWARE,
        ),
        (
            "software next to an empty list of hardware",
            json!({ "hardwareRAIDVolumes": [], "softwareRAIDVolumes": soft }),
            Value::Null,
            NEW_SOFTWARE,
        ),
        (
            "which is left alone",
            json!({ "hardwareRAIDVolumes": [], "softwareRAIDVolumes": soft }),
            json!({ "hardwareRAIDVolumes": [], "softwareRAIDVolumes": soft }),
            "",
        ),
        (
            "text that says nothing",
            hardware(&json!([{ "level": "5", "name": "", "controller": "" }])),
            hardware(&hard),
            "",
        ),
        (
            "then hardware",
            json!({ "hardwareRAIDVolumes": hard, "softwareRAIDVolumes": [] }),
            software(&json!([])),
            NEW_HARDWARE,
        ),
    ] {
        assert_eq!(steps(change(&spec, &recorded).as_ref()), expected, "{given}");
    }
}

#[test]
fn what_is_recorded_ends_the_differences_one_cleaning_after_the_other() {
    let spec = json!({ "hardwareRAIDVolumes": [{ "level": "5" }], "softwareRAIDVolumes": [] });
    let mut recorded = json!({ "softwareRAIDVolumes": mirror() });
    let mut cleanings = 0;
    while let Some(change) = change(&spec, &recorded) {
        assert!(raid::differ(&host_with(&spec, &recorded)));
        recorded = serde_json::to_value(change.recorded).unwrap();
        cleanings += 1;
    }
    assert!(!raid::differ(&host_with(&spec, &recorded)));
    assert_eq!((cleanings, recorded), (2, spec));
}

/// The next list of software volumes would be taken for another one.
#[test]
fn hardware_keeps_the_record_of_software_that_is_left_alone() {
    let (spec, recorded) = (
        json!({ "hardwareRAIDVolumes": [{ "level": "5" }] }),
        json!({ "softwareRAIDVolumes": mirror() }),
    );
    let recorded = serde_json::to_value(change(&spec, &recorded).unwrap().recorded).unwrap();
    assert_eq!(recorded["softwareRAIDVolumes"], mirror());
    assert!(!raid::differ(&host_with(&spec, &recorded)));
    assert!(raid::differ(&host_with(&Value::Null, &recorded)));
}

/// A new node of Ironic has no volumes, whatever the disks hold.
#[test]
fn volumes_that_ironic_does_not_know_are_made_again_unless_the_disks_are_kept() {
    let asked = json!({ "softwareRAIDVolumes": mirror() });
    let profile = BmcEndpoint::of(BMC, &settings()).unwrap().profile();
    let (new, known) = (
        node_with(&json!({})),
        node_with(&json!({ "raid_config": disks(&mirror()) })),
    );
    let mut host = host_with(&asked, &asked);
    assert!(raid::are_lost(&host, &new) && !raid::are_lost(&host, &known));
    assert_eq!(raid::change(&host, &profile, &known).unwrap(), None);
    assert!(raid::change(&host, &profile, &new).unwrap().is_some());
    host.spec.automated_cleaning_mode = Some(AutomatedCleaningMode::Disabled);
    let error = raid::change(&host, &profile, &new).unwrap_err().to_string();
    assert!(error.contains("remove the list and set rootDeviceHints"), "{error}");
    // The disks are not erased by that advice.
    host.spec.raid = None;
    assert_eq!(raid::change(&host, &profile, &new).unwrap(), None);
    host.status.provisioning.raid = raid::settled(&host);
    assert!(!raid::differ(&host));
}

/// A failed removal is repeated, although nothing is recorded of the volumes.
#[test]
fn volumes_may_exist_while_ironic_has_their_order() {
    let ordered = json!({ "logical_disks": [{ "controller": "software", "raid_level": "1", "size_gb": "MAX" }] });
    for (spec, recorded) in [
        (Value::Null, json!({})),
        (json!({ "softwareRAIDVolumes": [] }), json!({})),
    ] {
        let removal = change_at(BMC, &spec, &recorded, &ordered).unwrap();
        assert!(
            steps(removal.as_ref()).starts_with("raid.delete_configuration"),
            "{spec}"
        );
        assert_eq!(change_at(BMC, &spec, &recorded, &json!({})).unwrap(), None, "{spec}");
    }
}

#[test]
fn volumes_are_ordered_in_the_terms_of_ironic() {
    let ordered = |spec: Value| change(&spec, &Value::Null).unwrap();
    let software = ordered(json!({ "softwareRAIDVolumes": mirror() }));
    assert_eq!(software.interface, Some("agent"));
    assert_eq!(
        Value::from(software.logical_disks),
        json!([{ "controller": "software", "size_gb": 50, "raid_level": "1", "is_root_volume": true,
            "physical_disks": [{ "name": "s== /dev/sda" }, { "serial": "s== s2" }] }])
    );
    let hardware = ordered(json!({ "hardwareRAIDVolumes": [
        { "level": "1+0", "name": "data", "sizeGibibytes": 9, "rotational": false, "numberOfPhysicalDisks": 2,
            "controller": "card.1", "physicalDisks": ["d1", "d2"] },
        { "level": "0", "rotational": true },
    ] }));
    assert_eq!(hardware.interface, Some("redfish"));
    assert_eq!(
        Value::from(hardware.logical_disks),
        json!([
            { "size_gb": 9, "raid_level": "1+0", "volume_name": "data", "controller": "card.1", "disk_type": "ssd",
                "number_of_physical_disks": 2, "physical_disks": ["d1", "d2"] },
            { "size_gb": "MAX", "raid_level": "0", "disk_type": "hdd" },
        ])
    );
}

#[test]
fn volumes_that_cannot_be_made_are_named_with_their_cure() {
    let hardware = |volumes: Value| json!({ "hardwareRAIDVolumes": volumes });
    let software = |volumes: Value| json!({ "softwareRAIDVolumes": volumes });
    let ipmi = "ipmi://192.0.2.10";
    for (address, spec, field) in [
        (
            ipmi,
            hardware(json!([{ "level": "1" }])),
            "spec.raid.hardwareRAIDVolumes: ",
        ),
        (
            BMC,
            hardware(json!([{ "level": "1", "name": "a" }, { "level": "0", "name": "a" }])),
            "spec.raid.hardwareRAIDVolumes[1].name: ",
        ),
        (
            BMC,
            hardware(
                json!([{ "level": "1", "physicalDisks": ["a", "b"], "numberOfPhysicalDisks": 3, "controller": "c" }]),
            ),
            "spec.raid.hardwareRAIDVolumes[0].numberOfPhysicalDisks: ",
        ),
        (
            BMC,
            hardware(json!([{ "level": "1", "physicalDisks": ["a", "b"] }])),
            "spec.raid.hardwareRAIDVolumes[0].controller: ",
        ),
        (
            BMC,
            hardware(json!([{ "level": "1", "name": "a\nb" }])),
            "spec.raid.hardwareRAIDVolumes[0].name has a control character",
        ),
        (
            BMC,
            hardware(json!([{ "level": "1", "physicalDisks": ["a\u{7}"], "controller": "c" }])),
            "spec.raid.hardwareRAIDVolumes[0].physicalDisks has a control character",
        ),
        (
            BMC,
            software(json!([{ "level": "0" }])),
            "spec.raid.softwareRAIDVolumes[0].level: ",
        ),
        (
            BMC,
            software(json!([{ "level": "1", "physicalDisks": [{ "model": "a\tb" }, {}] }])),
            "spec.raid.softwareRAIDVolumes[0].physicalDisks has a control character",
        ),
    ] {
        let error = change_at(address, &spec, &Value::Null, &json!({})).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(field), "{text}");
        assert!(field.starts_with(error.field()), "{field}: {}", error.field());
    }
    // Nothing can be removed from a BMC that makes no volumes.
    assert_eq!(
        change_at(ipmi, &hardware(json!([])), &Value::Null, &json!({})).unwrap(),
        None
    );
}

/// The host may ask for something else by now.
#[test]
fn failed_cleaning_keeps_what_it_did_not_change() {
    let (hardware, software) = (json!([{ "level": "5" }]), mirror());
    let recorded = json!({ "hardwareRAIDVolumes": hardware, "softwareRAIDVolumes": software });
    let ordered = disks(&software);
    for (interface, ordered, kept) in [
        ("agent", &ordered, json!({ "hardwareRAIDVolumes": hardware })),
        ("redfish", &ordered, json!({ "softwareRAIDVolumes": software })),
        // A new node: nothing was cleaned.
        ("agent", &json!({}), recorded.clone()),
    ] {
        let node = node_with(&json!({ "raid_interface": interface, "target_raid_config": ordered }));
        for spec in [
            Value::Null,
            json!({ "hardwareRAIDVolumes": [] }),
            json!({ "softwareRAIDVolumes": software }),
        ] {
            let mut host = host_with(&spec, &recorded);
            for _ in 0..2 {
                host.status.provisioning.raid = raid::after_failure(&host, &node, FailedCleaning::Volumes);
                let found = serde_json::to_value(&host.status.provisioning.raid).unwrap();
                assert_eq!(found, kept, "{interface}, {spec}");
            }
        }
    }
    let host = host_with(&json!({ "softwareRAIDVolumes": mirror() }), &Value::Null);
    assert_eq!(
        raid::after_failure(&host, &node_with(&json!({})), FailedCleaning::Volumes),
        None
    );
}
