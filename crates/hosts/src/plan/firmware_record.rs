//! How pending changes of the firmware are recorded: in a condition, and in the error while no other replaces it.

use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, ProvisioningState as State};
use metal3_runtime::plan::Observed;

use crate::names::{HELD, reason};
use crate::plan::planner::Planner;

/// The beginnings of the messages about updates of the firmware.
pub(crate) const FIRMWARE: &str = "changes of the firmware are requested (";
pub(crate) const FIRMWARE_UNREAD: &str = "it is not known whether changes of the firmware are requested (";

/// Whether the status records that changes of the firmware are pending.
pub(crate) fn is_held(status: &BareMetalHostStatus) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|condition| condition.type_ == HELD && condition.reason == reason::FIRMWARE_PENDING.as_str())
}

/// Whether that is still so, as far as this reconcile has read. Only the condition records it, so it is kept even when this
/// reconcile ends elsewhere.
pub(crate) fn is_firmware_still_pending(planner: &Planner<'_>) -> bool {
    let is_preparing = planner.draft.status.provisioning.state == State::Preparing;
    is_preparing && is_held(&planner.host().status) && planner.facts.firmware != Observed::Absent
}

/// Whether an error is about these changes.
pub(crate) fn is_of_firmware(message: &str) -> bool {
    [FIRMWARE, FIRMWARE_UNREAD]
        .iter()
        .any(|begin| message.starts_with(begin))
}
