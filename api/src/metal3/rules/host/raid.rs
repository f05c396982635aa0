//! Rules about RAID volumes.

use super::Host;
use crate::metal3::rules::text;
use crate::metal3::v1alpha1::{HardwareRaidVolume, SoftwareRaidLevel, SoftwareRaidVolume};
use crate::rules::{FieldPath, Findings};

const HARDWARE: &str = "spec.raid.hardwareRAIDVolumes";
const SOFTWARE: &str = "spec.raid.softwareRAIDVolumes";

fn hardware<'a>(host: &Host<'a>) -> &'a [HardwareRaidVolume] {
    let raid = host.new.spec.raid.as_ref();
    raid.and_then(|raid| raid.hardware_raid_volumes.as_deref())
        .unwrap_or_default()
}

fn software<'a>(host: &Host<'a>) -> &'a [SoftwareRaidVolume] {
    let raid = host.new.spec.raid.as_ref();
    raid.and_then(|raid| raid.software_raid_volumes.as_deref())
        .unwrap_or_default()
}

/// Root volumes with their positions.
fn roots<'a>(host: &Host<'a>) -> impl Iterator<Item = (usize, &'a SoftwareRaidVolume)> {
    let volumes = software(host).iter().enumerate();
    volumes.filter(|(_, volume)| volume.root_volume == Some(true))
}

pub(super) fn volumes_are_of_one_kind(host: &Host<'_>, findings: &mut Findings) {
    if !hardware(host).is_empty() && !software(host).is_empty() {
        findings.forbidden(
            "spec.raid",
            "hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time",
            "leave one of the lists empty",
        );
    }
}

pub(super) fn disks_have_a_controller(host: &Host<'_>, findings: &mut Findings) {
    for (position, volume) in hardware(host).iter().enumerate() {
        if !volume.physical_disks.is_empty() && text(volume.controller.as_ref()).is_empty() {
            findings.required(
                FieldPath::new(HARDWARE).index(position).child("controller"),
                format!("'physicalDisks' specified without 'controller' in hardware RAID volume {position}"),
                "name the controller, or leave the choice of the disks to it",
            );
        }
    }
}

pub(super) fn disk_count_matches(host: &Host<'_>, findings: &mut Findings) {
    for (position, volume) in hardware(host).iter().enumerate() {
        let Some(count) = volume.number_of_physical_disks else {
            continue;
        };
        let named = volume.physical_disks.len();
        if named != 0 && usize::try_from(count) != Ok(named) {
            findings.invalid(
                FieldPath::new(HARDWARE).index(position).child("numberOfPhysicalDisks"),
                count,
                format!(
                    "the 'numberOfPhysicalDisks'[{count}] and number of 'physicalDisks'[{named}] is not same for \
                     volume {position}"
                ),
                format!("write {named}, or leave it out"),
            );
        }
    }
}

pub(super) fn root_volume_is_one(host: &Host<'_>, findings: &mut Findings) {
    for (position, _) in roots(host).skip(1) {
        findings.invalid(
            FieldPath::new(SOFTWARE).index(position).child("rootVolume"),
            true,
            "softwareRAIDVolumes[*].rootVolume can only be set once",
            "choose the one volume the image goes to",
        );
    }
}

/// Empty hints count as well. With several root volumes only their number is reported.
pub(super) fn root_volume_excludes_hints(host: &Host<'_>, findings: &mut Findings) {
    if host.new.spec.root_device_hints.is_some() && roots(host).count() == 1 {
        findings.forbidden(
            "spec.rootDeviceHints",
            "softwareRAIDVolumes[*].rootVolume and rootDeviceHints can not be set at the same time",
            "remove the hints or the mark on the volume",
        );
    }
}

pub(super) fn root_volume_is_mirrored(host: &Host<'_>, findings: &mut Findings) {
    for (position, volume) in roots(host) {
        if volume.level != SoftwareRaidLevel::Raid1 {
            findings.invalid(
                FieldPath::new(SOFTWARE).index(position).child("level"),
                volume.level,
                format!("softwareRAIDVolumes[{position}] with rootVolume set must use RAID level 1"),
                "use level 1, or another volume for the image",
            );
        }
    }
}
