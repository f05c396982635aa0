//! The disks that a host keeps: what Ironic is asked to skip, and whether that protects them.
//!
//! Ironic skips what any of its hints matches, disks and partitions alike: it erases the metadata of a partition whose disk it
//! skips. So a disk is named by what its partitions share with it. Released agents do not skip a disk by its serial number or
//! world wide name when they choose one for an image, so the root device must be known to be another disk. Arrays are skipped
//! as a whole: they may be on disks that are kept.

use metal3_api::metal3::v1alpha1::{BareMetalHost, KeptDisk, RootDeviceHints, Storage, StorageType};
use metal3_ironic::model::node::Node;
use serde_json::{Map, Value, json};

use super::changes::{Comparison, RecordMap};
use crate::claims::bond::promises_cleaning;

/// The property of a node with the hints of what Ironic skips.
pub(super) const SKIPPED: &str = "skip_block_devices";
/// Where this program records which of them are its own. Others are an operator's, and stay.
const RECORD: &str = "metal3-kept-disks";
/// Kernel names of software arrays, and of devices that the device mapper makes.
const ARRAY: &str = "/dev/md";
const MAPPED: &str = "/dev/dm-";
/// Prefix of names that stay the same from boot to boot.
const BY_PATH: &str = "/dev/disk/by-path/";
const GIBIBYTE: i64 = 1 << 30;

/// The disks that the host asks to keep.
pub(crate) fn asked(host: &BareMetalHost) -> &[KeptDisk] {
    let cleaning = host.spec.cleaning.as_ref();
    cleaning
        .map(|cleaning| cleaning.keep_disks.as_slice())
        .unwrap_or_default()
}

/// The disks that the agent found. Empty: they are not known.
pub(crate) fn found(host: &BareMetalHost) -> &[Storage] {
    let hardware = host.status.hardware.as_ref();
    hardware.map(|hardware| hardware.storage.as_slice()).unwrap_or_default()
}

/// The hints of what Ironic skips: the words of the user, which also hold for a disk that is new, and everything that names the
/// disks that they match.
pub(super) fn hints(host: &BareMetalHost) -> Vec<Value> {
    let mut hints = Vec::new();
    let mut add = |hint: Map<String, Value>| {
        let hint = Value::Object(hint);
        // Ironic fails on an empty hint.
        if hint != json!({}) && !hints.contains(&hint) {
            hints.push(hint);
        }
    };
    for disk in asked(host) {
        add(disk.texts().map(hint).collect());
        for found in found(host).iter().filter(|found| names(disk, found)) {
            for text in identities(found) {
                add(Map::from_iter([hint(text)]));
            }
        }
    }
    if !hints.is_empty() {
        hints.push(json!({ "name": format!("<in> {ARRAY}") }));
    }
    hints
}

fn hint((member, text): (&str, &str)) -> (String, Value) {
    let key = match member {
        "serialNumber" => "serial",
        "wwnWithExtension" => "wwn_with_extension",
        _ => "wwn",
    };
    (key.to_owned(), format!("s== {text}").into())
}

/// What names a disk and its partitions.
fn identities(disk: &Storage) -> impl Iterator<Item = (&'static str, &str)> {
    let all = [
        ("serialNumber", &disk.serial_number),
        ("wwn", &disk.wwn),
        ("wwnWithExtension", &disk.wwn_with_extension),
    ];
    all.into_iter()
        .filter_map(|(member, text)| Some((member, text.as_deref()?)))
        .filter(|(_, text)| KeptDisk::is_plain(text))
}

/// Whether the user's words name this disk.
pub(crate) fn names(asked: &KeptDisk, disk: &Storage) -> bool {
    let is_same = |(member, text): (&str, &str)| {
        let own = match member {
            "serialNumber" => &disk.serial_number,
            "wwnWithExtension" => &disk.wwn_with_extension,
            _ => &disk.wwn,
        };
        own.as_deref().is_some_and(|own| KeptDisk::is_same(own, text))
    };
    asked.texts().next().is_some() && asked.texts().all(is_same)
}

/// Whether the host keeps this disk: Ironic also skips what has a number in common with one that is named.
pub(crate) fn is_kept(host: &BareMetalHost, disk: &Storage) -> bool {
    let is_named = |disk: &Storage| asked(host).iter().any(|asked| names(asked, disk));
    let mut named = found(host).iter().filter(|found| is_named(found));
    is_named(disk) || named.any(|named| have_number_in_common(named, disk))
}

fn have_number_in_common(one: &Storage, other: &Storage) -> bool {
    identities(one)
        .any(|(member, text)| identities(other).any(|(of, own)| of == member && KeptDisk::is_same(own, text)))
}

/// The name of a disk for people.
pub(crate) fn described(disk: &Storage) -> String {
    let name = disk.name.as_deref().unwrap_or("a disk without a name");
    match disk.serial_number.as_deref().or(disk.wwn.as_deref()) {
        Some(number) => format!("{name} ({number})"),
        None => name.to_owned(),
    }
}

/// Compares what Ironic skips. A host that never kept a disk changes nothing: an operator may have named some.
pub(super) fn compare(wanted: &[Value], found: &Node, changes: &mut Comparison<'_>) {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let record = found.extra.get(RECORD);
    if wanted.is_empty() && record.is_none() {
        return;
    }
    let (mut skipped, recorded) = (list(found.properties.get(SKIPPED)), list(record));
    skipped.retain(|hint| !recorded.contains(hint));
    let own: Vec<Value> = wanted.iter().filter(|hint| !skipped.contains(hint)).cloned().collect();
    skipped.extend(own.iter().cloned());
    let or_none = |list: Vec<Value>| (!list.is_empty()).then_some(Value::Array(list));
    changes.entry(RecordMap::Properties, SKIPPED, or_none(skipped));
    changes.entry(RecordMap::Extra, RECORD, or_none(own));
}

/// The property and the record of a new node.
pub(super) fn of_new(wanted: &[Value]) -> Option<[(&'static str, Value); 2]> {
    (!wanted.is_empty()).then(|| [(SKIPPED, json!(wanted)), (RECORD, json!(wanted))])
}

/// Requires that each disk that is kept is known, and that Ironic neither erases it nor writes an image to it.
///
/// # Errors
/// What the user has to change, with the field.
pub(crate) fn require_protected(host: &BareMetalHost) -> Result<(), String> {
    if asked(host).is_empty() {
        return Ok(());
    }
    if promises_cleaning(host) {
        // What a tenant leaves on such a disk would be given to the next one.
        return Err(
            "a HostClaim has this host, whose machine is to be cleaned for the next one, and spec.cleaning.keepDisks keeps disks; remove \
             spec.cleaning.keepDisks, which lets all disks be erased"
                .to_owned(),
        );
    }
    if host.spec.raid.is_some() {
        return Err(
            "spec.raid makes volumes by erasing disks, and spec.cleaning.keepDisks keeps some; remove one of both"
                .to_owned(),
        );
    }
    let disks = found(host);
    if disks.is_empty() {
        return Err(
            "spec.cleaning.keepDisks keeps disks, and those of this machine are not known. A free host is inspected by its agent; \
             otherwise set spec.automatedCleaningMode to disabled, as all disks are erased without spec.cleaning.keepDisks"
                .to_owned(),
        );
    }
    for (at, asked) in asked(host).iter().enumerate() {
        let field = format!("spec.cleaning.keepDisks[{at}]");
        if asked.texts().any(|(_, text)| !KeptDisk::is_plain(text)) {
            return Err(format!(
                "{field} has an operator of Ironic or a control character; name the disk by another member"
            ));
        }
        let mut named = disks.iter().filter(|disk| names(asked, disk)).peekable();
        if named.peek().is_none() {
            return Err(format!(
                "{field} names no disk of this machine; correct it by its HardwareData, or have the machine inspected again"
            ));
        }
        if let Some(disk) = named.find(|disk| !is_protectable(disk)) {
            return Err(format!(
                "{field} names {}, which cannot be kept: Ironic cannot tell its partitions from others, because the agent reports no \
                 world wide name, or it is made of other disks; remove it from the list, and set spec.automatedCleaningMode to \
                 disabled",
                described(disk)
            ));
        }
    }
    require_another_root(host, host.spec.root_device_hints.as_ref())
}

/// Requires that the image goes to another disk than those that are kept, as the status records what the node gets.
///
/// # Errors
/// What the user has to change, with the field.
pub(crate) fn require_recorded_root(host: &BareMetalHost) -> Result<(), String> {
    if asked(host).is_empty() {
        return Ok(());
    }
    require_another_root(host, host.status.provisioning.root_device_hints.as_ref())
}

/// Whether what names a disk also names its partitions.
fn is_protectable(disk: &Storage) -> bool {
    let mut paths = disk.name.iter().chain(&disk.alternate_names);
    // A BMC names disks otherwise, and may know other numbers.
    let is_of_agent = disk.name.as_deref().is_some_and(|name| name.starts_with("/dev/"));
    let is_plain = !paths.any(|path| path.starts_with(ARRAY) || path.starts_with(MAPPED));
    // The serial number of a SCSI disk may be another one than that of its partitions.
    let is_scsi = disk.hctl.as_deref().is_some_and(|hctl| !hctl.is_empty());
    is_of_agent && is_plain && identities(disk).any(|(member, _)| member != "serialNumber" || !is_scsi)
}

/// Requires that the image goes to a known disk that is not kept, and cannot go to one that is.
fn require_another_root(host: &BareMetalHost, root: Option<&RootDeviceHints>) -> Result<(), String> {
    let cure = "write the serialNumber, the wwn or the path below /dev/disk/by-path/ of another disk into spec.rootDeviceHints";
    let Some(root) = root else {
        return Err(format!(
            "spec.cleaning.keepDisks keeps disks, and agents may write an image to one of them; {cure}"
        ));
    };
    let kept = found(host).iter().filter(|disk| is_kept(host, disk));
    for disk in kept {
        if !excludes(root, disk) {
            return Err(format!(
                "spec.rootDeviceHints may mean {}, which spec.cleaning.keepDisks keeps; {cure}",
                described(disk)
            ));
        }
    }
    let is_other = |disk: &Storage| !is_kept(host, disk) && matches(root, disk).all(|known| known == Some(true));
    if !found(host).iter().any(is_other) {
        return Err(format!(
            "spec.rootDeviceHints means no known disk of this machine that is not kept; {cure}"
        ));
    }
    Ok(())
}

/// Whether hints cannot mean a disk, whatever its kernel name and its SCSI address are at the next boot.
fn excludes(root: &RootDeviceHints, disk: &Storage) -> bool {
    matches(root, disk).any(|known| known == Some(false))
}

/// For each hint that is given, whether the disk has it. `None`: it is not known, or may be another one at the next boot.
fn matches(root: &RootDeviceHints, disk: &Storage) -> impl Iterator<Item = Option<bool>> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let equal = |wanted: &Option<String>, own: &Option<String>| {
        given(wanted).map(|wanted| given(own).map(|own| KeptDisk::is_same(&own, &wanted)))
    };
    let within = |wanted: &Option<String>, own: &Option<String>| {
        given(wanted).map(|wanted| given(own).map(|own| own.to_lowercase().contains(&wanted.trim().to_lowercase())))
    };
    let unstable = |wanted: &Option<String>, own: bool| given(wanted).map(|_| own.then_some(true));
    let mut paths = disk.name.iter().chain(&disk.alternate_names);
    let by_path = paths.clone().find(|path| path.starts_with(BY_PATH));
    let device = root.device_name.as_deref().filter(|name| !name.is_empty());
    let device = match device {
        Some(name) if name.starts_with(BY_PATH) => Some(by_path.map(|path| path == name)),
        Some(name) => Some(paths.any(|path| path == name).then_some(true)),
        None => None,
    };
    let size = root.min_size_gigabytes.filter(|size| *size > 0);
    let size = size.map(|size| Some(disk.size_bytes? >= size.saturating_mul(GIBIBYTE)));
    // The agent's word for a disk that does not spin is left out.
    let spins = disk
        .rotational
        .or_else(|| disk.type_.map(|kind| kind == StorageType::Hdd));
    let rotational = root.rotational.map(|wanted| Some(spins? == wanted));
    [
        device,
        unstable(&root.hctl, disk.hctl == root.hctl),
        within(&root.model, &disk.model),
        within(&root.vendor, &disk.vendor),
        equal(&root.serial_number, &disk.serial_number),
        equal(&root.wwn, &disk.wwn),
        equal(&root.wwn_with_extension, &disk.wwn_with_extension),
        equal(&root.wwn_vendor_extension, &disk.wwn_vendor_extension),
        size,
        rotational,
    ]
    .into_iter()
    .flatten()
}
