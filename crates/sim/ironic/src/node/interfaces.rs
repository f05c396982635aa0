//! Hardware types and their interfaces, with defaults.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// The driver without machines.
pub(crate) const FAKE: &str = "fake-hardware";

/// The hardware types.
pub(crate) const DRIVERS: [&str; 4] = [FAKE, "idrac", "ipmi", "redfish"];

/// The kinds of interface.
pub(crate) const KINDS: [&str; 13] = [
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "rescue",
    "storage",
    "vendor",
];

/// The valid interfaces of a kind, the default first.
fn choices(driver: &str, kind: &str) -> &'static [&'static str] {
    match (driver, kind) {
        (_, "network" | "storage") => &["noop"],
        (FAKE, "boot") => &["fake", "redfish-virtual-media"],
        (FAKE, "deploy") => &["fake", "direct", "custom-agent", "ramdisk"],
        (FAKE, "inspect") => &["fake", "agent", "redfish", "no-inspect"],
        (FAKE, _) => &["fake"],
        (_, "console") => &["no-console"],
        (_, "deploy") => &["direct", "custom-agent", "ramdisk"],
        (_, "rescue") => &["no-rescue", "agent"],
        ("redfish", "boot") => &["redfish-virtual-media", "ipxe", "redfish-https"],
        ("redfish" | "idrac", "firmware") => &["redfish", "no-firmware"],
        ("redfish", "inspect") => &["redfish", "agent", "no-inspect"],
        ("redfish", "raid") => &["redfish", "agent", "no-raid"],
        ("redfish", _) => &["redfish"],
        ("idrac", "boot") => &["idrac-redfish-virtual-media", "ipxe"],
        ("idrac", "inspect") => &["idrac-redfish", "agent", "no-inspect"],
        ("idrac", "raid") => &["idrac-redfish", "agent", "no-raid"],
        ("idrac", _) => &["idrac-redfish"],
        ("ipmi", "boot") => &["ipxe"],
        ("ipmi", "inspect") => &["agent", "no-inspect"],
        ("ipmi", "management" | "power" | "vendor") => &["ipmitool"],
        ("ipmi", "raid") => &["no-raid", "agent"],
        ("ipmi", "bios") => &["no-bios"],
        ("ipmi", "firmware") => &["no-firmware"],
        _ => &[],
    }
}

/// Whether the field selects an interface.
pub(crate) fn is_one(field: &str) -> bool {
    field
        .strip_suffix("_interface")
        .is_some_and(|kind| KINDS.contains(&kind))
}

/// Checks the selected interfaces and sets defaults for the others.
pub(crate) fn complete(driver: &str, fields: &mut Map<String, Value>) -> Result<(), Refusal> {
    if !DRIVERS.contains(&driver) {
        return Err(Refusal::invalid(format!(
            "No valid host was found. Reason: No conductor service registered which supports driver {driver} for \
             conductor group \"\". Ensure the driver is valid and enabled."
        )));
    }
    for kind in KINDS {
        let (field, choices) = (format!("{kind}_interface"), choices(driver, kind));
        match fields.get(&field).and_then(Value::as_str) {
            Some(chosen) if choices.contains(&chosen) => {}
            Some(chosen) => {
                return Err(Refusal::invalid(format!(
                    "Could not find the following interface in the 'ironic.hardware.interfaces.{kind}' entrypoint: \
                     {chosen}. Valid interfaces are {choices:?}."
                )));
            }
            None => {
                let default = choices.first().copied().unwrap_or_default();
                fields.insert(field, default.into());
            }
        }
    }
    Ok(())
}

/// Whether an interface is one of the `no-` interfaces.
pub(crate) fn is_empty(interface: &str) -> bool {
    interface.starts_with("no-")
}
