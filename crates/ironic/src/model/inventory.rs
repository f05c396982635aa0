//! The hardware inventory of an inspection.
//!
//! A ramdisk or a BMC provides the data, so everything is optional. `plugin_data` may have any form and is kept
//! unchanged.

use serde::Deserialize;
use serde_json::Value;

use super::Fields;

lenient! {
    /// The inspection data of a node.
    #[derive(Default)]
    pub struct Inspection {
        /// The hardware.
        pub inventory: Inventory,
        /// The data of the ramdisk's plug-ins.
        pub plugin_data: Value,
    }

    /// The hardware.
    #[derive(Default)]
    pub struct Inventory {
        /// The ramdisk's host name.
        pub hostname: Option<String>,
        /// Network interfaces, in the order of discovery.
        pub interfaces: Vec<Interface>,
        /// The processors.
        pub cpu: Cpu,
        /// The memory.
        pub memory: Memory,
        /// The disks.
        pub disks: Vec<Disk>,
        /// The system vendor.
        pub system_vendor: SystemVendor,
        /// The ramdisk's boot parameters.
        pub boot: Fields,
    }

    /// A network interface.
    #[derive(Default)]
    pub struct Interface {
        /// Its name in the ramdisk.
        pub name: Option<String>,
        /// Its MAC address.
        pub mac_address: Option<String>,
        /// Its IPv4 address.
        pub ipv4_address: Option<String>,
        /// Its IPv6 address; a link-local one includes its scope.
        pub ipv6_address: Option<String>,
        /// The vendor ID.
        pub vendor: Option<String>,
        /// The product ID.
        pub product: Option<String>,
        /// Its PCI address.
        pub pci_address: Option<String>,
        /// Its speed; -1 means unknown.
        pub speed_mbps: Option<i64>,
    }

    /// The processors.
    #[derive(Default)]
    pub struct Cpu {
        /// `x86_64` and others.
        pub architecture: Option<String>,
        /// The model.
        pub model_name: Option<String>,
        /// Threads.
        pub count: Option<i64>,
        /// Megahertz: text from a ramdisk, a number from a BMC.
        pub frequency: Option<Frequency>,
        /// CPU flags.
        pub flags: Vec<String>,
    }
}

never_blank!(Inventory, Cpu, Option<Frequency>, Memory, SystemVendor, Firmware);

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

lenient! {
    /// The memory.
    #[derive(Default)]
    pub struct Memory {
        /// Installed memory, in MiB.
        pub physical_mb: Option<i64>,
        /// Memory visible to the system, in bytes.
        pub total: Option<i64>,
    }

    /// A disk.
    #[derive(Default)]
    pub struct Disk {
        /// `/dev/sda`; a BMC uses other names.
        pub name: Option<String>,
        /// A name that does not change with a restart.
        pub by_path: Option<String>,
        /// Bytes.
        pub size: Option<i64>,
        /// Whether it is a spinning disk.
        pub rotational: Option<bool>,
        /// The vendor.
        pub vendor: Option<String>,
        /// The model.
        pub model: Option<String>,
        /// The serial number.
        pub serial: Option<String>,
        /// The SCSI address.
        pub hctl: Option<String>,
        /// The world-wide name.
        pub wwn: Option<String>,
        /// The vendor extension of the WWN.
        pub wwn_vendor_extension: Option<String>,
        /// The WWN with the vendor extension.
        pub wwn_with_extension: Option<String>,
    }

    /// The vendor of the machine.
    #[derive(Default)]
    pub struct SystemVendor {
        /// The manufacturer.
        pub manufacturer: Option<String>,
        /// The product name.
        pub product_name: Option<String>,
        /// The serial number.
        pub serial_number: Option<String>,
        /// Its firmware.
        pub firmware: Firmware,
    }

    /// The system firmware.
    #[derive(Default)]
    pub struct Firmware {
        /// Its vendor.
        pub vendor: Option<String>,
        /// Its version.
        pub version: Option<String>,
        /// When it was built.
        pub build_date: Option<String>,
    }
}
