//! Hardware profiles: what a machine is made of, read from one data file that every simulator shares.
//!
//! Parsing is total and strict: an unknown field is an error, so that a misspelt one never silently means a default.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The committed profiles.
pub const BUILT_IN: &str = include_str!("../profiles.yaml");

/// Why a profile file was refused.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Not YAML of the expected form.
    #[error("the profiles do not parse: {0}")]
    Syntax(String),
    /// A profile no machine could have.
    #[error("profile {profile}: {field} must not be zero or empty")]
    Empty {
        /// Which profile.
        profile: String,
        /// Which of its fields.
        field: &'static str,
    },
}

/// One kind of machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Who built it.
    pub vendor: Vendor,
    /// Firmware version of the BMC.
    pub bmc_version: String,
    /// Instruction set.
    pub architecture: Architecture,
    /// Its processors.
    pub cpu: Cpu,
    /// Main memory.
    pub memory_mib: u64,
    /// Network cards, in groups of equals.
    pub nics: Vec<NicGroup>,
    /// Disks, in groups of equals.
    pub disks: Vec<DiskGroup>,
}

/// As Linux spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// 64-bit x86.
    #[serde(rename = "x86_64")]
    X86,
    /// 64-bit Arm.
    #[serde(rename = "aarch64")]
    Arm,
}

impl Architecture {
    /// As `uname -m` prints it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }
}

/// The maker's plate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// Company.
    pub manufacturer: String,
    /// Model.
    pub product: String,
    /// The system firmware (BIOS).
    pub firmware: Firmware,
}

/// The system firmware as DMI tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// Who wrote it.
    pub vendor: String,
    /// Its version.
    pub version: String,
    /// When it was built, month first.
    pub date: String,
}

/// All processors together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Model name.
    pub model: String,
    /// Clock.
    pub mhz: u32,
    /// Packages.
    pub sockets: u32,
    /// Cores of all packages.
    pub cores: u32,
    /// Hardware threads of all packages: what the operating system counts.
    pub threads: u32,
    /// A few flags.
    pub flags: Vec<String>,
}

/// Equal network cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicGroup {
    /// How many.
    pub count: usize,
    /// Link speed.
    pub speed_mbps: u32,
    /// PCI vendor id.
    pub vendor: String,
    /// PCI product id.
    pub product: String,
    /// Kernel driver.
    pub driver: String,
    /// Whether a cable is plugged in.
    pub carrier: bool,
}

/// Equal disks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskGroup {
    /// How many.
    pub count: usize,
    /// Capacity.
    pub bytes: u64,
    /// Model name.
    pub model: String,
    /// Vendor as SCSI tells it.
    pub vendor: String,
    /// Spinning or not.
    pub rotational: bool,
    /// `sata`, `sas`, `nvme`, `usb`.
    pub transport: String,
}

impl Profile {
    /// Every network card, one item each.
    pub fn each_nic(&self) -> impl Iterator<Item = (usize, &NicGroup)> {
        self.nics
            .iter()
            .flat_map(|group| std::iter::repeat_n(group, group.count))
            .enumerate()
    }

    /// Every disk, one item each, with the name Linux gives it.
    pub fn each_disk(&self) -> impl Iterator<Item = (usize, String, &DiskGroup)> {
        self.disks
            .iter()
            .flat_map(|group| std::iter::repeat_n(group, group.count))
            .enumerate()
            .map(|(index, group)| (index, disk_name(index), group))
    }
}

/// `sda` to `sdz`, then `sdaa`: the kernel's own counting.
#[must_use]
pub fn disk_name(index: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = index;
    loop {
        letters.push(char::from(b'a'.saturating_add(u8::try_from(rest % 26).unwrap_or(0))));
        if rest < 26 {
            break;
        }
        rest = rest / 26 - 1;
    }
    std::iter::once("sd".to_owned())
        .chain(letters.iter().rev().map(char::to_string))
        .collect()
}

/// Reads a profile file.
///
/// # Errors
/// [`ProfileError`] names the profile and the field.
pub fn parse(yaml: &str) -> Result<BTreeMap<String, Profile>, ProfileError> {
    let profiles: BTreeMap<String, Profile> =
        serde_saphyr::from_str(yaml).map_err(|error| ProfileError::Syntax(error.to_string()))?;
    for (name, profile) in &profiles {
        let empty = |field| ProfileError::Empty {
            profile: name.clone(),
            field,
        };
        if profile.nics.iter().map(|group| group.count).sum::<usize>() == 0 {
            return Err(empty("nics"));
        }
        if profile.disks.iter().map(|group| group.count).sum::<usize>() == 0 {
            return Err(empty("disks"));
        }
        if profile.cpu.sockets == 0 || profile.cpu.threads == 0 {
            return Err(empty("cpu"));
        }
    }
    Ok(profiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_parse_and_large_has_eight_nics_and_forty_disks() {
        let profiles = parse(BUILT_IN).unwrap();
        assert_eq!(profiles.keys().collect::<Vec<_>>(), ["arm", "broken", "large", "small"]);
        assert_eq!(profiles["large"].each_nic().count(), 8);
        assert_eq!(profiles["large"].each_disk().count(), 40);
        assert_eq!(profiles["arm"].architecture.as_str(), "aarch64");
    }

    #[test]
    fn misspelt_field_is_an_error_that_names_it() {
        let error = parse(&BUILT_IN.replacen("memory_mib", "memory_mb", 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains("memory_mb"), "{error}");
    }

    #[test]
    fn machine_without_network_card_is_refused_by_field() {
        let error = parse(&BUILT_IN.replacen("count: 2", "count: 0", 1))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "profile small: nics must not be zero or empty");
    }

    #[test]
    fn disks_are_named_as_the_kernel_does() {
        assert_eq!(
            [0, 25, 26, 39, 51, 52].map(disk_name),
            ["sda", "sdz", "sdaa", "sdan", "sdaz", "sdba"]
        );
    }
}
