//! What inspection found in a host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::MAC_WITHIN_PATTERN;

/// The hardware of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareDetails {
    /// Who made the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_vendor: Option<HardwareSystemVendor>,
    /// Firmware of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<Firmware>,
    /// Memory, in mebibytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_mebibytes: Option<i64>,
    /// Network cards. A card with several addresses has an entry for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<Nic>,
    /// Disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<Storage>,
    /// Processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Host name the machine had while it was inspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// Who made a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareSystemVendor {
    /// Manufacturer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// Product, as the manufacturer calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_name: Option<String>,
    /// Serial number of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
}

/// Firmware of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Firmware {
    /// The BIOS or UEFI firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bios: Option<Bios>,
}

/// The BIOS or UEFI firmware.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bios {
    /// Date of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The processors of a machine, all of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// Architecture, such as `x86_64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Clock, in megahertz.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "plain_number")]
    pub clock_megahertz: Option<f64>,
    /// Features, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// How many logical processors there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
}

/// A whole number is written without a fraction, as the API server writes it, so that what was read and what is
/// written compare equal.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn plain_number<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(number) = *number else {
        return serializer.serialize_none();
    };
    let whole = (number.fract() == 0.0).then(|| format!("{number:.0}").parse::<i64>());
    match whole {
        Some(Ok(whole)) => serializer.serialize_i64(whole),
        _ => serializer.serialize_f64(number),
    }
}

/// A network card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nic {
    /// Name the kernel gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Vendor and device, as two hexadecimal numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = MAC_WITHIN_PATTERN))]
    pub mac: Option<String>,
    /// Address it had, v4 or v6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// Speed, in gigabits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_gbps: Option<i64>,
    /// VLANs that pass through it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<Vlan>,
    /// VLAN of untagged frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4094))]
    pub vlan_id: Option<i32>,
    /// Whether the machine boots from the network through it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pxe: Option<bool>,
    /// What the switch at the other end reports about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lldp: Option<Lldp>,
    /// Where it sits on the PCI bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
}

/// A VLAN.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vlan {
    /// Number of the VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4094))]
    pub id: Option<i32>,
    /// Name of the VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a switch announces on a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lldp {
    /// Identity of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "switchID")]
    pub switch_id: Option<String>,
    /// Identity of the port.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "portID")]
    pub port_id: Option<String>,
    /// Name of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_system_name: Option<String>,
}

/// A disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Path of the device; the one by bus path where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Other paths of the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternate_names: Vec<String>,
    /// Whether it spins. The type is more precise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// Kind of disk.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub type_: Option<StorageType>,
    /// Size, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// Vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// World wide name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// The vendor's extension of the world wide name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn_vendor_extension: Option<String>,
    /// World wide name with the vendor's extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn_with_extension: Option<String>,
    /// SCSI address: host, channel, target and logical unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hctl: Option<String>,
}

/// Kind of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum StorageType {
    /// It spins.
    #[default]
    #[serde(rename = "HDD")]
    Hdd,
    /// Flash behind a disk interface.
    #[serde(rename = "SSD")]
    Ssd,
    /// Flash on the PCI bus.
    #[serde(rename = "NVME")]
    Nvme,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_clock_is_written_without_a_fraction() {
        for (read, written) in [
            (json!(2100), json!(2100)),
            (json!(2100.0), json!(2100)),
            (json!(2100.5), json!(2100.5)),
        ] {
            let cpu: Cpu = serde_json::from_value(json!({ "clockMegahertz": read })).unwrap();
            assert_eq!(
                serde_json::to_value(&cpu).unwrap(),
                json!({ "clockMegahertz": written })
            );
        }
    }

    #[test]
    fn speed_is_read_as_it_was_written() {
        // A fixed walk over numbers with many digits.
        let mut speed = 2399.998_f64;
        for _ in 0..1000 {
            speed = (speed * 1.618_033_988_7) % 4999.9 + 0.1;
            let cpu = Cpu {
                clock_megahertz: Some(speed),
                ..Cpu::default()
            };
            let text = serde_json::to_string(&cpu).unwrap();
            assert_eq!(serde_json::from_str::<Cpu>(&text).unwrap(), cpu, "{text}");
        }
    }
}
