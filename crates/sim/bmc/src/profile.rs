//! Hardware profiles from a data file that all simulators share.
//!
//! Parsing is strict: an unknown field is an error, so that a misspelt one does not become a default.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The committed profiles.
pub const BUILT_IN: &str = include_str!("../profiles.yaml");

/// Why a profile file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Invalid YAML or fields.
    #[error("the profiles do not parse: {0}")]
    Syntax(String),
    /// A required field is zero or empty.
    #[error("profile {profile}: {field} must not be zero or empty")]
    Empty {
        /// The profile.
        profile: String,
        /// The field.
        field: &'static str,
    },
    /// There are more parts than a machine has addresses for.
    #[error("profile {profile}: {field} must not be more than {MOST_PARTS}")]
    TooMany {
        /// The profile.
        profile: String,
        /// The field.
        field: &'static str,
    },
}

/// Most network cards, and most disks. The number of a card is the last byte of its address.
const MOST_PARTS: usize = 256;

/// One kind of machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The vendor.
    pub vendor: Vendor,
    /// Firmware version of the BMC.
    pub bmc_version: String,
    /// Instruction set.
    pub architecture: Architecture,
    /// Its processors.
    pub cpu: Cpu,
    /// Main memory.
    pub memory_mib: u64,
    /// Network cards, in groups of equal ones.
    pub nics: Vec<NicGroup>,
    /// Disks, in groups of equal ones.
    pub disks: Vec<DiskGroup>,
}

/// The architecture in Linux spelling.
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
    /// The output of `uname -m`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }
}

/// Vendor data in DMI.
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

/// The system firmware in DMI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// The vendor.
    pub vendor: String,
    /// Its version.
    pub version: String,
    /// The build date, month first.
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
    /// Hardware threads of all packages.
    pub threads: u32,
    /// A few flags.
    pub flags: Vec<String>,
}

/// Equal network cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicGroup {
    /// The number of cards.
    pub count: usize,
    /// Link speed.
    pub speed_mbps: u32,
    /// PCI vendor id.
    pub vendor: String,
    /// PCI product id.
    pub product: String,
    /// Kernel driver.
    pub driver: String,
    /// Whether there is a link.
    pub carrier: bool,
}

/// Equal disks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskGroup {
    /// The number of disks.
    pub count: usize,
    /// Capacity.
    pub bytes: u64,
    /// Model name.
    pub model: String,
    /// The SCSI vendor.
    pub vendor: String,
    /// Whether it is a hard disk.
    pub rotational: bool,
    /// `sata`, `sas`, `nvme`, `usb`.
    pub transport: String,
}

impl Profile {
    /// Each network card with its index.
    pub fn each_nic(&self) -> impl Iterator<Item = (usize, &NicGroup)> {
        self.nics
            .iter()
            .flat_map(|group| std::iter::repeat_n(group, group.count))
            .enumerate()
    }

    /// Each disk with its index and Linux name.
    pub fn each_disk(&self) -> impl Iterator<Item = (usize, String, &DiskGroup)> {
        self.disks
            .iter()
            .flat_map(|group| std::iter::repeat_n(group, group.count))
            .enumerate()
            .map(|(index, group)| (index, disk_name(index), group))
    }
}

/// `sda` to `sdz`, then `sdaa`, like the kernel.
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
        let (nics, disks) = (
            total(profile.nics.iter().map(|group| group.count)),
            total(profile.disks.iter().map(|group| group.count)),
        );
        for (field, count) in [("nics", nics), ("disks", disks)] {
            if count == 0 {
                return Err(empty(field));
            }
            if count > MOST_PARTS {
                let profile = name.clone();
                return Err(ProfileError::TooMany { profile, field });
            }
        }
        if profile.cpu.sockets == 0 || profile.cpu.threads == 0 {
            return Err(empty("cpu"));
        }
    }
    Ok(profiles)
}

fn total(counts: impl Iterator<Item = usize>) -> usize {
    counts.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_parse_and_large_has_eight_nics_and_forty_disks() {
        let profiles = parse(BUILT_IN).unwrap();
        assert_eq!(
            profiles.keys().collect::<Vec<_>>(),
            ["arm", "broken", "large", "small", "storage"]
        );
        assert_eq!(profiles["storage"].each_disk().count(), 2);
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
    fn machine_without_network_card_is_invalid() {
        let error = parse(&BUILT_IN.replacen("count: 2", "count: 0", 1))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "profile small: nics must not be zero or empty");
    }

    #[test]
    fn machine_with_more_cards_or_disks_than_have_addresses_is_invalid() {
        // The second and the last group of the large machine; each has another one in addition.
        for (field, group, others) in [("nics", "count: 6", 2), ("disks", "count: 38", 2)] {
            let with = |count: usize| parse(&BUILT_IN.replacen(group, &format!("count: {count}"), 1));
            for count in [usize::MAX, 257 - others] {
                let error = with(count).unwrap_err().to_string();
                assert_eq!(
                    error,
                    format!("profile large: {field} must not be more than 256"),
                    "{count}"
                );
            }
            assert!(with(256 - others).is_ok(), "{field}");
        }
    }

    #[test]
    fn disks_have_the_names_of_the_kernel() {
        assert_eq!(
            [0, 25, 26, 39, 51, 52].map(disk_name),
            ["sda", "sdz", "sdaa", "sdan", "sdaz", "sdba"]
        );
    }
}
