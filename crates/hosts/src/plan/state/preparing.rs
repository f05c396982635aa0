//! `preparing`: makes the RAID volumes, changes the BIOS settings, selects the root device and creates the ports. Updates of
//! the firmware are not supported, and those that a Go manager may have begun with are reported.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;

use super::cleaning;
use super::graph::Trigger;
use super::host_ports::ensure_ports;
use super::register::{ensure_registered, invalid};
use super::shared::require_idle;
use super::volumes::{self, root_device_hints};
use crate::facts::Read;
use crate::names::reason;
use crate::node::profile;
use crate::plan::error::Failure;
use crate::plan::firmware_record::{FIRMWARE, FIRMWARE_UNREAD, is_held, is_of_firmware};
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::{status, wait};

/// How often HostFirmwareComponents are read again: nothing watches them, and a user removes what they ask for.
const FIRMWARE_RECHECK: Duration = Duration::from_mins(5);
pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    let node = ensure_registered(planner)?;
    volumes::observe_cleaning(planner, node)?;
    require_no_firmware_change(planner, node)?;
    volumes::require_known(planner, node)?;
    require_idle(planner, node)?;
    ensure_ports(planner, node)?;
    cleaning::clean(planner, node)?;
    let hints = root_device_hints(planner)?;
    planner.draft.status.provisioning.root_device_hints = hints;
    if planner.host().status.hardware_profile.is_none() {
        let chosen = profile::choose(planner.host()).map_err(invalid)?;
        planner.draft.status.hardware_profile = Some(chosen.name().to_owned());
        planner.record_event(reason::PROFILE_SET, format!("Hardware profile set: {}", chosen.name()));
    }
    Ok(Decision::ChangeState(Trigger::Prepared))
}

/// Requires that a preparation that failed, or that another process may have begun with, had no firmware to update. This program
/// changes none: a Go manager began, and would begin again.
fn require_no_firmware_change(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let status = &planner.host().status;
    let has_failed = node.provision_state == S::CleanFailed || status.error_type == Some(ErrorType::Preparation);
    if !has_failed && !is_held(status) && !planner.facts.began_elsewhere {
        return Ok(());
    }
    let message = match &planner.facts.firmware {
        // differs: `host-firmware-pending`. The Go manager makes the changes.
        Observed::Present(pending) => format!(
            "{FIRMWARE}{pending}), and this program updates no firmware, so the host is not made available; remove them from the \
             spec of this object, or return to the Go manager, which makes them"
        ),
        Observed::Unknown(UnknownReason::Unreadable(rights)) => format!(
            "{FIRMWARE_UNREAD}the account of this program may not {rights}), so the host is not made available; an \
             administrator of the cluster grants that right, as the roles of the release do"
        ),
        Observed::Unknown(UnknownReason::NotRead | UnknownReason::NotListed | UnknownReason::NotPermitted) => {
            return Err(Decision::read(Read::Firmware));
        }
        Observed::Absent if is_of_firmware(&status.error_message) => {
            // They were removed. The record must not be taken for a failure of an operation.
            status::clear(&mut planner.draft.status);
            return Err(Decision::Wait(Next::Requeue));
        }
        Observed::Absent => return Ok(()),
    };
    // Another error may replace this one, and does not replace the condition.
    planner.withheld = Some(Withheld {
        reason: reason::FIRMWARE_PENDING,
        message: message.clone(),
    });
    let next = wait::for_time(FIRMWARE_RECHECK, "the HostFirmwareComponents are read again");
    Err(Decision::Fail(Failure::until(ErrorType::Preparation, message, next)))
}
