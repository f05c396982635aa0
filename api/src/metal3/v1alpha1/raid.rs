//! How the disks of a host are joined before the image is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RootDeviceHints;

/// Logical disks, made by the controller card or by the kernel. Absent lists are left as they are, empty lists mean
/// that no such disk shall exist: the two differ on a host that has some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RaidConfig {
    /// Disks made by the controller card. They exclude software disks. Empty: remove all. Absent or null: leave alone.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "hardwareRAIDVolumes")]
    #[schemars(extend("x-keep-null" = true))]
    pub hardware_raid_volumes: Option<Vec<HardwareRaidVolume>>,
    /// Disks made by the kernel, two at most, the first of level 1. Empty: remove all. Absent or null: leave alone.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "softwareRAIDVolumes")]
    #[schemars(length(max = 2), extend("x-keep-null" = true))]
    pub software_raid_volumes: Option<Vec<SoftwareRaidVolume>>,
}

/// A logical disk of the controller card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareRaidVolume {
    /// RAID level.
    pub level: HardwareRaidLevel,
    /// Name of the disk, different from that of every other. Absent: chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub name: Option<String>,
    /// Size, in gibibytes. Absent: all the space there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size_gibibytes: Option<i64>,
    /// True: of disks that spin. False: of disks that do not. Absent: of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// How many physical disks it is made of. If the disks are named, it is their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub number_of_physical_disks: Option<i64>,
    /// Controller card that makes it, as the card's driver names it. Needed when the physical disks are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Physical disks it is made of, as the controller card names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub physical_disks: Vec<String>,
}

/// A logical disk of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SoftwareRaidVolume {
    /// RAID level. The first disk must be of level 1.
    pub level: SoftwareRaidLevel,
    /// Size, in gibibytes. Absent: all remaining space, allowed only for the last disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size_gibibytes: Option<i64>,
    /// Hints that select the physical disks, one each, two at least.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 2))]
    pub physical_disks: Vec<RootDeviceHints>,
    /// Whether the image goes to this disk. One disk at most, of level 1, and never together with root device hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub root_volume: Option<bool>,
}

/// RAID level of a controller card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum HardwareRaidLevel {
    /// Striping.
    #[serde(rename = "0")]
    Raid0,
    /// Mirroring.
    #[default]
    #[serde(rename = "1")]
    Raid1,
    /// Bits striped, with error correction.
    #[serde(rename = "2")]
    Raid2,
    /// Striping with parity.
    #[serde(rename = "5")]
    Raid5,
    /// Striping with double parity.
    #[serde(rename = "6")]
    Raid6,
    /// Striping over mirrors.
    #[serde(rename = "1+0")]
    Raid10,
    /// Striping over parity groups.
    #[serde(rename = "5+0")]
    Raid50,
    /// Striping over double parity groups.
    #[serde(rename = "6+0")]
    Raid60,
}

/// RAID level of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SoftwareRaidLevel {
    /// Striping.
    #[serde(rename = "0")]
    Raid0,
    /// Mirroring.
    #[default]
    #[serde(rename = "1")]
    Raid1,
    /// Striping over mirrors.
    #[serde(rename = "1+0")]
    Raid10,
}
