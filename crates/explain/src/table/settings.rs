//! Reasons of HostFirmwareSettings.

use super::row::{Row, Severity, done, user};

/// What a user corrects, and what breaks nothing.
const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

pub(super) const ROWS: &[Row] = &[
    done(
        "Success",
        "BIOS settings were compared",
        "`ChangeDetected` of HostFirmwareSettings says whether the machine has other values, and its message which.",
    ),
    warning([
        "ConfigurationError",
        "BIOS settings are invalid",
        "The machine has no such setting, or cannot have the value: the message names each and what is allowed. Or Ironic has no settings of the machine. Nothing is changed.",
        "Correct `spec.settings` of the HostFirmwareSettings. Without settings in Ironic, wait for the next cleaning, or use a BMC whose driver supports them.",
    ]),
    warning([
        "ValidationFailed",
        "BIOS settings are invalid",
        "The condition `Valid` of the HostFirmwareSettings has become false, or names another setting.",
        "Correct `spec.settings` of the HostFirmwareSettings.",
    ]),
];
