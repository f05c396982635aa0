//! The updates of the firmware that the HostFirmwareComponents of a host ask for.
//!
//! An order is recorded in their status before it is sent, and stays open until it is known what became of it
//! ([`super::firmware_order`]).
//!
//! Whether there are such objects may be unknown: without the rights to read them, or without their kind. A host that
//! needs a cleaning waits then.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{ErrorType, FirmwareUpdate, HostFirmwareComponents};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

use super::firmware_order;
use crate::action::Action;
use crate::facts::Read;
use crate::names::reason;
use crate::node::firmware::{self, Files, Machine, Order};
use crate::plan::components_report::status_patch;
use crate::plan::error::{Failure, kind_in};
use crate::plan::firmware_record::{FIRMWARE_UNREAD, NOT_RECORDED, UPDATES_LEFT, is_held, is_of_firmware};
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::{status, wait};

/// How often rights that are missing are tried again: nothing reports that they are granted.
pub(super) const RECHECK: Duration = Duration::from_mins(5);
/// Ironic gives up updates that have not ended after two hours, also those that an earlier cleaning left.
pub(super) const GIVEN_UP: Duration = Duration::from_mins(130);

/// What is known of the HostFirmwareComponents.
enum Known<'a> {
    Object(&'a HostFirmwareComponents),
    None,
    /// Why nothing is known: a right, or the kind.
    Not(&'a str),
}

fn known<'a>(planner: &Planner<'a>) -> PlanResult<Known<'a>> {
    let facts = planner.facts;
    match &facts.firmware_components {
        Observed::Present(object) => Ok(Known::Object(object)),
        Observed::Absent => Ok(Known::None),
        Observed::Unknown(UnknownReason::Unreadable(why)) => Ok(Known::Not(why)),
        Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead) => {
            Err(Decision::read(Read::FirmwareComponents))
        }
    }
}

/// Brings the record of an order in line with what the node shows.
pub(super) fn settle(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let status = &planner.host().status;
    let has_failed = node.provision_state == S::CleanFailed || status.error_type == Some(ErrorType::Preparation);
    let object = match known(planner)? {
        Known::Not(why) if has_failed || is_held(status) || planner.facts.began_elsewhere => {
            return Err(unknown(planner, why));
        }
        Known::Not(_) | Known::None => None,
        Known::Object(object) => Some(object),
    };
    if let Some(object) = object {
        firmware_order::settle(planner, node, object)?;
    }
    if is_of_firmware(&planner.host().status.error_message) && node.provision_state == S::CleanFailed {
        // What was waited for is over. The record must not be taken for a failure of the cleaning.
        status::clear(&mut planner.draft.status);
        return Err(Decision::Wait(Next::Requeue));
    }
    Ok(())
}

/// Requires that the API server let this process write the record, as far as is known.
pub(super) fn require_recordable(planner: &mut Planner<'_>) -> PlanResult<()> {
    if !planner.facts.is_firmware_status_refused {
        return Ok(());
    }
    let message = format!(
        "{NOT_RECORDED}the account of this program may not patch hostfirmwarecomponents/status.metal3.io), so none is made, and the \
         host is not made available; an administrator of the cluster grants that right, as the roles of the release do"
    );
    Err(hold(planner, reason::FIRMWARE_PENDING, message, RECHECK))
}

/// Whether an available host has updates that are not made. It costs no read.
pub(super) fn is_due(planner: &Planner<'_>) -> bool {
    let object = planner.facts.firmware_components.present();
    object.is_some_and(|object| {
        let is_open = Order::of(object).is_open() && !firmware::requested(object).is_empty();
        is_open || !firmware::due(object).is_empty()
    })
}

/// The updates that a cleaning must make. A host with updates that its machine cannot have is rejected.
pub(super) fn due(planner: &Planner<'_>, node: &Node) -> PlanResult<Vec<FirmwareUpdate>> {
    let Known::Object(object) = known(planner)? else {
        return Ok(Vec::new());
    };
    let due = firmware::due(object);
    if due.is_empty() {
        return Ok(due);
    }
    let components = match planner.facts.versions {
        Observed::Present(components) => components,
        Observed::Absent => &[],
        Observed::Unknown(_) => return Err(Decision::read(Read::Versions)),
    };
    let hosts = &planner.facts.settings.image_hosts;
    // differs: `firmware-invalid-updates`. The Go manager compares the names alone.
    let invalid = firmware::invalid(
        &due,
        Machine {
            node,
            components,
            hosts,
        },
    );
    if invalid.is_empty() {
        return Ok(due);
    }
    let next = wait::on_user("its HostFirmwareComponents must be changed");
    let message = firmware::unusable_text(&invalid);
    Err(Decision::Fail(Failure::until(ErrorType::Preparation, message, next)))
}

/// The updates that a service of a running machine must make. Those that its machine cannot have, or that cannot be recorded, are
/// none.
pub(super) fn for_service(planner: &Planner<'_>, node: &Node) -> PlanResult<Vec<FirmwareUpdate>> {
    let object = planner.facts.firmware_components.present();
    let is_asked = object.is_some_and(|object| !firmware::due(object).is_empty());
    if !is_asked || planner.facts.is_firmware_status_refused {
        return Ok(Vec::new());
    }
    match planner.facts.versions {
        Observed::Unknown(UnknownReason::NotRead | UnknownReason::NotListed) => {
            return Err(Decision::read(Read::ReportedVersions));
        }
        Observed::Unknown(_) => return Ok(Vec::new()),
        Observed::Present(_) | Observed::Absent => {}
    }
    match due(planner, node) {
        Err(Decision::Fail(_)) => Ok(Vec::new()),
        due => due,
    }
}

/// Brings the record of the order of a service in line with what its node shows.
pub(super) fn settle_service(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let Some(object) = planner.facts.firmware_components.present().copied() else {
        return Ok(());
    };
    // A service of another client is left to it, but not that of the manager before this process. What cannot be recorded keeps no
    // machine off.
    let is_taken_over = Order::of(object).is_open() || planner.facts.began_elsewhere;
    if !is_taken_over || planner.facts.is_firmware_status_refused {
        return Ok(());
    }
    firmware_order::settle(planner, node, object)
}

/// Requires that it is known whether updates are requested: those that another manager began with may not have ended.
// differs: `firmware-unknown`. The Go manager does not start without the rights.
pub(super) fn require_known(planner: &mut Planner<'_>) -> PlanResult<()> {
    match known(planner)? {
        Known::Not(why) => Err(unknown(planner, why)),
        Known::Object(_) | Known::None => Ok(()),
    }
}

/// Requires that the objects which ask for this cleaning could be read again, unless they were not known before.
pub(super) fn require_readable(planner: &mut Planner<'_>) -> PlanResult<()> {
    match planner.facts.unreadable {
        Some(why) => Err(unknown(planner, why)),
        None => Ok(()),
    }
}

fn unknown(planner: &mut Planner<'_>, why: &str) -> Decision {
    let message = format!(
        "{FIRMWARE_UNREAD}{why}), so the host is not cleaned and not made available; an administrator of the cluster corrects that, as \
         the roles and definitions of the release do"
    );
    hold(planner, reason::FIRMWARE_PENDING, message, RECHECK)
}

/// Another error may replace this one, and does not replace the condition.
pub(super) fn hold(planner: &mut Planner<'_>, reason: Reason, message: String, recheck: Duration) -> Decision {
    planner.withheld = Some(Withheld {
        reason,
        message: message.clone(),
    });
    let next = wait::for_time(recheck, "what holds the updates of the firmware is looked at again");
    Decision::Fail(Failure::until(kind_in(planner.state()), message, next))
}

/// Adds the record of an order before the requests of a plan, which follow it.
pub(super) fn record_order(planner: &mut Planner<'_>, node: &Node, updates: &[FirmwareUpdate]) -> PlanResult<()> {
    let Known::Object(object) = known(planner)? else {
        return Ok(());
    };
    let versions = planner.facts.versions.present().copied().unwrap_or_default();
    let ordered = firmware::with_order(object, updates, (node, versions), planner.facts.now);
    if let Some(patch) = status_patch(object, &ordered) {
        planner.add_first(Action::RecordUpdates(patch));
    }
    Ok(())
}

/// Requires that an operation that begins with these updates goes on with no other one: Ironic does with those that an earlier
/// cleaning left, until it gives them up.
pub(in crate::plan) fn require_none_left(planner: &mut Planner<'_>, node: &Node, first: &Files) -> PlanResult<()> {
    if !firmware::leaves_others(node, first) {
        return Ok(());
    }
    let left = GIVEN_UP.saturating_sub(planner.facts.updates_left_for.unwrap_or_default());
    if left.is_zero() {
        // It discards them when it looks at them the next time.
        return Ok(());
    }
    let message = format!(
        "{UPDATES_LEFT}{}), which it goes on with in each operation; the machine is not touched until Ironic gives them up, about two \
         hours after they began",
        firmware::left_text(node)
    );
    Err(hold(planner, reason::FIRMWARE_UPDATES_LEFT, message, left))
}

/// The error of a node that failed; of a cleaning, with the updates that it was for.
pub(super) fn failure_of(planner: &Planner<'_>, node: &Node) -> String {
    let error = node.last_error.as_deref().unwrap_or("no details");
    match failed_updates(planner, node).filter(|_| node.provision_state == S::CleanFailed) {
        Some(names) => firmware::failure_text(&names, error),
        None => error.to_owned(),
    }
}

/// The components whose updates failed.
pub(super) fn failed_updates(planner: &Planner<'_>, node: &Node) -> Option<String> {
    let object = planner.facts.firmware_components.present();
    let object = object.filter(|_| matches!(node.provision_state, S::CleanFailed | S::ServiceFailed));
    match object.map(|object| Order::of(object)) {
        Some(Order::Failed(names)) => Some(names),
        _ => None,
    }
}
