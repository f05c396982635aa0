//! How holds because of the firmware are recorded: in a condition, and in the error while no other replaces it.

use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, ProvisioningState as State};
use metal3_runtime::plan::Observed;

use crate::names::{HELD, reason};
use crate::plan::planner::Planner;

/// The beginnings of the messages about holds. The first is of an earlier version, which made no updates.
const FIRMWARE: &str = "changes of the firmware are requested (";
pub(crate) const FIRMWARE_UNREAD: &str = "it is not known whether changes of the firmware are requested (";
pub(crate) const NOT_RECORDED: &str = "updates of the firmware cannot be recorded (";
pub(crate) const NODE_LOST: &str = "Ironic lost the node while it updated the firmware of the machine (";
pub(crate) const UPDATES_LEFT: &str = "Ironic has updates of the firmware that an earlier cleaning left (";

/// Whether the status records a hold.
pub(crate) fn is_held(status: &BareMetalHostStatus) -> bool {
    let reasons = [reason::FIRMWARE_PENDING, reason::FIRMWARE_UPDATES_LEFT];
    let is_of_firmware = |stated: &str| reasons.iter().any(|reason| reason.as_str() == stated);
    let mut conditions = status.conditions.iter();
    conditions.any(|condition| condition.type_ == HELD && is_of_firmware(&condition.reason))
}

/// Whether it is still not known what is requested. Only the condition records it, so it is kept even when this reconcile ends
/// elsewhere.
pub(crate) fn is_firmware_still_unknown(planner: &Planner<'_>) -> bool {
    let is_preparing = planner.draft.status.provisioning.state == State::Preparing;
    let is_unknown = matches!(planner.facts.firmware_components, Observed::Unknown(_));
    is_preparing && is_held(&planner.host().status) && is_unknown
}

/// Whether an error is about such a hold.
pub(crate) fn is_of_firmware(message: &str) -> bool {
    [FIRMWARE, FIRMWARE_UNREAD, NOT_RECORDED, NODE_LOST, UPDATES_LEFT]
        .iter()
        .any(|begin| message.starts_with(begin))
}
