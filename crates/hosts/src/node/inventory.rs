//! Translates an inspection result to hardware details.
//!
//! Unknown values, zero and empty text are omitted, as in the Go manager. Values that the schema of HardwareData
//! rejects are omitted too, so that one invalid value does not fail the inspection.

use metal3_api::metal3::v1alpha1::{
    Bios, Cpu, Firmware, HardwareDetails, HardwareSystemVendor, Lldp, Nic, Storage, StorageType, Vlan,
};
use metal3_domain::mac::MacAddress;
use metal3_ironic::model::inventory::{self, Disk, Frequency, Inspection, Interface};
use serde_json::Value;

const VLAN_MAX: i64 = 4094;
const GIGABIT: i64 = 1000;
/// Upper limit of a plausible clock frequency in megahertz.
const CLOCK_MAX: f64 = 1e9;

/// The hardware details of the machine.
#[must_use]
pub fn details(found: &Inspection) -> HardwareDetails {
    let Inspection { inventory, plugin_data } = found;
    let vendor = &inventory.system_vendor;
    HardwareDetails {
        system_vendor: Some(HardwareSystemVendor {
            manufacturer: vendor.manufacturer.clone(),
            product_name: vendor.product_name.clone(),
            serial_number: vendor.serial_number.clone(),
        }),
        firmware: Some(Firmware {
            bios: Some(Bios {
                date: vendor.firmware.build_date.clone(),
                vendor: vendor.firmware.vendor.clone(),
                version: vendor.firmware.version.clone(),
            }),
        }),
        ram_mebibytes: positive(inventory.memory.physical_mb),
        nics: inventory
            .interfaces
            .iter()
            .flat_map(|card| nics(card, plugin_data))
            .collect(),
        storage: inventory.disks.iter().map(storage).collect(),
        cpu: Some(cpu(&inventory.cpu)),
        hostname: inventory.hostname.clone(),
    }
}

// differs: inspection-odd-values. The Go manager passes all values on.
fn positive(number: Option<i64>) -> Option<i64> {
    number.filter(|number| *number > 0)
}

fn cpu(found: &inventory::Cpu) -> Cpu {
    let mut flags = found.flags.clone();
    flags.sort_unstable();
    Cpu {
        arch: found.architecture.clone(),
        model: found.model_name.clone(),
        clock_megahertz: found.frequency.as_ref().and_then(megahertz),
        flags,
        count: positive(found.count),
    }
}

/// Rounded to megahertz. Text counts up to its first non-numeric character: `2400.0000 MHz`.
fn megahertz(frequency: &Frequency) -> Option<f64> {
    // differs: inspection-number-frequency. The Go manager fails on a number, which a BMC delivers.
    let value = match frequency {
        Frequency::Number(number) => *number,
        Frequency::Text(text) => {
            let text = text.trim_start();
            let end = text
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(text.len());
            text.get(..end)?.parse().ok()?
        }
    };
    Some(value.round()).filter(|value| (1.0..CLOCK_MAX).contains(value))
}

/// One entry per IP address of a card, and one for a card without an address.
fn nics(card: &Interface, plugin_data: &Value) -> Vec<Nic> {
    let of_card = |map: &str| {
        let name = card.name.as_deref()?;
        plugin_data.get(map)?.get(name)
    };
    let plain = |text: &Option<String>| text.clone().unwrap_or_default();
    let model = format!("{} {}", plain(&card.vendor), plain(&card.product));
    let neighbour = of_card("parsed_lldp");
    let nic = |ip: Option<&String>| Nic {
        name: card.name.clone(),
        model: Some(model.trim_start_matches(' ').to_owned()).filter(|model| !model.is_empty()),
        mac: card.mac_address.as_deref().and_then(mac),
        ip: ip.cloned(),
        speed_gbps: positive(card.speed_mbps.map(|speed| speed / GIGABIT)),
        vlans: neighbour.map(vlans).unwrap_or_default(),
        vlan_id: neighbour.and_then(|switch| vlan_number(switch.get("switch_port_untagged_vlan_id"))),
        pxe: of_card("all_interfaces")
            .and_then(|card| card.get("pxe_enabled")?.as_bool())
            .filter(|enabled| *enabled),
        lldp: neighbour.and_then(lldp),
        pci_address: card.pci_address.clone(),
    };
    let v4 = card.ipv4_address.as_ref();
    let v6 = card.ipv6_address.as_ref();
    let first = (v4.is_some() || v6.is_none()).then(|| nic(v4));
    first.into_iter().chain(v6.map(|address| nic(Some(address)))).collect()
}

/// The address as delivered if the schema accepts it, else in canonical form. An invalid address is omitted.
fn mac(text: &str) -> Option<String> {
    let address = MacAddress::parse(text).ok()?;
    Some(if text.contains(':') {
        text.to_owned()
    } else {
        address.to_string()
    })
}

fn lldp(switch: &Value) -> Option<Lldp> {
    let text = |key: &str| {
        switch
            .get(key)?
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let lldp = Lldp {
        switch_id: text("switch_chassis_id"),
        port_id: text("switch_port_id"),
        switch_system_name: text("switch_system_name"),
    };
    (lldp != Lldp::default()).then_some(lldp)
}

fn vlans(switch: &Value) -> Vec<Vlan> {
    // differs: inspection-vlans. The Go manager expects them in a form that Ironic never delivers.
    let listed = switch.get("switch_port_vlans").and_then(Value::as_array);
    listed
        .into_iter()
        .flatten()
        .map(|vlan| Vlan {
            id: vlan_number(vlan.get("id")),
            name: vlan
                .get("name")
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
        })
        .filter(|vlan| *vlan != Vlan::default())
        .collect()
}

fn vlan_number(value: Option<&Value>) -> Option<i32> {
    let number = value?.as_i64().filter(|number| (1..=VLAN_MAX).contains(number))?;
    i32::try_from(number).ok()
}

fn storage(disk: &Disk) -> Storage {
    let is_nvme = disk.name.as_deref().is_some_and(|name| name.starts_with("/dev/nvme"));
    let rotational = disk.rotational.filter(|rotational| *rotational);
    Storage {
        name: disk.by_path.clone().or_else(|| disk.name.clone()),
        alternate_names: [&disk.name, &disk.by_path].into_iter().flatten().cloned().collect(),
        rotational,
        type_: Some(match rotational {
            Some(_) => StorageType::Hdd,
            None if is_nvme => StorageType::Nvme,
            None => StorageType::Ssd,
        }),
        size_bytes: positive(disk.size),
        vendor: disk.vendor.clone(),
        model: disk.model.clone(),
        serial_number: disk.serial.clone(),
        wwn: disk.wwn.clone(),
        wwn_vendor_extension: disk.wwn_vendor_extension.clone(),
        wwn_with_extension: disk.wwn_with_extension.clone(),
        hctl: disk.hctl.clone(),
    }
}
