//! Profiles and root devices.

use metal3_api::metal3::v1alpha1::HardwareProfile;
use serde_json::json;

use super::super::profile;
use super::{VIRTUAL_MEDIA, bmc, host};

#[test]
fn a_profile_is_chosen_by_status_spec_and_address_and_never_changes() {
    let rows = [
        (json!({"bmc": bmc(VIRTUAL_MEDIA)}), None, HardwareProfile::Unknown),
        (
            json!({"bmc": bmc("libvirt://192.0.2.1")}),
            None,
            HardwareProfile::Libvirt,
        ),
        (
            json!({"bmc": bmc("libvirt://192.0.2.1"), "hardwareProfile": "dell"}),
            None,
            HardwareProfile::Dell,
        ),
        (
            json!({"hardwareProfile": "dell"}),
            Some("empty"),
            HardwareProfile::Empty,
        ),
    ];
    for (spec, in_force, expected) in rows {
        let mut host = host(spec.clone());
        host.status.hardware_profile = in_force.map(str::to_owned);
        assert_eq!(profile::choose(&host), Ok(expected), "{spec}");
    }
}

#[test]
fn unknown_profile_is_rejected_only_when_needed() {
    let mut spec = json!({"hardwareProfile": "antique"});
    let invalid = profile::choose(&host(spec.clone())).unwrap_err();
    assert_eq!(invalid.field(), "spec.hardwareProfile");
    assert!(invalid.to_string().contains("\"antique\"; set spec.rootDeviceHints"));
    let mut kept = host(json!({}));
    kept.status.hardware_profile = Some("antique".to_owned());
    assert_eq!(profile::choose(&kept).unwrap_err().field(), "status.hardwareProfile");
    spec["rootDeviceHints"] = json!({"model": "x"});
    let hints = profile::root_device(&host(spec)).unwrap().unwrap();
    assert_eq!(hints.model.as_deref(), Some("x"));
}

#[test]
fn root_device_hints_exist_unless_raid_defines_the_root_volume() {
    let device = |host| profile::root_device(&host).unwrap();
    let by_profile = device(host(json!({"bmc": bmc(VIRTUAL_MEDIA)}))).unwrap();
    assert_eq!(by_profile.device_name.as_deref(), Some("/dev/sda"));
    let disks = json!([{"model": "a"}, {"model": "b"}]);
    let made = |root: bool| json!({"raid": {"softwareRAIDVolumes": [{"level": "1", "physicalDisks": disks, "rootVolume": root}]}});
    assert_eq!(device(host(made(true))), None);
    assert!(device(host(made(false))).is_some());
}
