//! RAID volumes: which ones a host asks for, and the cleaning steps that make them.
//!
//! `status.provisioning.raid` records the volumes that were ordered last. An absent list leaves volumes alone, an empty
//! one removes them. Volumes of the kernel (software) are made by the agent, others by the BMC.

use metal3_api::metal3::v1alpha1::{
    BareMetalHost, HardwareRaidVolume, RaidConfig, SoftwareRaidLevel, SoftwareRaidVolume,
};
use metal3_domain::bmc::Profile;
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::node::Node;
use serde_json::{Map, Value, json};

use super::hints;
use super::invalid_host::InvalidHost;

/// The controller of software volumes, in Ironic.
const KERNEL: &str = "software";
/// The RAID interface of software volumes.
const AGENT: &str = "agent";
/// The RAID interface of a BMC that makes no volumes.
const NONE: &str = "no-raid";

/// A cleaning that changes the volumes.
#[derive(Debug, Clone, PartialEq)]
pub struct RaidChange {
    /// The RAID interface that the node needs for it. `None`: the one it has.
    pub interface: Option<&'static str>,
    /// The volumes to create, in Ironic's terms. Empty: none.
    pub logical_disks: Vec<Value>,
    /// The cleaning steps.
    pub steps: Vec<Step>,
    /// What is recorded once it is ordered. Software comes first, and hardware in a second cleaning.
    pub recorded: RaidConfig,
}

/// The volumes that the host asks for. `None`: it never asked for any.
#[must_use]
pub fn wanted(host: &BareMetalHost) -> Option<RaidConfig> {
    let asked = host.spec.raid.as_ref();
    let asked = asked.filter(|raid| raid.hardware_raid_volumes.is_some() || raid.software_raid_volumes.is_some());
    match (asked, &host.status.provisioning.raid) {
        (Some(asked), _) => Some(asked.clone()),
        (None, None) => None,
        // Software volumes end with the wish for them. Hardware volumes stay until an empty list removes them.
        (None, Some(recorded)) => Some(RaidConfig {
            hardware_raid_volumes: recorded.hardware_raid_volumes.clone(),
            software_raid_volumes: Some(Vec::new()),
        }),
    }
}

/// What stays recorded after a cleaning that failed: it may have removed any volume that it should have changed.
#[must_use]
pub fn after_failure(host: &BareMetalHost) -> Option<RaidConfig> {
    let recorded = host.status.provisioning.raid.as_ref()?;
    let changes_hardware = wanted(host).is_some_and(|wanted| wanted.hardware_raid_volumes.is_some());
    let is_kept = !changes_hardware || host.spec.raid.is_none();
    Some(RaidConfig {
        hardware_raid_volumes: recorded.hardware_raid_volumes.clone().filter(|_| is_kept),
        software_raid_volumes: None,
    })
}

/// What stays recorded when the disks were cleaned, or are not this controller's any more: hardware volumes.
#[must_use]
pub fn without_software(recorded: Option<&RaidConfig>) -> Option<RaidConfig> {
    recorded.map(|recorded| RaidConfig {
        software_raid_volumes: None,
        ..recorded.clone()
    })
}

fn has_software(raid: Option<&RaidConfig>) -> bool {
    let volumes = raid.and_then(|raid| raid.software_raid_volumes.as_ref());
    volumes.is_some_and(|volumes| !volumes.is_empty())
}

/// Whether Ironic's order for the node still names software volumes: it is cleared after their removal, so they may exist.
#[must_use]
pub fn may_have_software(node: &Node) -> bool {
    let disks = node.target_raid_config.get("logical_disks").and_then(Value::as_array);
    disks.is_some_and(|disks| disks.iter().any(|disk| disk.get("controller") == Some(&KERNEL.into())))
}

/// Whether Ironic's order for the node is for these volumes.
#[must_use]
pub fn is_ordered(node: &Node, logical_disks: &[Value]) -> bool {
    node.target_raid_config
        .get("logical_disks")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        == Some(logical_disks)
}

/// The cleaning that makes the wanted volumes of those recorded. `None`: there is nothing to do.
///
/// # Errors
/// When a volume cannot be made.
pub fn change(host: &BareMetalHost, profile: &Profile, node: &Node) -> Result<Option<RaidChange>, InvalidHost> {
    let Some(wanted) = wanted(host) else { return Ok(None) };
    let recorded = host.status.provisioning.raid.clone().unwrap_or_default();
    let made_by = profile.interfaces.raid;
    let hardware = match &wanted.hardware_raid_volumes {
        // Nothing can be removed either.
        Some(volumes) if volumes.is_empty() && made_by == Some(NONE) => None,
        Some(volumes) if recorded.hardware_raid_volumes.as_ref() != Some(volumes) => Some(volumes),
        _ => None,
    };
    if let Some(volumes) = &wanted.software_raid_volumes {
        let is_made = recorded.software_raid_volumes.as_ref() == Some(volumes);
        // differs: `host-raid-removed`. The Go manager does not repeat a failed removal.
        // Not recorded after a failure; before the first volumes there is nothing to remove.
        let is_nothing = volumes.is_empty() && !has_software(Some(&recorded)) && !may_have_software(node);
        if !is_made && !is_nothing {
            let kept = if hardware.is_some() { recorded } else { wanted.clone() };
            return Ok(Some(RaidChange {
                interface: Some(AGENT),
                logical_disks: software_disks(volumes)?,
                // The rest of the metadata would make the kernel assemble former volumes again.
                steps: steps(
                    &["raid.delete_configuration", "deploy.erase_devices_metadata"],
                    volumes.is_empty(),
                ),
                recorded: RaidConfig {
                    hardware_raid_volumes: kept.hardware_raid_volumes,
                    software_raid_volumes: wanted.software_raid_volumes,
                },
            }));
        }
    }
    let Some(volumes) = hardware else { return Ok(None) };
    if made_by == Some(NONE) {
        return Err(InvalidHost::Raid {
            field: "spec.raid.hardwareRAIDVolumes".to_owned(),
            problem: "the BMC of this host makes no volumes; use softwareRAIDVolumes, or the address of a BMC that does",
        });
    }
    Ok(Some(RaidChange {
        interface: made_by,
        logical_disks: hardware_disks(volumes)?,
        steps: steps(&["raid.delete_configuration"], volumes.is_empty()),
        recorded: wanted,
    }))
}

/// The steps of a removal, and that of a creation.
fn steps(removal: &[&str], removes_only: bool) -> Vec<Step> {
    let creation = (!removes_only).then_some("raid.create_configuration");
    let all = removal.iter().copied().chain(creation);
    all.filter_map(|name| name.split_once('.'))
        .map(|(interface, step)| Step {
            interface: interface.to_owned(),
            step: step.to_owned(),
            args: Map::new(),
            priority: None,
        })
        .collect()
}

fn size(gibibytes: Option<i64>) -> Value {
    gibibytes.map_or_else(|| "MAX".into(), Value::from)
}

/// The volumes of the BMC, in Ironic's terms.
fn hardware_disks(volumes: &[HardwareRaidVolume]) -> Result<Vec<Value>, InvalidHost> {
    let at = |index: usize, member: &str| format!("spec.raid.hardwareRAIDVolumes[{index}].{member}");
    let mut disks = Vec::new();
    for (index, volume) in volumes.iter().enumerate() {
        let name = volume.name.as_deref().filter(|name| !name.is_empty());
        let is_named_before = |before: &HardwareRaidVolume| name.is_some() && before.name.as_deref() == name;
        if volumes.iter().take(index).any(is_named_before) {
            let problem = "another volume of this host has the same name; give each volume its own";
            return Err(InvalidHost::Raid {
                field: at(index, "name"),
                problem,
            });
        }
        let named = [("name", name), ("controller", volume.controller.as_deref())];
        let disk_names = volume
            .physical_disks
            .iter()
            .map(|disk| ("physicalDisks", Some(disk.as_str())));
        for (member, text) in named.into_iter().chain(disk_names) {
            if text.is_some_and(|text| text.chars().any(char::is_control)) {
                return Err(InvalidHost::ControlCharacter {
                    field: at(index, member),
                });
            }
        }
        let disks_of = volume.physical_disks.len();
        let count = volume.number_of_physical_disks;
        if disks_of > 0 && count.is_some_and(|count| usize::try_from(count) != Ok(disks_of)) {
            let problem = "it is not the number of physicalDisks; correct it, or remove it";
            return Err(InvalidHost::Raid {
                field: at(index, "numberOfPhysicalDisks"),
                problem,
            });
        }
        let controller = volume.controller.as_deref().filter(|text| !text.is_empty());
        if disks_of > 0 && controller.is_none() {
            let problem = "it is required with physicalDisks; set it to the controller of these disks";
            return Err(InvalidHost::Raid {
                field: at(index, "controller"),
                problem,
            });
        }
        let mut disk = json!({ "size_gb": size(volume.size_gibibytes), "raid_level": volume.level });
        let disk_type = volume
            .rotational
            .map(|rotational| if rotational { "hdd" } else { "ssd" });
        let listed = (disks_of > 0).then(|| json!(volume.physical_disks));
        for (key, value) in [
            ("volume_name", name.map(Value::from)),
            ("controller", controller.map(Value::from)),
            ("disk_type", disk_type.map(Value::from)),
            ("number_of_physical_disks", count.map(Value::from)),
            ("physical_disks", listed),
        ] {
            if let Some(value) = value {
                disk[key] = value;
            }
        }
        disks.push(disk);
    }
    Ok(disks)
}

/// The volumes of the kernel, in Ironic's terms.
fn software_disks(volumes: &[SoftwareRaidVolume]) -> Result<Vec<Value>, InvalidHost> {
    let at = |index: usize, member: &str| format!("spec.raid.softwareRAIDVolumes[{index}].{member}");
    if volumes
        .first()
        .is_some_and(|first| first.level != SoftwareRaidLevel::Raid1)
    {
        let problem = "the first software volume must be of level 1, from which the machine boots; set it to \"1\"";
        return Err(InvalidHost::Raid {
            field: at(0, "level"),
            problem,
        });
    }
    let mut disks = Vec::new();
    for (index, volume) in volumes.iter().enumerate() {
        let mut disk = json!({
            "controller": KERNEL, "size_gb": size(volume.size_gibibytes), "raid_level": volume.level,
        });
        let mut physical = Vec::new();
        for hint in &volume.physical_disks {
            let hint = hints::to_ironic(hint).map_err(|_| InvalidHost::ControlCharacter {
                field: at(index, "physicalDisks"),
            })?;
            physical.push(Value::Object(hint));
        }
        if !physical.is_empty() {
            disk["physical_disks"] = physical.into();
        }
        if volume.root_volume == Some(true) {
            disk["is_root_volume"] = true.into();
        }
        disks.push(disk);
    }
    Ok(disks)
}
