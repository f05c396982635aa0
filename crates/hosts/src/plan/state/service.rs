//! Services: what the HostUpdatePolicy of a host lets a reboot of its running machine change.
//!
//! One is ordered where the machine is off and is to be switched on again, in place of power on, and Ironic starts the system when
//! the service ends. Nothing is switched off for one: a user asked for that, or the machine went off by itself. What cannot be
//! changed keeps no machine off: its system starts without, and after a service that failed it does so until the next reboot.

use metal3_api::metal3::v1alpha1::{ErrorType, FirmwareUpdate};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_runtime::plan::{Observed, UnknownReason};

use super::shared::{SERVICE_FAULT, abort, end_own_maintenance, failure_reason, wait_for_service};
use super::{bios as settings, firmware as updates};
use crate::facts::{CleaningOrder, CleaningProgress, Read};
use crate::names::reason;
use crate::node::bios::{self, Difference};
use crate::node::firmware;
use crate::plan::agent_state::AgentWait;
use crate::plan::error::{Failure, event_reason};
use crate::plan::ownership::may_switch_power;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::{disruptive_transition, require_live, require_ownership};
use crate::plan::service_policy::{Allowed, is_left, is_serviceable, known};
use crate::plan::{status, wait};

/// The name of the request.
pub(super) const SERVICE: &str = "service";

/// What the policy allows, read if it is not known yet.
fn allowed(planner: &Planner<'_>) -> PlanResult<Allowed> {
    match planner.facts.update_policy {
        Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => Err(Decision::read(Read::UpdatePolicy)),
        _ => Ok(known(planner)),
    }
}

/// What a service would change.
struct Changes {
    settings: Vec<Difference>,
    updates: Vec<FirmwareUpdate>,
}

fn changes(planner: &mut Planner<'_>, node: &Node) -> PlanResult<Changes> {
    let allowed = allowed(planner)?;
    let mut changes = Changes {
        settings: Vec::new(),
        updates: Vec::new(),
    };
    if allowed.settings {
        changes.settings = settings::for_service(planner, node)?;
    }
    if allowed.updates {
        changes.updates = updates::for_service(planner, node)?;
    }
    Ok(changes)
}

/// Orders a service in place of power on. `Ok`: the system is to be started.
pub(super) fn before_start(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    let is_running = is_serviceable(planner, planner.state()) && node.provision_state == S::Active;
    if !is_running || planner.is_deleting() || has_failed(planner, node) {
        return Ok(());
    }
    let changes = changes(planner, node)?;
    if changes.settings.is_empty() && changes.updates.is_empty() {
        return Ok(());
    }
    if let Some(why) = obstacle(planner, node, &changes) {
        let message = format!("The machine is started without the changes of its firmware: {why}");
        planner.record_warning(reason::SERVICE_SKIPPED, message);
        return Ok(());
    }
    order(planner, node, &changes)
}

/// Whether the last service failed since the machine was switched off on request. The next such reboot repeats it. Another error may
/// replace the recorded one.
fn has_failed(planner: &Planner<'_>, node: &Node) -> bool {
    let order = planner.facts.cleaning_order.as_ref();
    let has_seen = order.is_some_and(|order| order.node == node.uuid && order.progress == CleaningProgress::Failed);
    has_seen || planner.recorded_error(ErrorType::Servicing).is_some()
}

/// Why no service can begin now. A wait for that would keep the machine off.
// differs: `host-service-once`. The Go manager keeps the machine off.
fn obstacle(planner: &Planner<'_>, node: &Node, changes: &Changes) -> Option<String> {
    if let Some(why) = planner.facts.unreadable {
        return Some(format!("{why}; look at the roles and definitions of the release"));
    }
    let first = match changes.settings.is_empty() {
        true => firmware::of_all(&changes.updates),
        false => firmware::Files::new(),
    };
    if firmware::leaves_others(node, &first) {
        let left = firmware::left_text(node);
        return Some(format!(
            "Ironic has updates of the firmware that an earlier operation left ({left}); it gives them up about two hours after they began"
        ));
    }
    if let Some(refused) = planner.facts.refused.filter(|refused| refused.request == SERVICE) {
        return Some(format!("Ironic rejects the service: {}", refused.message));
    }
    match &planner.agent_wait {
        // Updates need no agent.
        _ if changes.settings.is_empty() => None,
        Some(AgentWait::Failed(why) | AgentWait::Refused(why)) => {
            Some(format!("its PreprovisioningImage cannot be made: {why}"))
        }
        Some(AgentWait::Pending(why)) => Some(format!("its PreprovisioningImage is not ready: {why}")),
        None => None,
    }
}

fn order(planner: &mut Planner<'_>, node: &Node, changes: &Changes) -> PlanResult<()> {
    let Changes { settings, updates } = changes;
    // An edit may have taken them back.
    let mut reads = vec![Read::Node, Read::Host, Read::UpdatePolicy];
    let mut steps = Vec::new();
    if !settings.is_empty() {
        reads.push(Read::FirmwareSettings);
        steps.push(bios::step(settings));
    }
    if !updates.is_empty() {
        reads.push(Read::FirmwareComponents);
        steps.push(firmware::step(updates));
    }
    require_live(planner, &reads)?;
    let why = "the machine is rebooted, and its HostUpdatePolicy lets that change its firmware";
    disruptive_transition(planner, node, Transition::Service(steps), why)?;
    if !updates.is_empty() {
        updates::record_order(planner, node, updates)?;
    }
    status::begin_service(&mut planner.draft.status);
    planner.record_event(
        reason::SERVICE_BEGUN,
        "Ironic changes the firmware of the machine before it starts its system",
    );
    Err(Decision::Wait(wait::on_node("Ironic is servicing the machine")))
}

/// The service under way, if this process ordered it.
fn own<'a>(planner: &Planner<'a>, node: &Node) -> Option<&'a CleaningOrder> {
    let order = planner.facts.cleaning_order.as_ref();
    order.filter(|order| order.node == node.uuid && order.is_of_steps(node.last_steps()))
}

/// Whether what a service changes is still asked for, with any value: another one is for the next reboot.
fn is_asked(planner: &Planner<'_>, order: &CleaningOrder) -> bool {
    let (facts, allowed) = (planner.facts, known(planner));
    let settings = facts.firmware_settings.present();
    let settings = settings.filter(|settings| settings.metadata.deletion_timestamp.is_none());
    let asks_setting = settings.is_some_and(|settings| {
        order
            .settings
            .keys()
            .any(|name| settings.spec.settings.contains_key(name))
    });
    let updates = facts.firmware_components.present();
    let asks_update =
        updates.is_some_and(|object| !firmware::of_all(firmware::requested(object)).is_disjoint(&order.files));
    allowed.settings && asks_setting || allowed.updates && asks_update
}

/// Whether the service was taken back: by a live view, because that ends it.
// differs: `host-service-taken-back`. The Go manager aborts the service of any host that asks for nothing.
fn is_taken_back(planner: &Planner<'_>, node: &Node) -> PlanResult<bool> {
    // What is recorded as ended is in no order any more.
    let is_known = |order: &&CleaningOrder| !order.settings.is_empty() || !order.files.is_empty();
    let Some(order) = own(planner, node)
        .filter(is_known)
        .filter(|order| !is_asked(planner, order))
    else {
        return Ok(false);
    };
    // An update that the BMC makes goes on all the same, and Ironic would take it for the next operation.
    if planner.facts.unreadable.is_some() || !firmware::left(node).is_empty() {
        return Ok(false);
    }
    let mut reads = vec![Read::Node, Read::Host, Read::UpdatePolicy];
    if !order.settings.is_empty() {
        reads.push(Read::FirmwareSettings);
    }
    if !order.files.is_empty() {
        reads.push(Read::FirmwareComponents);
    }
    require_live(planner, &reads)?;
    Ok(true)
}

/// Waits for the end of a service, and aborts one that was taken back.
pub(super) fn follow(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    updates::settle_service(planner, node)?;
    // Ironic aborts some steps only when they have ended.
    let is_aborted = node.service_step.get("abort_after") == Some(&true.into());
    if node.provision_state == S::ServiceWait && !is_aborted && is_taken_back(planner, node)? {
        status::begin_service(&mut planner.draft.status);
        return abort(planner, node);
    }
    wait_for_service(planner, node)
}

/// Ends a service that failed, so that the system can be started.
pub(super) fn failed(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    updates::settle_service(planner, node)?;
    let is_repeated = is_left(planner, node);
    if own(planner, node).is_none() && !is_repeated {
        return end_failed_service(planner, node);
    }
    if is_repeated && planner.recorded_error(ErrorType::Servicing).is_none() {
        // It is shown until the system runs.
        let failure = Failure::retryable(ErrorType::Servicing, failure_message(planner, node)?);
        status::record_failure(&mut planner.draft.status, &failure);
        planner.record_warning(event_reason(ErrorType::Servicing), failure.message);
    }
    require_ownership(planner, node, may_switch_power(planner, node))?;
    end_own_maintenance(planner, node, SERVICE_FAULT)?;
    abort(planner, node)
}

/// Ends the record of a service. Its failure stays until the system runs again: the reports about settings and updates have it then. A Go
/// manager would service a running machine with that error at once, which reboots it.
pub(super) fn end(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    updates::settle_service(planner, node)?;
    let has_failed = planner.recorded_error(ErrorType::Servicing).is_some();
    let is_running = node.power_state == Some(PowerState::On);
    if !has_failed || is_running || !is_left(planner, node) {
        status::end_service(&mut planner.draft.status);
    }
    Ok(())
}

/// Returns the node to active after a service that failed. Ironic starts the system again
/// if its agent ran.
pub(super) fn end_failed_service(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    let message = failure_message(planner, node)?;
    planner.retry_node_failure(Failure::retryable(ErrorType::Servicing, message))?;
    require_ownership(planner, node, may_switch_power(planner, node))?;
    // Ironic does not end a service during maintenance.
    end_own_maintenance(planner, node, SERVICE_FAULT)?;
    // differs: `host-service-ended`. The Go manager starts the service again while the firmware objects request it.
    abort(planner, node)
}

fn failure_message(planner: &Planner<'_>, node: &Node) -> PlanResult<String> {
    Ok(match updates::failed_updates(planner, node) {
        Some(names) => firmware::service_failure_text(&names, &failure_reason(planner, node)?),
        None => failure_reason(planner, node)?,
    })
}
