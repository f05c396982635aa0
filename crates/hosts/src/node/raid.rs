//! RAID volumes: which ones a host asks for, and the cleaning steps that make them.
//!
//! `status.provisioning.raid` records the volumes that were ordered last. An absent list leaves volumes alone, an empty
//! one removes them. Volumes of the kernel (software) are made by the agent, others by the BMC. Which software volumes
//! exist, the agent reports to Ironic.

use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareRaidVolume, RaidConfig, SoftwareRaidVolume};
use metal3_domain::bmc::Profile;
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::Fields;
use metal3_ironic::model::node::Node;
use serde::Serialize;
use serde_json::{Map, Value};

use super::cleaning::is_cleaned;
use super::invalid_host::InvalidHost;
use super::logical_disks::{KERNEL, hardware_disks, software_disks};

const INTERFACE: &str = "raid";
const CREATION: &str = "create_configuration";
/// The RAID interface of software volumes.
const AGENT: &str = "agent";

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

/// The lists that are made: hardware and software. `None`: left alone.
type Lists = (Option<Vec<HardwareRaidVolume>>, Option<Vec<SoftwareRaidVolume>>);

/// What the host asks for, by list.
fn wanted(host: &BareMetalHost) -> Lists {
    let asked = host.spec.raid.as_ref();
    let asked = asked.filter(|raid| raid.hardware_raid_volumes.is_some() || raid.software_raid_volumes.is_some());
    match asked {
        // Next to software volumes an empty list of hardware volumes would remove the disks below them.
        Some(asked) if has_software(Some(asked)) => (None, asked.software_raid_volumes.clone()),
        Some(asked) => (asked.hardware_raid_volumes.clone(), asked.software_raid_volumes.clone()),
        // Software volumes end with the wish for them. Hardware volumes stay until an empty list removes them.
        None if host.status.provisioning.raid.is_some() => (None, Some(Vec::new())),
        None => (None, None),
    }
}

/// Whether two lists ask for the same: empty text is none, and a volume is no root volume unless it says so.
fn is_same<T: Serialize>(one: Option<&Vec<T>>, other: Option<&Vec<T>>) -> bool {
    let normal = |list: Option<&Vec<T>>| {
        let mut list = serde_json::to_value(list).unwrap_or_default();
        normalise(&mut list);
        list
    };
    normal(one) == normal(other)
}

fn normalise(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| {
                let is_default = key == "rootVolume" && *value == Value::Bool(false);
                !(value.is_null() || value.as_str() == Some("") || is_default)
            });
            members.values_mut().for_each(normalise);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        _ => {}
    }
}

/// Whether the volumes that the host asks for are not those that were ordered last.
#[must_use]
pub fn differ(host: &BareMetalHost) -> bool {
    let (hardware, software) = wanted(host);
    let recorded = host.status.provisioning.raid.clone().unwrap_or_default();
    let other_hardware = hardware.is_some() && !is_same(hardware.as_ref(), recorded.hardware_raid_volumes.as_ref());
    let other_software = software.is_some() && !is_same(software.as_ref(), recorded.software_raid_volumes.as_ref());
    other_hardware || other_software
}

/// Whether the node lacks software volumes that the host asks for and that were made: Ironic knows it as a new one.
#[must_use]
pub fn are_lost(host: &BareMetalHost, node: &Node) -> bool {
    let (_, software) = wanted(host);
    let Some(volumes) = software.filter(|volumes| !volumes.is_empty()) else {
        return false;
    };
    let recorded = host.status.provisioning.raid.as_ref();
    let recorded = recorded.and_then(|raid| raid.software_raid_volumes.as_ref());
    is_same(Some(&volumes), recorded) && !has_made(node, &volumes)
}

/// Whether the node lacks software volumes that were made: the recorded root device may be one of them. Hardware volumes in
/// their place are what was asked for, once they are made; then there is nothing to prepare.
#[must_use]
pub fn lacks_recorded(host: &BareMetalHost, node: &Node) -> bool {
    let (_, software) = wanted(host);
    if software.is_none() && !differ(host) {
        return false;
    }
    let recorded = host.status.provisioning.raid.as_ref();
    let recorded = recorded.and_then(|raid| raid.software_raid_volumes.as_ref());
    recorded.is_some_and(|volumes| !volumes.is_empty() && !has_made(node, volumes))
}

/// What is recorded when nothing has to be done.
#[must_use]
pub fn settled(host: &BareMetalHost) -> Option<RaidConfig> {
    let (hardware, software) = wanted(host);
    let recorded = host.status.provisioning.raid.clone();
    if hardware.is_none() && software.is_none() {
        return recorded;
    }
    let recorded = recorded.unwrap_or_default();
    Some(RaidConfig {
        hardware_raid_volumes: hardware.or(recorded.hardware_raid_volumes),
        software_raid_volumes: software.or(recorded.software_raid_volumes),
    })
}

/// What a cleaning that failed was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedCleaning {
    /// For the volumes.
    Volumes,
    /// For something else: settings of the BIOS, or what an operator ordered.
    Other,
    /// Nothing says it.
    Unknown,
}

/// What stays recorded after a cleaning that failed: not the volumes that it should have changed. Which these are, the RAID
/// interface says, whatever the host asks for by now. Without an order Ironic never had software volumes of this host; with one,
/// what Ironic reports is what the disks have.
#[must_use]
pub fn after_failure(host: &BareMetalHost, node: &Node, failed: FailedCleaning) -> Option<RaidConfig> {
    let recorded = host.status.provisioning.raid.clone()?;
    let was_software = was_software(node);
    let is_reported = failed != FailedCleaning::Volumes && reports_order(node);
    let keeps_software = !was_software || !may_have_software(node) || is_reported;
    let keeps_hardware = was_software || failed != FailedCleaning::Volumes;
    Some(RaidConfig {
        hardware_raid_volumes: recorded.hardware_raid_volumes.filter(|_| keeps_hardware),
        software_raid_volumes: recorded.software_raid_volumes.filter(|_| keeps_software),
    })
}

/// Whether the volumes that the host asks for are hardware volumes that are recorded, and the last ones that were made: Ironic does
/// not report which exist.
#[must_use]
pub fn relies_on_record_of_hardware(host: &BareMetalHost, node: &Node) -> bool {
    wanted(host).0.is_some() && !differ(host) && !was_software(node)
}

/// Whether the last cleaning that changed volumes was for software volumes.
fn was_software(node: &Node) -> bool {
    node.raid_interface.as_deref() == Some(AGENT)
}

/// Whether the agent reported the software volumes that were ordered last.
fn reports_order(node: &Node) -> bool {
    let key = |disk: &Value| (disk.get("raid_level").cloned(), disk.get("size_gb").cloned());
    software_of(&node.raid_config)
        .map(key)
        .eq(software_of(&node.target_raid_config).map(key))
}

/// What stays recorded when the disks were cleaned: software volumes that are asked for are made again.
#[must_use]
pub fn after_cleaning(host: &BareMetalHost) -> Option<RaidConfig> {
    let recorded = host.status.provisioning.raid.clone()?;
    let (_, software) = wanted(host);
    let is_asked = software.is_some_and(|volumes| !volumes.is_empty());
    Some(RaidConfig {
        software_raid_volumes: recorded.software_raid_volumes.filter(|_| !is_asked),
        ..recorded
    })
}

/// What stays recorded of a machine that another one prepares: nothing that would be removed later.
#[must_use]
pub fn of_external(recorded: Option<&RaidConfig>) -> Option<RaidConfig> {
    recorded.map(|recorded| RaidConfig {
        software_raid_volumes: Some(Vec::new()),
        ..recorded.clone()
    })
}

fn has_software(raid: Option<&RaidConfig>) -> bool {
    let volumes = raid.and_then(|raid| raid.software_raid_volumes.as_ref());
    volumes.is_some_and(|volumes| !volumes.is_empty())
}

fn software_of(record: &Fields) -> impl Iterator<Item = &Value> {
    let disks = record.get("logical_disks").and_then(Value::as_array);
    let is_software = |disk: &&Value| disk.get("controller").and_then(Value::as_str) == Some(KERNEL);
    disks.into_iter().flatten().filter(is_software)
}

/// Whether the agent reported volumes of these levels.
fn has_made(node: &Node, volumes: &[SoftwareRaidVolume]) -> bool {
    let made = software_of(&node.raid_config).map(|disk| disk.get("raid_level").cloned());
    let asked = volumes.iter().map(|volume| serde_json::to_value(volume.level).ok());
    made.eq(asked)
}

/// Whether the agent reported the software volumes that the host asks for.
#[must_use]
pub fn shows_wanted(host: &BareMetalHost, node: &Node) -> bool {
    let (_, software) = wanted(host);
    software.is_some_and(|volumes| !volumes.is_empty() && has_made(node, &volumes))
}

/// Whether Ironic's order for the node still names software volumes: it is cleared after their removal, so they may exist.
#[must_use]
pub fn may_have_software(node: &Node) -> bool {
    software_of(&node.target_raid_config).next().is_some()
}

/// Whether the cleaning that is under way makes volumes.
#[must_use]
pub fn is_made_now(node: &Node) -> bool {
    let mut steps = node.steps_under_way().iter();
    steps.any(|step| step.interface == INTERFACE && step.step == CREATION)
}

/// Whether these steps change volumes.
#[must_use]
pub fn is_in(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.interface == INTERFACE)
}

/// Whether Ironic's order for the node is for these volumes.
#[must_use]
pub fn is_ordered(node: &Node, logical_disks: &[Value]) -> bool {
    let ordered = node.target_raid_config.get("logical_disks").and_then(Value::as_array);
    ordered.map(Vec::as_slice) == Some(logical_disks)
}

/// The cleaning that makes the wanted volumes of those recorded. `None`: there is nothing to do.
///
/// # Errors
/// When a volume cannot be made.
pub fn change(host: &BareMetalHost, profile: &Profile, node: &Node) -> Result<Option<RaidChange>, InvalidHost> {
    let asked = host.spec.raid.clone().unwrap_or_default();
    if has_software(Some(&asked)) && asked.hardware_raid_volumes.is_some_and(|volumes| !volumes.is_empty()) {
        return Err(invalid(
            "spec.raid".to_owned(),
            "it asks for hardware and software volumes; remove one of the lists",
        ));
    }
    let (hardware, software) = wanted(host);
    let recorded = host.status.provisioning.raid.clone().unwrap_or_default();
    if let Some(volumes) = software.clone()
        && let Some(change) = software_change(host, node, &volumes)?
    {
        return Ok(Some(change));
    }
    let Some(volumes) = hardware else { return Ok(None) };
    let is_made = is_same(Some(&volumes), recorded.hardware_raid_volumes.as_ref());
    // Nothing can be removed either from a BMC that makes no volumes.
    if is_made || (volumes.is_empty() && !profile.supports_raid()) {
        return Ok(None);
    }
    if !profile.supports_raid() {
        return Err(invalid(
            "spec.raid.hardwareRAIDVolumes".to_owned(),
            "the BMC of this host makes no volumes; use softwareRAIDVolumes, or the address of a BMC that does",
        ));
    }
    Ok(Some(RaidChange {
        interface: profile.interfaces.raid,
        logical_disks: hardware_disks(&volumes)?,
        steps: steps(&["raid.delete_configuration"], volumes.is_empty()),
        recorded: RaidConfig {
            hardware_raid_volumes: Some(volumes),
            software_raid_volumes: software.or(recorded.software_raid_volumes),
        },
    }))
}

fn software_change(
    host: &BareMetalHost,
    node: &Node,
    volumes: &[SoftwareRaidVolume],
) -> Result<Option<RaidChange>, InvalidHost> {
    let recorded = host.status.provisioning.raid.clone().unwrap_or_default();
    let is_recorded = is_same(Some(&volumes.to_vec()), recorded.software_raid_volumes.as_ref());
    let keeps_disks = !is_cleaned(host);
    // After a failed removal nothing is recorded, and the order is there.
    // differs: `host-raid-removed`. The Go manager does not repeat a failed removal.
    let is_nothing = volumes.is_empty() && !has_software(Some(&recorded)) && !may_have_software(node);
    // A new node in Ironic: the disks are given to another use as they are.
    let is_let_go = volumes.is_empty() && keeps_disks && !may_have_software(node);
    if is_nothing || is_let_go || (is_recorded && (volumes.is_empty() || has_made(node, volumes))) {
        return Ok(None);
    }
    if is_recorded && keeps_disks {
        return Err(invalid(
            "spec.raid.softwareRAIDVolumes".to_owned(),
            "Ironic knows nothing of these volumes any more, and to make them again erases disks that \
             automatedCleaningMode: disabled keeps; set it to metadata, or remove the list and set rootDeviceHints",
        ));
    }
    let hardware = if volumes.is_empty() {
        None
    } else {
        host.spec
            .raid
            .as_ref()
            .and_then(|asked| asked.hardware_raid_volumes.clone())
    };
    Ok(Some(RaidChange {
        interface: Some(AGENT),
        logical_disks: software_disks(volumes)?,
        // The rest of the metadata would make the kernel assemble former volumes again.
        steps: steps(
            &["raid.delete_configuration", "deploy.erase_devices_metadata"],
            volumes.is_empty(),
        ),
        recorded: RaidConfig {
            hardware_raid_volumes: hardware.or(recorded.hardware_raid_volumes),
            software_raid_volumes: Some(volumes.to_vec()),
        },
    }))
}

pub(super) const fn invalid(field: String, problem: &'static str) -> InvalidHost {
    InvalidHost::Raid { field, problem }
}

/// The steps of a removal, and that of a creation.
fn steps(removal: &[&str], removes_only: bool) -> Vec<Step> {
    let creation = (!removes_only).then_some((INTERFACE, CREATION));
    let removal = removal.iter().filter_map(|name| name.split_once('.'));
    removal
        .chain(creation)
        .map(|(interface, step)| Step {
            interface: interface.to_owned(),
            step: step.to_owned(),
            args: Map::new(),
            priority: None,
        })
        .collect()
}
