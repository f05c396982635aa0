//! Reasons of HostFirmwareComponents.

use super::row::{Row, Severity, done, passes, user};

/// What a user corrects, and what breaks nothing.
const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

pub(super) const ROWS: &[Row] = &[
    done(
        "OK",
        "Updates were compared",
        "`ChangeDetected` of HostFirmwareComponents says whether updates are not made yet, and its message which and when.",
    ),
    warning([
        "InvalidComponent",
        "Updates are invalid",
        "The machine has no such component, its driver has no interface for updates, or the URL is not valid or not allowed: the message names each. Nothing is changed.",
        "Correct `spec.updates` of the HostFirmwareComponents.",
    ]),
    passes(
        "UpdateOrdered",
        "Updates are ordered",
        "The order is recorded before it is sent to Ironic; the condition ends when the node shows what became of it.",
        "If it lasts, see whether Ironic responds, and the error of the host.",
    ),
    passes(
        "UpdateBegun",
        "Ironic makes the updates",
        "Ironic cleans the machine with step `firmware.update`, which is not aborted once it has begun.",
        "If it lasts longer than two hours, see Ironic's log and the tasks of the BMC.",
    ),
    warning([
        "UpdateFailed",
        "Updates failed",
        "The cleaning with the updates failed. It is repeated after a delay that doubles, and the error of the host has Ironic's reason.",
        "Do what the error of the host says, or take the update out of `spec.updates`.",
    ]),
    done(
        "UpdateMade",
        "Updates were made",
        "Ironic reported success. If the BMC reports the versions of before, the message says so.",
    ),
    warning([
        "ValidationFailed",
        "Updates are invalid",
        "The condition `Valid` of the HostFirmwareComponents has become false, or names another update.",
        "Correct `spec.updates` of the HostFirmwareComponents.",
    ]),
];
