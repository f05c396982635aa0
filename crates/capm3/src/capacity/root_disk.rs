//! The size of the disk that the next deployment of a host writes to.

use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareDetails, RaidConfig, RootDeviceHints, Storage};

/// Ironic chooses the smallest disk that is not smaller than this, unless it gets hints.
const SMALLEST_ROOT: u64 = 4 << 30;

/// The size in bytes; `None` if it depends on what is not known: volumes, or hints other than the names of a disk.
pub(super) fn size(host: &BareMetalHost, hardware: &HardwareDetails) -> Option<u64> {
    if host.spec.raid.is_some() || host.status.provisioning.raid.as_ref().is_some_and(has_volumes) {
        return None;
    }
    let disks = &hardware.storage;
    let hints = match &host.spec.root_device_hints {
        Some(hints) => hints.clone(),
        // The controller of hosts sends the hints of the profile. Without a profile of that name it deploys nothing.
        None => host.hardware_profile().ok()?.root_device(),
    };
    if hints == RootDeviceHints::default() {
        return disks
            .iter()
            .filter_map(bytes)
            .filter(|size| *size >= SMALLEST_ROOT)
            .min();
    }
    let is_named = hints.device_name.is_some() || hints.hctl.is_some();
    let named = disks.iter().find(|disk| is_named && is_hinted(disk, &hints));
    named.and_then(bytes)
}

/// What it is read from.
pub(super) fn fields(host: &BareMetalHost) -> impl PartialEq + '_ {
    let volumes = (&host.spec.raid, &host.status.provisioning.raid);
    let profile = (&host.status.hardware_profile, &host.spec.hardware_profile);
    let address = host.spec.bmc.as_ref().map(|bmc| &bmc.address);
    let disks = host.status.hardware.as_ref().map(|hardware| &hardware.storage);
    (volumes, &host.spec.root_device_hints, profile, address, disks)
}

fn has_volumes(raid: &RaidConfig) -> bool {
    let hardware = raid.hardware_raid_volumes.iter().flatten().count();
    hardware > 0 || raid.software_raid_volumes.iter().flatten().count() > 0
}

/// Whether a disk has the name and the address of the hints. The other hints can only exclude it.
fn is_hinted(disk: &Storage, hints: &RootDeviceHints) -> bool {
    let is_same_name = |name: &String| disk.name.as_ref() == Some(name) || disk.alternate_names.contains(name);
    hints.device_name.as_ref().is_none_or(is_same_name) && (hints.hctl.is_none() || hints.hctl == disk.hctl)
}

fn bytes(disk: &Storage) -> Option<u64> {
    u64::try_from(disk.size_bytes?).ok().filter(|size| *size > 0)
}
