//! RAID volumes in Ironic's terms.

use metal3_api::metal3::v1alpha1::{HardwareRaidVolume, SoftwareRaidLevel, SoftwareRaidVolume};
use serde_json::{Map, Value, json};

use super::hints;
use super::invalid_host::InvalidHost;
use super::raid::invalid;

/// The controller of software volumes.
pub(super) const KERNEL: &str = "software";
/// More than any controller makes, of more disks than any has. The status repeats the list.
const MOST_VOLUMES: usize = 64;
const MOST_DISKS: usize = 256;

fn size(gibibytes: Option<i64>) -> Value {
    gibibytes.map_or_else(|| "MAX".into(), Value::from)
}

/// The members that have a value.
fn disk<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let present = |(key, value): (&str, Option<Value>)| Some((key.to_owned(), value?));
    Value::Object(members.into_iter().filter_map(present).collect::<Map<_, _>>())
}

/// The volumes of the BMC.
pub(super) fn hardware_disks(volumes: &[HardwareRaidVolume]) -> Result<Vec<Value>, InvalidHost> {
    if volumes.len() > MOST_VOLUMES {
        let problem = "it has more than 64 volumes, which no controller makes; ask for fewer";
        return Err(invalid("spec.raid.hardwareRAIDVolumes".to_owned(), problem));
    }
    let mut disks = Vec::new();
    for (index, volume) in volumes.iter().enumerate() {
        check_hardware(volumes, index, volume)?;
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty()).map(Value::from);
        let kind = |rotational| if rotational { "hdd" } else { "ssd" };
        let listed = (!volume.physical_disks.is_empty()).then(|| json!(volume.physical_disks));
        disks.push(disk([
            ("size_gb", Some(size(volume.size_gibibytes))),
            ("raid_level", Some(json!(volume.level))),
            ("volume_name", text(&volume.name)),
            ("controller", text(&volume.controller)),
            ("disk_type", volume.rotational.map(kind).map(Value::from)),
            (
                "number_of_physical_disks",
                volume.number_of_physical_disks.map(Value::from),
            ),
            ("physical_disks", listed),
        ]));
    }
    Ok(disks)
}

/// What the schema of the API does not check.
fn check_hardware(
    volumes: &[HardwareRaidVolume],
    index: usize,
    volume: &HardwareRaidVolume,
) -> Result<(), InvalidHost> {
    let at = |member: &str| format!("spec.raid.hardwareRAIDVolumes[{index}].{member}");
    let name = volume.name.as_deref().filter(|name| !name.is_empty());
    let mut before = volumes.iter().take(index);
    if name.is_some() && before.any(|before| before.name.as_deref() == name) {
        let problem = "another volume of this host has the same name; give each volume its own";
        return Err(invalid(at("name"), problem));
    }
    let named = [("name", name), ("controller", volume.controller.as_deref())];
    let listed = volume.physical_disks.iter();
    let listed = listed.map(|disk| ("physicalDisks", Some(disk.as_str())));
    for (member, text) in named.into_iter().chain(listed) {
        if text.is_some_and(|text| text.chars().any(char::is_control)) {
            return Err(InvalidHost::ControlCharacter { field: at(member) });
        }
    }
    let (disks, count) = (volume.physical_disks.len(), volume.number_of_physical_disks);
    if disks > MOST_DISKS {
        return Err(invalid(at("physicalDisks"), "it names more than 256 disks; name fewer"));
    }
    if disks > 0 && count.is_some_and(|count| usize::try_from(count) != Ok(disks)) {
        let problem = "it is not the number of physicalDisks; correct it, or remove it";
        return Err(invalid(at("numberOfPhysicalDisks"), problem));
    }
    if disks > 0 && volume.controller.as_deref().is_none_or(str::is_empty) {
        let problem = "it is required with physicalDisks; set it to the controller of these disks";
        return Err(invalid(at("controller"), problem));
    }
    Ok(())
}

/// The volumes of the kernel.
pub(super) fn software_disks(volumes: &[SoftwareRaidVolume]) -> Result<Vec<Value>, InvalidHost> {
    let at = |index: usize, member: &str| format!("spec.raid.softwareRAIDVolumes[{index}].{member}");
    let first = volumes.first();
    if first.is_some_and(|first| first.level != SoftwareRaidLevel::Raid1) {
        let problem = "the first software volume must be of level 1, from which the machine boots; set it to \"1\"";
        return Err(invalid(at(0, "level"), problem));
    }
    let mut disks = Vec::new();
    for (index, volume) in volumes.iter().enumerate() {
        let mut physical = Vec::new();
        for hint in &volume.physical_disks {
            let hint = hints::to_ironic(hint).map_err(|_| InvalidHost::ControlCharacter {
                field: at(index, "physicalDisks"),
            })?;
            physical.push(Value::Object(hint));
        }
        disks.push(disk([
            ("controller", Some(KERNEL.into())),
            ("size_gb", Some(size(volume.size_gibibytes))),
            ("raid_level", Some(json!(volume.level))),
            ("is_root_volume", Some((volume.root_volume == Some(true)).into())),
            ("physical_disks", (!physical.is_empty()).then(|| physical.into())),
        ]));
    }
    Ok(disks)
}
