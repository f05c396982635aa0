//! Rules about single members of the spec.

use std::collections::BTreeSet;

use metal3_domain::ids::reads_as_uuid;

use super::Host;
use crate::metal3::rules::{check_secret_namespace, text};
use crate::metal3::v1alpha1::NetworkInterface;
use crate::rules::{FieldPath, Findings};

pub(super) fn firmware_is_unset(host: &Host<'_>, findings: &mut Findings) {
    if host.new.spec.firmware.is_some() {
        findings.forbidden(
            "spec.firmware",
            "the Firmware field is no longer supported",
            "use a HostFirmwareSettings of the same name",
        );
    }
}

pub(super) fn secrets_are_in_own_namespace(host: &Host<'_>, findings: &mut Findings) {
    let spec = &host.new.spec;
    for (path, secret) in [
        ("spec.userData", &spec.user_data),
        ("spec.networkData", &spec.network_data),
        ("spec.metaData", &spec.meta_data),
    ] {
        check_secret_namespace(path, &host.new.metadata, secret.as_ref(), findings);
    }
}

/// The API server accepts fewer characters; this check is for objects that did not pass through it.
pub(super) fn name_has_known_characters(host: &Host<'_>, findings: &mut Findings) {
    let name = text(host.new.metadata.name.as_ref());
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.chars().all(known) {
        findings.invalid(
            "metadata.name",
            name,
            "BareMetalHost resource name cannot contain characters other than [A-Za-z0-9._-]",
            "create the host under another name",
        );
    }
}

pub(super) fn name_is_no_uuid(host: &Host<'_>, findings: &mut Findings) {
    let name = text(host.new.metadata.name.as_ref());
    if reads_as_uuid(name) {
        findings.invalid(
            "metadata.name",
            name,
            "BareMetalHost resource name cannot be a UUID",
            "create the host under another name",
        );
    }
}

pub(super) fn root_device_is_a_path(host: &Host<'_>, findings: &mut Findings) {
    let hints = host.new.spec.root_device_hints.as_ref();
    let device = hints.map_or("", |hints| text(hints.device_name.as_ref()));
    if device.is_empty() {
        return;
    }
    let problem = match device.strip_prefix("/dev/") {
        None => "device name of root device hint must be a /dev/ path",
        Some(below) if below.strip_prefix("disk/by-path/").unwrap_or(below).contains('/') => {
            "device name of root device hint must be path in /dev/ or /dev/disk/by-path/"
        }
        Some(_) => return,
    };
    findings.invalid(
        "spec.rootDeviceHints.deviceName",
        device,
        problem,
        "write a path such as /dev/disk/by-path/pci-0000:01:00.0-nvme-1",
    );
}

pub(super) fn power_off_is_possible(host: &Host<'_>, findings: &mut Findings) {
    if host.new.spec.disable_power_off == Some(true) && !host.new.spec.online {
        findings.forbidden(
            "spec.disablePowerOff",
            "node can't simultaneously have online set to false and have power off disabled",
            "set online to true, or allow the host to be powered off",
        );
    }
}

/// Name and MAC address of each interface, with its path.
fn identities<'a>(host: &Host<'a>) -> impl Iterator<Item = (FieldPath, &'a str, &'a str)> {
    let identity = |(position, interface): (usize, &'a NetworkInterface)| {
        let path = FieldPath::new("spec.networkInterfaces").index(position);
        (
            path,
            text(interface.name.as_ref()),
            text(interface.mac_address.as_ref()),
        )
    };
    host.new.spec.network_interfaces.iter().enumerate().map(identity)
}

/// differs: `kind-unserved`. The Go manager does not read them, either, and says nothing.
pub(super) fn network_interfaces_are_unserved(host: &Host<'_>, findings: &mut Findings) {
    if !host.new.spec.network_interfaces.is_empty() {
        findings.warn(
            "spec.networkInterfaces",
            "no controller serves a HostNetworkAttachment: no switch is configured for it",
            "connect the interfaces yourself, or remove the field",
        );
    }
}

pub(super) fn interfaces_are_identified(host: &Host<'_>, findings: &mut Findings) {
    for (path, name, mac) in identities(host) {
        if name.is_empty() && mac.is_empty() {
            findings.required(path, "must specify either name or macAddress", "write one of the two");
        }
    }
}

pub(super) fn interfaces_are_identified_once(host: &Host<'_>, findings: &mut Findings) {
    for (path, name, mac) in identities(host) {
        if !name.is_empty() && !mac.is_empty() {
            findings.forbidden(
                path,
                "name and macAddress are mutually exclusive",
                "remove one of the two",
            );
        }
    }
}

pub(super) fn interfaces_are_unique(host: &Host<'_>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (path, name, mac) in identities(host) {
        // The rows above report an interface with both or neither.
        let identity = match (name, mac) {
            ("", identity) | (identity, "") if !identity.is_empty() => identity,
            _ => continue,
        };
        if !seen.insert(identity.to_lowercase()) {
            findings.duplicate(
                path,
                identity,
                "duplicate interface selector",
                "remove one of the entries",
            );
        }
    }
}
