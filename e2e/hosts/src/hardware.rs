//! The expected hardware of a host, computed from the machine's profile alone, so that the comparison covers agent, Ironic
//! and program.

use metal3_sim_bmc::identity::Number;
use metal3_sim_bmc::inventory::disk_serial;
use metal3_sim_bmc::profile::{DiskGroup, NicGroup, Profile};
use serde_json::{Value, json};

use crate::document::with;

/// `status.hardware` of a host, and `spec.hardware` of its HardwareData.
pub(crate) fn expected(profile: &Profile, number: Number) -> Value {
    let (vendor, cpu) = (&profile.vendor, &profile.cpu);
    let mut flags = cpu.flags.clone();
    flags.sort_unstable();
    json!({
        "systemVendor": {
            "manufacturer": vendor.manufacturer,
            "productName": vendor.product,
            "serialNumber": number.serial(),
        },
        "firmware": { "bios": {
            "date": vendor.firmware.date,
            "vendor": vendor.firmware.vendor,
            "version": vendor.firmware.version,
        } },
        "ramMebibytes": profile.memory_mib,
        "cpu": {
            "arch": profile.architecture.as_str(),
            "model": cpu.model,
            "clockMegahertz": cpu.mhz,
            "count": cpu.threads,
            "flags": flags,
        },
        "nics": profile.each_nic().map(|(index, nic)| card(number, index, nic)).collect::<Vec<_>>(),
        "storage": profile.each_disk().map(|(index, name, group)| disk(number, index, &name, group)).collect::<Vec<_>>(),
        "hostname": "localhost.localdomain",
    })
}

fn card(number: Number, index: usize, nic: &NicGroup) -> Value {
    let [high, low] = number.0.to_be_bytes();
    let card = json!({
        "name": format!("enp{}s0", index + 1),
        "model": format!("{} {}", nic.vendor, nic.product),
        "mac": number.mac(index),
        "speedGbps": nic.speed_mbps / 1000,
        "pciAddress": format!("0000:{:02x}:00.0", index + 1),
    });
    if index == 0 && nic.carrier {
        return with(card, json!({ "ip": format!("198.18.{high}.{low}") }));
    }
    card
}

fn disk(number: Number, index: usize, name: &str, group: &DiskGroup) -> Value {
    let (by_path, device) = (
        format!("/dev/disk/by-path/pci-0000:00:17.0-ata-{}", index + 1),
        format!("/dev/{name}"),
    );
    let wwn = format!("0x5002538e{:04x}{index:04x}", number.0);
    let disk = json!({
        "name": by_path,
        "alternateNames": [device, by_path],
        "type": if group.rotational { "HDD" } else { "SSD" },
        "sizeBytes": group.bytes,
        "vendor": group.vendor,
        "model": group.model,
        "serialNumber": disk_serial(number, index),
        "wwn": wwn,
        "wwnWithExtension": wwn,
        "hctl": format!("{index}:0:0:0"),
    });
    if group.rotational {
        return with(disk, json!({ "rotational": true }));
    }
    disk
}
