//! What the decisions of several states share.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{ErrorType, OperationalStatus, ProvisioningState as State};
use metal3_domain::uri::public_text;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_ironic::slots::SlotState;
use metal3_runtime::plan::Observed;

use super::{firmware, graph};
use crate::action::{Count, Request};
use crate::facts::{LOCK_THRESHOLD, Read};
use crate::node::BmcEndpoint;
use crate::node::cleaning::is_kept_disk_postponed;
use crate::node::failed_step::FIRMWARE_FAILED;
use crate::plan::conditions::POWER_FAULT;
use crate::plan::error::{FAULT, Failure, IN_IRONIC, MAINTENANCE, POWER_FAILURE, is_of_inoperable_node, kind_in};
use crate::plan::login;
use crate::plan::ownership::may_switch_power;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::{require_live, require_ownership};
use crate::plan::{status, wait};

/// Requires that Ironic operates the node; records a fault or maintenance (differs: `host-maintenance-reported`).
pub(super) fn require_operable(planner: &Planner<'_>, node: &Node) -> PlanResult<()> {
    let failure = |message| Err(report_inoperable(planner, message));
    match (node.fault.as_deref(), node.maintenance) {
        (Some(POWER_FAULT), _) => {
            let unproven = login::unproven(&planner.draft.status).map(|login| format!(". {login}"));
            failure(format!(
                "{POWER_FAILURE}; check its address, network and credentials. Ironic continues once the BMC responds{}",
                unproven.unwrap_or_default()
            ))
        }
        (Some(fault), _) => failure(format!(
            "{FAULT}{fault}): {}; correct it and end the node's maintenance in Ironic",
            node.last_error.as_deref().unwrap_or("no details")
        )),
        (None, true) => Err(report_maintenance(planner, node)),
        (None, false) => Ok(()),
    }
}

fn report_maintenance(planner: &Planner<'_>, node: &Node) -> Decision {
    let reason = node.maintenance_reason.as_deref().unwrap_or("no reason given");
    let message = format!("{MAINTENANCE}{reason}), so Ironic does not operate it; end its maintenance in Ironic");
    report_inoperable(planner, message)
}

fn report_inoperable(planner: &Planner<'_>, message: String) -> Decision {
    let kind = kind_in(planner.state());
    // A deletion must not wait for ever: its attempts are counted.
    if planner.is_deleting() {
        return planner.fail_with_backoff(Failure::retryable(kind, message));
    }
    Decision::Fail(Failure::until(kind, message, wait::on_node("the node has a fault")))
}

/// Requires a node without an instance that is not busy; recovers it from a failed state.
pub(super) fn require_idle(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    match &node.provision_state {
        S::Manageable if node.fault.as_deref() == Some(CLEAN_FAULT) => Err(repeat_cleaning(planner, node)?),
        S::Manageable | S::Available => require_operable(planner, node),
        S::CleanFailed | S::InspectFailed | S::AdoptFailed => {
            require_recoverable(planner, node)?;
            let error = firmware::failure_of(planner, node);
            planner.retry_node_failure(Failure::retryable(ErrorType::Preparation, error))?;
            Err(recover(planner, node)?)
        }
        S::CleanWait => Err(wait_for_cleaning(planner, node)?),
        S::InspectWait => Err(wait_for_agent(planner, node, "Ironic is busy")?),
        S::Cleaning | S::Inspecting | S::Deleting | S::Adopting => Err(Decision::Wait(wait::on_node("Ironic is busy"))),
        _ => Err(unexpected_state(
            planner,
            node,
            "Undeploy the node in Ironic if its system is not needed",
        )),
    }
}

/// Ironic goes on after a BIOS step that fails at once: it makes the node manageable, with the fault of the failed cleaning.
// differs: `host-clean-fault-ended`. The Go manager orders the next cleaning, which Ironic refuses.
fn repeat_cleaning(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    require_own_maintenance(planner, node)?;
    let error = node.last_error.as_deref().or(node.maintenance_reason.as_deref());
    let error = error.unwrap_or("no details").to_owned();
    planner.retry_node_failure(Failure::retryable(ErrorType::Preparation, error))?;
    require_ownership(planner, node, may_switch_power(planner, node))?;
    end_own_maintenance(planner, node, CLEAN_FAULT)?;
    clear_error(planner);
    Ok(Decision::Wait(wait::on_node(
        "the maintenance of the failed cleaning ends",
    )))
}

/// Waits for a cleaning that waits for its agent.
pub(super) fn wait_for_cleaning(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    // The user keeps a disk since, which nothing has erased yet. The node takes the change once the cleaning has failed.
    let is_automated = node.target_provision_state.as_deref() != Some(S::Manageable.as_str());
    let is_of_kept_disk = is_automated && is_kept_disk_postponed(planner.host(), node);
    if is_of_left_updates(node) || is_of_kept_disk {
        return abort(planner, node);
    }
    wait_for_agent(planner, node, "Ironic is busy")
}

/// Waits for what waits for its agent. Ironic ignores the agent of a node in maintenance, and knows no timeout then.
pub(super) fn wait_for_agent(planner: &mut Planner<'_>, node: &Node, why: &str) -> PlanResult {
    require_operable(planner, node)?;
    if is_of_inoperable_node(&planner.host().status.error_message) {
        // That is over, and the operation goes on.
        clear_error(planner);
    }
    Ok(Decision::Wait(wait::on_node(why)))
}

/// Records that the node is in an unexpected state, and leaves it (differs: `host-unexpected-state`).
pub(super) fn unexpected_state(planner: &Planner<'_>, node: &Node, cure: &str) -> Decision {
    let message = format!(
        "{IN_IRONIC}is in state {:?}, which is unexpected for a host in state {:?}; the node is not \
         changed. {cure}",
        node.provision_state.as_str(),
        graph::name(planner.state()),
    );
    let kind = kind_in(planner.state());
    if planner.is_deleting() {
        return planner.fail_with_backoff(Failure::retryable(kind, message));
    }
    Decision::Fail(Failure::until(
        kind,
        message,
        wait::on_node("the node is in an unexpected state"),
    ))
}

pub(super) fn failure_reason(planner: &Planner<'_>, node: &Node) -> PlanResult<String> {
    if let Some(error) = &node.last_error {
        return Ok(error.clone());
    }
    // Ironic sets the failed state before the reason, and holds a reservation until then.
    match (&node.reservation, planner.remaining_reservation(node)) {
        (Some(conductor), Some(Duration::ZERO)) => {
            // The history may end with an older failure.
            return Ok(format!(
                "Ironic reports no reason, and its conductor {conductor} holds the node for more than {} minutes; a lock \
                 that stays goes with a restart of that conductor",
                LOCK_THRESHOLD.as_secs() / 60
            ));
        }
        (Some(_), Some(left)) => {
            let next = wait::on_reservation("Ironic has not reported the reason of the failure yet", left);
            return Err(Decision::Wait(next));
        }
        (_, None) | (None, _) => {}
    }
    match &planner.facts.last_history_error {
        // Powering off, and each power synchronisation, erase the reason from the node.
        Observed::Unknown(_) => Err(Decision::read(Read::History)),
        Observed::Present(error) => Ok((*error).to_owned()),
        Observed::Absent => Ok("Ironic reports no reason; check its log and the console of the machine".to_owned()),
    }
}

/// Adds a transition that erases nothing, unless the node serves another instance; the next decision needs a new observation
/// of the node.
pub(super) fn request_transition(planner: &mut Planner<'_>, node: &Node, to: Transition) -> PlanResult {
    require_ownership(planner, node, may_switch_power(planner, node))?;
    planner.request(Request::Provision(node.uuid.clone(), to));
    Ok(Decision::Wait(wait::on_node("Ironic is busy")))
}

/// Aborts what waits for the agent of the machine, which boots it again or powers it off. The user may have taken back what asks
/// for it.
pub(super) fn abort(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    require_live(planner, &[Read::Node, Read::Host])?;
    request_transition(planner, node, Transition::Abort)
}

/// Shows a service of an active node, and waits for its end.
pub(super) fn wait_for_service(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    if node.provision_state == S::ServiceWait {
        require_operable(planner, node)?;
    }
    if !node.maintenance {
        // The node is not in the unexpected state, nor in the failed one, that the error is about.
        clear_error(planner);
        status::clear_kind(&mut planner.draft.status, ErrorType::Servicing);
    }
    status::begin_service(&mut planner.draft.status);
    Ok(Decision::Wait(wait::on_node("Ironic is servicing the machine")))
}

/// Ironic's fault after a failed service.
pub(super) const SERVICE_FAULT: &str = "service failure";

/// Ends a maintenance that Ironic set with this fault, and reports one that an operator began.
pub(super) fn end_own_maintenance(planner: &mut Planner<'_>, node: &Node, fault: &str) -> PlanResult<()> {
    if node.maintenance && node.fault.as_deref() == Some(fault) {
        require_own_maintenance(planner, node)?;
        require_live(planner, &[Read::Node])?;
        planner.request(Request::ClearMaintenance(node.uuid.clone()));
    }
    Ok(())
}

/// Requires that a maintenance with a fault has the error of the failed operation as its reason. Ironic adds the fault to a
/// maintenance that an operator began before, and keeps it when he begins one later: only the reason is his.
fn require_own_maintenance(planner: &Planner<'_>, node: &Node) -> PlanResult<()> {
    let reason = node.maintenance_reason.as_deref().unwrap_or_default();
    let recorded = planner.host().status.error_message.as_str();
    let is_recorded = |error: &str| !error.is_empty() && recorded.ends_with(&public_text(error));
    let shown = node.last_error.as_deref().unwrap_or_default();
    if reason.is_empty() || reason == shown || is_recorded(reason) {
        return Ok(());
    }
    if is_recorded(shown) {
        return Err(report_maintenance(planner, node));
    }
    match planner.facts.last_history_error {
        Observed::Unknown(_) => Err(Decision::read(Read::History)),
        Observed::Present(error) if error == reason => Ok(()),
        Observed::Present(_) | Observed::Absent => Err(report_maintenance(planner, node)),
    }
}

/// Ironic's fault after a failed cleaning.
const CLEAN_FAULT: &str = "clean failure";

fn is_clean_fault(node: &Node) -> bool {
    node.provision_state == S::CleanFailed && node.fault.as_deref() == Some(CLEAN_FAULT)
}

/// Requires that nothing but a failed cleaning keeps Ironic from operating the node. Checked before the backoff of a
/// failure: a maintenance is reported at once, and what failed before is retried at once when it ends.
pub(super) fn require_recoverable(planner: &Planner<'_>, node: &Node) -> PlanResult<()> {
    if is_of_left_updates(node) {
        return Ok(());
    }
    if !is_clean_fault(node) {
        return require_operable(planner, node);
    }
    if node.maintenance {
        require_own_maintenance(planner, node)?;
    }
    Ok(())
}

/// The reason of a maintenance in which Ironic discards the updates of the firmware that a timeout left.
pub(super) const DISCARDING: &str = "updates of the firmware that have not ended are discarded";
/// Longer than Ironic takes to discard them.
const DISCARDED: Duration = Duration::from_mins(15);

/// Whether the maintenance of a node in a cleaning, or after one that failed, is because of updates that an earlier one left: this
/// program began it to have them discarded, or Ironic, which sets no fault when the step has not begun.
fn is_of_left_updates(node: &Node) -> bool {
    let reason = node.maintenance_reason.as_deref().unwrap_or_default();
    let is_of_updates = reason == DISCARDING || FIRMWARE_FAILED.iter().any(|begin| reason.starts_with(begin));
    let is_of_cleaning = matches!(node.provision_state, S::CleanWait | S::CleanFailed);
    node.maintenance && node.fault.is_none() && is_of_cleaning && is_of_updates
}

/// Requires that Ironic has discarded the updates that did not end: the next cleaning would go on with them. It discards them while
/// the node has failed and is in maintenance, within a minute. An Ironic that does not is left to the next cleaning.
// differs: `firmware-left-updates`. The Go manager ends the maintenance at once.
fn require_discarded(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let left_for = planner.facts.updates_left_for.unwrap_or_default();
    if node.firmware_left().is_empty() || node.provision_state != S::CleanFailed || left_for >= DISCARDED {
        return Ok(());
    }
    // The retry that was due comes after that.
    status::restore_error(&mut planner.draft.status, &planner.facts.host.status);
    if !node.maintenance {
        // An operator ended it.
        require_live(planner, &[Read::Node, Read::Host])?;
        planner.request(Request::SetMaintenance(node.uuid.clone(), DISCARDING));
    }
    let left = DISCARDED.saturating_sub(left_for);
    Err(Decision::Wait(wait::for_time(
        left,
        "Ironic discards updates of the firmware that have not ended",
    )))
}

/// Recovers from a failed state: makes the node manageable. Ends only the maintenance that Ironic set because the cleaning
/// failed: after other failures Ironic sets none, and one without a fault is an operator's.
pub(super) fn recover(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    require_recoverable(planner, node)?;
    require_ownership(planner, node, may_switch_power(planner, node))?;
    require_discarded(planner, node)?;
    if is_of_left_updates(node) {
        require_live(planner, &[Read::Node])?;
        planner.request(Request::ClearMaintenance(node.uuid.clone()));
    } else if is_clean_fault(node) {
        end_own_maintenance(planner, node, CLEAN_FAULT)?;
    }
    let decision = request_transition(planner, node, Transition::Manage)?;
    clear_error(planner);
    Ok(decision)
}

/// Clears an error whose request is sent now: a later failure is a new one. The error of a deployment stays, as the
/// reason for deprovisioning.
pub(super) fn clear_error(planner: &mut Planner<'_>) {
    let kind = kind_in(planner.state());
    if planner.is_own_error(kind) {
        status::clear_kind(&mut planner.draft.status, kind);
    }
}

pub(super) fn require_slot(planner: &mut Planner<'_>) -> PlanResult<()> {
    let address = planner.host().spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
    let loads = BmcEndpoint::of(address, &planner.facts.settings.node)
        .is_ok_and(|endpoint| endpoint.loads_provisioning_network());
    let delayed = planner.host().status.operational_status == OperationalStatus::Delayed;
    let slot = if loads {
        planner.facts.slot
    } else {
        Some(SlotState::Granted)
    };
    match slot {
        None => Err(Decision::read(Read::Slot)),
        Some(SlotState::Granted) => {
            status::end_delay(&mut planner.draft.status);
            Ok(())
        }
        Some(SlotState::Waiting { .. }) => {
            if !delayed {
                planner.draft.status.operational_status = OperationalStatus::Delayed;
                planner.count(Count::One(if *planner.state() == State::Deprovisioning {
                    "metal3_delayed__deprovisioning_total"
                } else {
                    "metal3_delayed__provisioning_total"
                }));
            }
            Err(Decision::Wait(wait::on_slot()))
        }
    }
}
