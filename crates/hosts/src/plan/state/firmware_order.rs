//! What became of the last order to update the firmware.
//!
//! It counts as made when this process saw its cleaning end, or when each of its components has another version than before. An
//! update of which nothing shows that is made again. A cleaning of another client says nothing about it.

use std::time::Duration;

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{ErrorType, FirmwareUpdate, HostFirmwareComponents};
use metal3_ironic::model::hardware::FirmwareComponent;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::firmware::{GIVEN_UP, hold, require_recordable};
use crate::action::Action;
use crate::facts::{CleaningOrder, CleaningProgress, Read};
use crate::names::reason;
use crate::node::firmware::{self, Order};
use crate::plan::components_report::status_patch;
use crate::plan::firmware_record::{NODE_LOST, is_of_firmware};
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::wait;

/// The object with another record. `None`: the record is right, or nothing is known yet.
type Changed = Option<HostFirmwareComponents>;

/// Brings the record of an order in line with what the node shows.
// differs: `firmware-order-recorded`. The Go manager records updates after Ironic accepted them, and trusts that record.
pub(super) fn settle(planner: &mut Planner<'_>, node: &Node, object: &HostFirmwareComponents) -> PlanResult<()> {
    let changed = match Order::of(object) {
        Order::Ordered { node: of, .. } | Order::Begun { node: of } if of != node.uuid.as_str() => {
            lost(planner, node, object)?
        }
        order @ (Order::Ordered { .. } | Order::Begun { .. }) => settled(planner, node, object, &order)?,
        Order::None | Order::Failed(_) | Order::Made => {
            begun_elsewhere(planner, node, object).or_else(|| taken_over(planner, node, object))
        }
    };
    match changed {
        Some(changed) => record(planner, object, &changed),
        None => Ok(()),
    }
}

/// The cleaning of the open order, as far as this process saw it.
fn seen<'a>(planner: &Planner<'a>, node: &Node, object: &HostFirmwareComponents) -> Option<&'a CleaningOrder> {
    let order = planner.facts.cleaning_order.as_ref();
    order.filter(|order| order.node == node.uuid && firmware::covers(&order.files, object))
}

fn settled(planner: &Planner<'_>, node: &Node, object: &HostFirmwareComponents, order: &Order) -> PlanResult<Changed> {
    let now = planner.facts.now;
    if firmware::is_worked_on(node) {
        let begins = matches!(order, Order::Ordered { .. }) && firmware::is_under_way(object, node);
        return Ok(begins.then(|| firmware::with_begun(object, &node.uuid, now)));
    }
    let seen = seen(planner, node, object);
    let progress = seen.map(|order| order.progress);
    let has_failed = matches!(node.provision_state, S::CleanFailed | S::ServiceFailed);
    if has_failed || progress == Some(CleaningProgress::Failed) {
        return Ok(Some(failed(seen, object, now)));
    }
    if !matches!(node.provision_state, S::Manageable | S::Available | S::Active) {
        return Ok(None);
    }
    if let Some(left) = planner.facts.unanswered {
        return Err(Decision::Wait(wait::on_lost_response(left)));
    }
    // An operator may have ended the cleaning before its step for the firmware, while this process saw nothing.
    let is_seen = progress == Some(CleaningProgress::Begun) && seen.is_some_and(|order| order.left.is_some());
    if let Order::Ordered { changed, .. } = order
        && !is_seen
        && !firmware::has_changed(changed, node)
    {
        return Ok(Some(firmware::without_order(object, &firmware::ordered(object), now)));
    }
    let versions = versions(planner)?;
    let unproven = firmware::unproven(object, versions);
    Ok(Some(if is_seen || unproven.is_empty() {
        firmware::with_success(object, versions, now)
    } else {
        firmware::without_order(object, &unproven, now)
    }))
}

fn versions<'a>(planner: &Planner<'a>) -> PlanResult<&'a [FirmwareComponent]> {
    match planner.facts.versions {
        Observed::Present(versions) => Ok(versions),
        Observed::Absent => Ok(&[]),
        Observed::Unknown(_) => Err(Decision::read(Read::Versions)),
    }
}

/// After a failure what this process saw end stays made. What the node shows may be left of an earlier cleaning.
fn failed(seen: Option<&CleaningOrder>, object: &HostFirmwareComponents, now: Time) -> HostFirmwareComponents {
    let lost = firmware::not_ended(object, seen.and_then(|order| order.left.as_ref()));
    if lost.is_empty() {
        firmware::with_success(object, &[], now)
    } else {
        firmware::with_failure(object, &lost, now)
    }
}

/// Of an order whose node Ironic has lost: its BMC may still write the firmware, which a cleaning would cut by a reboot.
fn lost(planner: &mut Planner<'_>, node: &Node, object: &HostFirmwareComponents) -> PlanResult<Changed> {
    let now = planner.facts.now;
    let versions = match node.provision_state {
        S::Manageable | S::Available | S::Active => versions(planner)?,
        _ => &[],
    };
    let unproven = firmware::unproven(object, versions);
    if unproven.is_empty() && !firmware::ordered(object).is_empty() {
        return Ok(Some(firmware::with_success(object, versions, now)));
    }
    let left = left_of_lost(node, object, now);
    if left.is_zero() {
        return Ok(Some(firmware::without_order(object, &unproven, now)));
    }
    Err(hold_lost(planner, &unproven, left))
}

/// How long the BMC may still write the firmware of the machine. The update began after its order, which the cleaning may have made
/// wait, and before Ironic lost the node, in whose place this one was created.
fn left_of_lost(node: &Node, object: &HostFirmwareComponents, now: Time) -> Duration {
    let ordered = firmware::ordered_at(object).map(|at| at.get());
    let since = ordered.max(node.created_at);
    let passed = since.and_then(|since| (now.get() - since).to_std().ok());
    GIVEN_UP.saturating_sub(passed.unwrap_or(Duration::ZERO))
}

fn hold_lost(planner: &mut Planner<'_>, updates: &[FirmwareUpdate], left: Duration) -> Decision {
    let message = format!(
        "{NODE_LOST}{}), so the machine is not touched until its BMC must have ended that, about two hours after the node was lost; \
         what is not made then is made again",
        firmware::names_text(updates)
    );
    hold(planner, reason::FIRMWARE_UPDATES_LEFT, message, left)
}

/// Requires that the BMC of a machine whose node Ironic lost does not write its firmware any more.
pub(super) fn require_no_lost_order(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let Observed::Present(object) = planner.facts.firmware_components else {
        return Ok(());
    };
    let is_of_other = match Order::of(object) {
        Order::Ordered { node: of, .. } | Order::Begun { node: of } => of != node.uuid.as_str(),
        Order::None | Order::Failed(_) | Order::Made => false,
    };
    let left = left_of_lost(node, object, planner.facts.now);
    if !is_of_other || left.is_zero() {
        return Ok(());
    }
    Err(hold_lost(planner, &firmware::ordered(object), left))
}

/// The order of a cleaning that the object does not record: another manager ended before it wrote the record, or the object was
/// created once more.
fn begun_elsewhere(planner: &Planner<'_>, node: &Node, object: &HostFirmwareComponents) -> Changed {
    let due = firmware::due(object);
    let files = firmware::of_all(&due);
    let is_begun =
        !due.is_empty() && firmware::is_worked_on(node) && files.is_subset(&firmware::in_steps(node.steps_under_way()));
    is_begun.then(|| {
        let ordered = firmware::with_order(object, &due, (node, &[]), planner.facts.now);
        firmware::with_begun(&ordered, &node.uuid, planner.facts.now)
    })
}

/// What a Go manager recorded counts as made unless a preparation or a service failed that it may belong to: it records updates when it
/// begins with them. A failed service is left in Ironic; its error on a running machine says nothing of older updates.
fn taken_over(planner: &Planner<'_>, node: &Node, object: &HostFirmwareComponents) -> Changed {
    let recorded = planner.recorded_error(ErrorType::Preparation);
    let is_of_operation = |message: &&str| !is_of_firmware(message) && !firmware::is_of_updates(message);
    let is_failed = matches!(node.provision_state, S::CleanFailed | S::ServiceFailed);
    let has_failed = is_failed || recorded.filter(is_of_operation).is_some();
    let doubtful = firmware::of_others(object, node);
    let may_have_failed = planner.facts.began_elsewhere && has_failed && !doubtful.is_empty();
    may_have_failed.then(|| firmware::with_failure(object, &doubtful, planner.facts.now))
}

/// Writes the record before anything else.
fn record(
    planner: &mut Planner<'_>,
    object: &HostFirmwareComponents,
    changed: &HostFirmwareComponents,
) -> PlanResult<()> {
    let Some(patch) = status_patch(object, changed) else {
        return Ok(());
    };
    require_recordable(planner)?;
    planner.add(Action::RecordUpdates(patch));
    Err(Decision::Wait(Next::Requeue))
}
