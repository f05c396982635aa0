//! Rules about the disks that are kept when a machine is cleaned.

use super::Host;
use crate::metal3::rules::text;
use crate::metal3::v1alpha1::{KeptDisk, RootDeviceHints};
use crate::rules::{FieldPath, Findings};

const KEPT: &str = "spec.cleaning.keepDisks";

fn kept<'a>(host: &Host<'a>) -> &'a [KeptDisk] {
    let cleaning = host.new.spec.cleaning.as_ref();
    cleaning
        .map(|cleaning| cleaning.keep_disks.as_slice())
        .unwrap_or_default()
}

/// Each of them with its path.
fn entries<'a>(host: &Host<'a>) -> impl Iterator<Item = (FieldPath, &'a KeptDisk)> {
    let disks = kept(host).iter().enumerate();
    disks.map(|(position, disk)| (FieldPath::new(KEPT).index(position), disk))
}

pub(super) fn kept_disks_are_named(host: &Host<'_>, findings: &mut Findings) {
    for (path, disk) in entries(host) {
        if disk.texts().next().is_none() {
            findings.required(
                path.clone(),
                "names no disk",
                "write its serialNumber, wwn or wwnWithExtension, which HardwareData shows",
            );
        }
        for (member, text) in disk.texts().filter(|(_, text)| !KeptDisk::is_plain(text)) {
            findings.invalid(
                path.clone().child(member),
                text,
                "has a control character, or one of `<`, `>` and `=`, which are operators of Ironic",
                "name the disk by another member",
            );
        }
    }
}

pub(super) fn image_has_a_disk(host: &Host<'_>, findings: &mut Findings) {
    let hints = host.new.spec.root_device_hints.as_ref();
    if !kept(host).is_empty() && hints.is_none_or(|hints| *hints == RootDeviceHints::default()) {
        findings.required(
            "spec.rootDeviceHints",
            "agents may write the image to a disk that is kept",
            "write which other disk the image goes to, by its serialNumber, wwn or path below /dev/disk/by-path/",
        );
    }
}

pub(super) fn image_has_another_disk(host: &Host<'_>, findings: &mut Findings) {
    let Some(hints) = &host.new.spec.root_device_hints else {
        return;
    };
    let root = |member| match member {
        "serialNumber" => text(hints.serial_number.as_ref()),
        "wwn" => text(hints.wwn.as_ref()),
        _ => text(hints.wwn_with_extension.as_ref()),
    };
    for (path, disk) in entries(host) {
        let same = disk
            .texts()
            .find(|(member, text)| KeptDisk::is_same(text, root(member)));
        if let Some((member, _)) = same {
            findings.forbidden(
                path.child(member),
                "spec.rootDeviceHints names the same disk, and an image is written to it",
                "keep another disk, or write the image to another one",
            );
        }
    }
}

pub(super) fn kept_disks_have_no_volumes(host: &Host<'_>, findings: &mut Findings) {
    if !kept(host).is_empty() && host.new.spec.raid.is_some() {
        findings.forbidden(
            "spec.raid",
            "RAID volumes are made by erasing disks, and some are kept",
            "remove the volumes or spec.cleaning.keepDisks",
        );
    }
}
