//! The hardware inventory of an inspection.
//!
//! A ramdisk or a BMC provides the data, so everything is optional. `plugin_data` may have any form and is kept
//! unchanged.

use serde::Deserialize;
use serde_json::Value;

use super::{Fields, blank_is_none, null_is_default};

/// The inspection data of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Inspection {
    /// The hardware.
    #[serde(default, deserialize_with = "null_is_default")]
    pub inventory: Inventory,
    /// The data of the ramdisk's plug-ins.
    #[serde(default)]
    pub plugin_data: Value,
}

/// The hardware.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Inventory {
    /// The ramdisk's host name.
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
    /// The system vendor.
    #[serde(default, deserialize_with = "null_is_default")]
    pub system_vendor: SystemVendor,
    /// The ramdisk's boot parameters.
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
    /// Its IPv6 address; a link-local one includes its scope.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub ipv6_address: Option<String>,
    /// The vendor ID.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub vendor: Option<String>,
    /// The product ID.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub product: Option<String>,
    /// Its PCI address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub pci_address: Option<String>,
    /// Its speed; -1 means unknown.
    #[serde(default)]
    pub speed_mbps: Option<i64>,
    /// Whether it has a link.
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
    /// CPU flags.
    #[serde(default, deserialize_with = "null_is_default")]
    pub flags: Vec<String>,
}

/// A frequency, as a number or text.
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
    /// Installed memory, in MiB.
    #[serde(default)]
    pub physical_mb: Option<i64>,
    /// Memory visible to the system, in bytes.
    #[serde(default)]
    pub total: Option<i64>,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Disk {
    /// `/dev/sda`; a BMC uses other names.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub name: Option<String>,
    /// A name that does not change with a restart.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub by_path: Option<String>,
    /// Bytes.
    #[serde(default)]
    pub size: Option<i64>,
    /// Whether it is a spinning disk.
    #[serde(default)]
    pub rotational: Option<bool>,
    /// The vendor.
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
    /// The vendor extension of the WWN.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub wwn_vendor_extension: Option<String>,
    /// The WWN with the vendor extension.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub wwn_with_extension: Option<String>,
}

/// The vendor of the machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct SystemVendor {
    /// The manufacturer.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub manufacturer: Option<String>,
    /// The product name.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub product_name: Option<String>,
    /// The serial number.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub serial_number: Option<String>,
    /// Its firmware.
    #[serde(default, deserialize_with = "null_is_default")]
    pub firmware: Firmware,
}

/// The system firmware.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Firmware {
    /// Its vendor.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub vendor: Option<String>,
    /// Its version.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub version: Option<String>,
    /// When it was built.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub build_date: Option<String>,
}
