//! The inventory of a machine, from its profile, in the format of the agent.

use serde_json::{Value, json};

use crate::{
    identity::Number,
    profile::{DiskGroup, NicGroup, Profile},
};

/// The agent's minimum size of a root disk.
pub const SMALLEST_ROOT_DISK: u64 = 4 << 30;

/// The `inventory` of the agent's inspection data.
#[must_use]
pub fn inventory(profile: &Profile, number: Number) -> Value {
    let cpu = &profile.cpu;
    json!({
        "interfaces": profile.each_nic().map(|(index, nic)| interface(number, index, nic)).collect::<Vec<_>>(),
        "cpu": {
            "model_name": cpu.model,
            "frequency": format!("{}.0000", cpu.mhz),
            "count": cpu.threads,
            "architecture": profile.architecture.as_str(),
            "flags": cpu.flags,
            "socket_count": cpu.sockets,
        },
        "disks": profile.each_disk().map(|(index, name, group)| disk(number, index, &name, group)).collect::<Vec<_>>(),
        // The total excludes the firmware's share.
        "memory": { "total": profile.memory_mib.saturating_mul(1 << 20) / 100 * 98, "physical_mb": profile.memory_mib },
        "bmc_address": null,
        "bmc_v6address": null,
        "system_vendor": {
            "product_name": profile.vendor.product,
            "serial_number": number.serial(),
            "manufacturer": profile.vendor.manufacturer,
            "firmware": {
                "vendor": profile.vendor.firmware.vendor,
                "version": profile.vendor.firmware.version,
                "build_date": profile.vendor.firmware.date,
            },
        },
        "boot": { "current_boot_mode": "uefi", "pxe_interface": null },
        "hostname": "localhost.localdomain",
    })
}

fn interface(number: Number, index: usize, nic: &NicGroup) -> Value {
    let [high, low] = number.0.to_be_bytes();
    json!({
        // Each card has its own bus and is named after it, like in virtual machines.
        "name": format!("enp{}s0", index + 1),
        "mac_address": number.mac(index),
        "ipv4_address": (index == 0 && nic.carrier).then(|| format!("198.18.{high}.{low}")),
        "ipv6_address": null,
        "has_carrier": nic.carrier,
        "lldp": null,
        "vendor": nic.vendor,
        "product": nic.product,
        "client_id": null,
        "biosdevname": null,
        "speed_mbps": nic.speed_mbps,
        "pci_address": format!("0000:{:02x}:00.0", index + 1),
        "driver": nic.driver,
    })
}

fn disk(number: Number, index: usize, name: &str, group: &DiskGroup) -> Value {
    let wwn = format!("0x5002538e{:04x}{index:04x}", number.0);
    json!({
        "name": format!("/dev/{name}"),
        "model": group.model,
        "size": group.bytes,
        "rotational": group.rotational,
        "wwn": wwn,
        "serial": disk_serial(number, index),
        "vendor": group.vendor,
        "wwn_with_extension": wwn,
        "wwn_vendor_extension": null,
        "hctl": format!("{index}:0:0:0"),
        "by_path": format!("/dev/disk/by-path/pci-0000:00:17.0-ata-{}", index + 1),
        "logical_sectors": 512,
        "physical_sectors": 4096,
        "tran": group.transport,
    })
}

/// The serial number of a machine's disk, the same for agent and BMC.
#[must_use]
pub fn disk_serial(number: Number, index: usize) -> String {
    format!("D{:05}{index:03}", number.0)
}

/// The agent's default root disk: the smallest of at least [`SMALLEST_ROOT_DISK`], by name among equals.
#[must_use]
pub fn root_disk(profile: &Profile) -> Option<(usize, String, u64)> {
    profile
        .each_disk()
        .filter(|(_, _, group)| group.bytes >= SMALLEST_ROOT_DISK)
        .map(|(index, name, group)| (index, name, group.bytes))
        .min_by(|left, right| (left.2, &left.1).cmp(&(right.2, &right.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{BUILT_IN, parse};

    #[test]
    fn root_disk_is_the_smallest_large_enough_and_broken_machine_has_none() {
        let profiles = parse(BUILT_IN).unwrap();
        assert_eq!(root_disk(&profiles["large"]).unwrap().1, "sda");
        assert_eq!(root_disk(&profiles["broken"]), None);
    }

    #[test]
    fn inventory_has_each_card_of_the_profile_with_a_unique_address() {
        let found = inventory(&parse(BUILT_IN).unwrap()["large"], Number(3));
        let mut macs: Vec<_> = found["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|nic| nic["mac_address"].as_str().unwrap())
            .collect();
        macs.dedup();
        assert_eq!(macs.len(), 8);
        assert_eq!(found["disks"].as_array().unwrap().len(), 40);
    }
}
