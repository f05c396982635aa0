//! Reasons of services of running machines.

use super::row::{Row, passes, warning};

pub(super) const BEGUN: Row = passes(
    "ServiceBegun",
    "The firmware of a running machine is changed",
    "A reboot was requested, and the HostUpdatePolicy of the host lets it change BIOS settings or firmware. The system starts after that.",
    "Wait. To end it before, take the change or the policy back.",
);

pub(super) const SKIPPED: Row = warning([
    "ServiceSkipped",
    "The machine is started without the changes of its firmware",
    "What its HostUpdatePolicy lets a reboot change cannot be changed now, or the machine did not take it. The message names the reason.",
    "Correct what the message names, and reboot the host once more.",
]);
