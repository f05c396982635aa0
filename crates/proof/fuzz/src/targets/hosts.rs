//! Annotations of hosts.

use metal3_api::metal3::v1alpha1::{
    BareMetalHostStatus, DetachRequest, DetachedDelete, HardwareDetails, RebootMode, RebootRequest,
};
use metal3_hosts::node::hints;
use serde_json::{Map, Value, json};

use crate::target::{Answer, Target, prints_what_it_reads, text};

static TARGETS: [Target; 5] = [
    Target::json(
        "reboot-annotation",
        &["mode", "force", "soft", "hard", "Mode", "FORCE"],
        reboot,
        prints_what_it_reads,
        &["hard", "true"],
    ),
    Target::json(
        "detached-annotation",
        &["deleteAction", "force", "delay", "delete", "DeleteAction"],
        detached,
        prints_what_it_reads,
        &["delay", "true"],
    ),
    Target::json(
        "status-annotation",
        STATUS,
        status,
        prints_what_it_reads,
        &["softwareRAIDVolumes", "triedCredentials", "errorCount"],
    ),
    Target::json(
        "hardware-annotation",
        HARDWARE,
        hardware,
        prints_what_it_reads,
        &["systemVendor", "alternateNames", "clockMegahertz"],
    ),
    Target::json(
        "root-device-hints",
        HINTS,
        root_device,
        prints_what_it_reads,
        &["by_path", "rotational", "size"],
    ),
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

fn reboot(input: &[u8]) -> Answer {
    Answer::of(RebootRequest::parse(&text(input)), |request| {
        let mode = match request.mode {
            RebootMode::Soft => "soft",
            RebootMode::Hard => "hard",
        };
        json!({ "mode": mode, "force": request.force }).to_string()
    })
}

fn detached(input: &[u8]) -> Answer {
    let request = DetachRequest::parse(&text(input));
    let delete = match request.delete {
        DetachedDelete::Delay => "delay",
        DetachedDelete::Delete => "delete",
    };
    Answer::Accepted(json!({ "deleteAction": delete, "force": request.force }).to_string())
}

const STATUS: &[&str] = &[
    "operationalStatus",
    "errorType",
    "errorMessage",
    "errorCount",
    "provisioning",
    "state",
    "ID",
    "image",
    "url",
    "checksum",
    "raid",
    "hardwareRAIDVolumes",
    "softwareRAIDVolumes",
    "level",
    "firmware",
    "rootDeviceHints",
    "deviceName",
    "goodCredentials",
    "triedCredentials",
    "credentials",
    "credentialsVersion",
    "operationHistory",
    "register",
    "start",
    "end",
    "2026-01-31T12:00:00Z",
    "poweredOn",
    "lastUpdated",
    "hardware",
    "provisioned",
    "OK",
    "bootMode",
    "UEFI",
];
const HARDWARE: &[&str] = &[
    "systemVendor",
    "manufacturer",
    "productName",
    "serialNumber",
    "firmware",
    "bios",
    "date",
    "vendor",
    "version",
    "ramMebibytes",
    "nics",
    "name",
    "mac",
    "ip",
    "speedGbps",
    "vlans",
    "id",
    "vlanId",
    "pxe",
    "storage",
    "type",
    "SSD",
    "sizeBytes",
    "alternateNames",
    "wwn",
    "rotational",
    "cpu",
    "arch",
    "model",
    "clockMegahertz",
    "flags",
    "count",
    "hostname",
];
const HINTS: &[&str] = &[
    "by_path",
    "name",
    "s== /dev/sda",
    "hctl",
    "model",
    "<in> x",
    "vendor",
    "serial",
    "size",
    ">= 10",
    "rotational",
    "true",
    "false",
    "wwn",
    "s== ",
];

fn encoded<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("unwritable: {error}"))
}

fn status(input: &[u8]) -> Answer {
    Answer::of(serde_json::from_slice::<BareMetalHostStatus>(input), |status| {
        encoded(&status)
    })
}

fn hardware(input: &[u8]) -> Answer {
    Answer::of(serde_json::from_slice::<HardwareDetails>(input), |details| {
        encoded(&details)
    })
}

/// What a node records, back into hints and again into a record.
fn root_device(input: &[u8]) -> Answer {
    let map: Map<String, Value> = match serde_json::from_slice(input) {
        Ok(map) => map,
        Err(error) => return Answer::Rejected(error.to_string()),
    };
    Answer::of(hints::to_ironic(&hints::from_ironic(&map)), |map| encoded(&map))
}
