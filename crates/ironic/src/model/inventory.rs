//! The hardware that an inspection found.
//!
//! The data comes from a ramdisk or a BMC, so everything is optional. `plugin_data` may have any form: it is kept as it
//! is, and whoever reads it takes what fits.

use serde::Deserialize;
use serde_json::Value;

use super::{Fields, blank_is_none, null_is_default};

/// What is stored for a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Inspection {
    /// The hardware.
    #[serde(default, deserialize_with = "null_is_default")]
    pub inventory: Inventory,
    /// What the ramdisk's plug-ins added.
    #[serde(default)]
    pub plugin_data: Value,
}

/// The hardware.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Inventory {
    /// The name that the ramdisk had.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub hostname: Option<String>,
    /// Network interfaces, in the order of discovery.
    #[serde(default, deserialize_with = "null_is_default")]
    pub interfaces: Vec<Interface>,
    /// The processors.
    #[serde(default, deserialize_with = "null_is_default")]
    pub cpu: Cpu,
    /// The memory.
    #[serde(default, deserialize_with = "null_is_default")]
    pub memory: Memory,
    /// The disks.
    #[serde(default, deserialize_with = "null_is_default")]
    pub disks: Vec<Disk>,
    /// The maker.
    #[serde(default, deserialize_with = "null_is_default")]
    pub system_vendor: SystemVendor,
    /// How the ramdisk was booted.
    #[serde(default)]
    pub boot: Fields,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Interface {
    /// Its name in the ramdisk.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub name: Option<String>,
    /// Its MAC address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub mac_address: Option<String>,
    /// Its IPv4 address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub ipv4_address: Option<String>,
    /// Its IPv6 address; a link-local one keeps its scope.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub ipv6_address: Option<String>,
    /// Its vendor's number.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub vendor: Option<String>,
    /// Its product's number.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub product: Option<String>,
    /// Its place on the bus.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub pci_address: Option<String>,
    /// Its speed; -1 means unknown.
    #[serde(default)]
    pub speed_mbps: Option<i64>,
    /// Whether a cable is in it.
    #[serde(default)]
    pub has_carrier: Option<bool>,
}

/// The processors.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Cpu {
    /// `x86_64` and others.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub architecture: Option<String>,
    /// The model.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub model_name: Option<String>,
    /// Threads.
    #[serde(default)]
    pub count: Option<i64>,
    /// Megahertz: text from a ramdisk, a number from a BMC.
    #[serde(default)]
    pub frequency: Option<Frequency>,
    /// Abilities.
    #[serde(default, deserialize_with = "null_is_default")]
    pub flags: Vec<String>,
}

/// A frequency as delivered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Frequency {
    /// From a BMC.
    Number(f64),
    /// From a ramdisk.
    Text(String),
}

impl Frequency {
    /// Megahertz, where it can be read.
    #[must_use]
    pub fn megahertz(&self) -> Option<f64> {
        let value = match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.trim().parse().ok()?,
        };
        (value.is_finite() && value >= 0.0).then_some(value)
    }
}

/// The memory.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Memory {
    /// What is built in, in MiB.
    #[serde(default)]
    pub physical_mb: Option<i64>,
    /// What the system sees, in bytes.
    #[serde(default)]
    pub total: Option<i64>,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Disk {
    /// `/dev/sda`; a BMC gives a name of its own.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub name: Option<String>,
    /// A name that survives a restart.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub by_path: Option<String>,
    /// Bytes.
    #[serde(default)]
    pub size: Option<i64>,
    /// Whether it turns.
    #[serde(default)]
    pub rotational: Option<bool>,
    /// The maker.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub vendor: Option<String>,
    /// The model.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub model: Option<String>,
    /// The serial number.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub serial: Option<String>,
    /// The SCSI address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub hctl: Option<String>,
    /// The world-wide name.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub wwn: Option<String>,
    /// The vendor's part of it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub wwn_vendor_extension: Option<String>,
    /// Both.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub wwn_with_extension: Option<String>,
}

/// The maker of the machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct SystemVendor {
    /// Who.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub manufacturer: Option<String>,
    /// What.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub product_name: Option<String>,
    /// Which one.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub serial_number: Option<String>,
    /// Its firmware.
    #[serde(default, deserialize_with = "null_is_default")]
    pub firmware: Firmware,
}

/// The machine's own firmware.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Firmware {
    /// Who made it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub vendor: Option<String>,
    /// Its version.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub version: Option<String>,
    /// When it was built.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub build_date: Option<String>,
}
