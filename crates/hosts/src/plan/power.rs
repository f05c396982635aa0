//! Power: records the observed power state, applies the desired one and performs reboots.
//!
//! A reboot is a power-off followed by a power-on: the annotation requests power-off and is removed once the machine is
//! off.

use std::time::Duration;

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::v1alpha1::{ErrorType, ProvisioningState as State, RebootMode};
use metal3_ironic::calls::state::Power;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::PowerState;
use metal3_runtime::work::Next;

use crate::action::{Action, Count, Request};
use crate::facts::{LOCK_THRESHOLD, RefusalClass};
use crate::names::reason;
use crate::plan::error::Failure;
use crate::plan::object::remove_annotation;
use crate::plan::ownership::may_switch_power;
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::safety::{request_disruptive, require_ownership};
use crate::plan::{disc, status, wait};

/// Time-out of a soft power-off. The Go manager's number.
pub(crate) const SOFT_LIMIT: Duration = Duration::from_secs(180);

/// Whether a request depends on the operating system, which some machines do not support.
pub(crate) fn is_soft(request: &str) -> bool {
    request.starts_with("soft ")
}

/// Whether Ironic rejected the soft request as unsupported. A lock, a lost connection or rejected credentials do not
/// count.
fn is_soft_unsupported(planner: &Planner<'_>) -> bool {
    let refused = planner.facts.refused;
    refused.is_some_and(|refused| refused.class == RefusalClass::Invalid && is_soft(refused.request))
}

/// Waits while Ironic may be changing the power: it holds a reservation until that is over. A target without one was left
/// by a conductor that died, and a new request replaces it. A reservation that is left does not end: Ironic rejects the
/// next request, which is reported. What was requested is not over while there is one.
pub(crate) fn require_end_of_switching(planner: &Planner<'_>, node: &Node) -> PlanResult<()> {
    // differs: `host-power-target-left`. The Go manager waits for the target, or requests the opposite.
    match planner.remaining_reservation(node) {
        None | Some(Duration::ZERO) => Ok(()),
        Some(left) => {
            let next = wait::on_reservation("Ironic is changing the power state", left);
            Err(Decision::Wait(next))
        }
    }
}

/// Messages of recorded failures begin so.
const ON_FAILED: &str = "PowerOn operation failed: ";
const OFF_FAILED: &str = "PowerOff operation failed: ";
const REBOOT_FAILED: &str = "Reboot operation failed: ";
const SOFT_FAILED: &str = "Continuing with hard poweroff after soft poweroff fails. More details: ";

/// Ironic's error of a power change that was in progress when its conductor restarted.
const ABORTED: &str = "Pending power operation was aborted";
/// The same, recorded here: that conductor did not come back.
const LEFT: &str = "the conductor that rebooted the machine stopped before the end";

/// Whether the conductor stopped before the end of a power change. It says nothing about the machine, so the request is
/// repeated as it was.
fn is_aborted(error: &str) -> bool {
    error.contains(ABORTED) || error.contains(LEFT)
}

/// The recorded error of switching the power on, or off.
fn recorded<'a>(planner: &Planner<'a>, on: bool) -> Option<&'a str> {
    let prefixes: &[&str] = if on { &[ON_FAILED] } else { &[OFF_FAILED, SOFT_FAILED] };
    let recorded = planner.recorded_error(ErrorType::PowerManagement);
    recorded.filter(|message| prefixes.iter().any(|prefix| message.starts_with(prefix)))
}

/// The error of switching the power on, or off. Ironic keeps an error until the next request and uses the field for other
/// errors too, so it counts only after a request of this process.
fn power_error<'a>(planner: &Planner<'_>, node: &'a Node, on: bool) -> Option<&'a str> {
    // differs: `host-power-error-of-request`. The Go manager takes any error of the node for one of its request.
    if planner.facts.requested_power != Some(on) {
        return None;
    }
    let error = node.last_error.as_deref()?;
    error.to_ascii_lowercase().contains("power").then_some(error)
}

/// Waits for the backoff after a failure to switch the power on, or off. One that is recorded counts whatever the node
/// shows: Ironic erases the error when it next reads the power state, which does not repair the machine.
fn retry(planner: &mut Planner<'_>, node: &Node, on: bool, prefix: &str) -> PlanResult<()> {
    let message = match (recorded(planner, on), power_error(planner, node, on)) {
        (Some(recorded), _) => recorded.to_owned(),
        // It is repeated as it was.
        (None, Some(error)) if !on && is_aborted(error) => format!("{OFF_FAILED}{error}"),
        (None, Some(error)) => format!("{prefix}{error}"),
        (None, None) => return Ok(()),
    };
    planner.retry(&Failure::retryable(ErrorType::PowerManagement, message))
}

/// The same for powering off at once.
pub(crate) fn retry_hard_off(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    retry(planner, node, false, OFF_FAILED)
}

struct Reboots {
    mode: Option<RebootMode>,
    /// Whether one reboot is requested.
    once: bool,
    /// An annotation that keeps the host off until its client removes it.
    held_by: Option<String>,
}

/// Records and returns the observed power state; `None` when Ironic does not know it.
pub(crate) fn record_power_state(planner: &mut Planner<'_>, node: &Node) -> Option<bool> {
    let now = match &node.power_state {
        Some(PowerState::On) => Some(true),
        Some(PowerState::Off) => Some(false),
        Some(PowerState::Rebooting | PowerState::Error | PowerState::Other(_)) | None => None,
    };
    if let Some(on) = now.filter(|on| *on != planner.host().status.powered_on) {
        planner.draft.status.powered_on = on;
        status::clear_kind(&mut planner.draft.status, ErrorType::PowerManagement);
    }
    now
}

/// Whether a running machine is to be switched on now, which nothing delays.
pub(crate) fn is_to_start(planner: &mut Planner<'_>, node: &Node) -> PlanResult<bool> {
    let host = planner.host();
    let is_wanted = host.spec.online && host.reboot_requests().next().is_none();
    if record_power_state(planner, node) != Some(false) || !is_wanted {
        return Ok(false);
    }
    require_end_of_switching(planner, node)?;
    retry(planner, node, true, ON_FAILED)?;
    Ok(true)
}

pub(crate) fn reconcile(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    let now = record_power_state(planner, node);
    if now == Some(true) {
        disc::end_attempts(planner);
    }
    if now == Some(false) && planner.host().annotation(REBOOT_ANNOTATION).is_some() {
        remove_annotation(planner, REBOOT_ANNOTATION);
        return Ok(Decision::Wait(Next::Requeue));
    }
    require_end_of_switching(planner, node)?;
    let reboots = reboots(planner);
    let stays_on = planner.host().spec.disable_power_off == Some(true);
    match (planner.host().spec.online && reboots.mode.is_none(), now) {
        (_, None) => Ok(Decision::Wait(wait::on_node("Ironic does not know the power state"))),
        (true, Some(true)) | (false, Some(false)) => Ok(power_reached(planner, node)),
        (true, Some(false)) => power_on(planner, node),
        (false, Some(true)) if stays_on => reboot_in_place(planner, node, &reboots),
        (false, Some(true)) => power_off(planner, node, &reboots),
    }
}

fn power_reached(planner: &mut Planner<'_>, node: &Node) -> Decision {
    if planner.facts.requested_power.is_some() || planner.facts.requested_reboot.is_some() {
        if node.reservation.is_some() {
            return Decision::Wait(wait::on_node("Ironic is changing the power state"));
        }
        planner.add(Action::EndPowerRequest);
    }
    if planner.draft.status.error_type == Some(ErrorType::PowerManagement) {
        status::clear(&mut planner.draft.status);
    }
    if planner.draft.status.error_type.is_none() {
        // differs: `host-power-recovered`. The Go manager keeps the count, and uses hard power-off from then on.
        planner.draft.status.error_count = 0;
    }
    Decision::Wait(Next::Done)
}

fn reboots(planner: &mut Planner<'_>) -> Reboots {
    let mut found = Reboots {
        mode: None,
        once: false,
        held_by: None,
    };
    let is_running = matches!(planner.state(), State::Provisioned | State::ExternallyProvisioned);
    let mut unreadable = Vec::new();
    for (name, request) in planner.host().reboot_requests() {
        let request = request.unwrap_or_else(|error| {
            unreadable.push(format!("{name}: {error}; a soft reboot is assumed"));
            Default::default()
        });
        if !is_running && !request.force {
            continue;
        }
        found.mode = found.mode.max(Some(request.mode));
        if name == REBOOT_ANNOTATION {
            found.once = true;
        } else {
            found.held_by = Some(name.to_owned());
        }
    }
    for message in unreadable {
        planner.record_warning(reason::INVALID_ANNOTATION, message);
    }
    found
}

fn power_on(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    retry(planner, node, true, ON_FAILED)?;
    require_ownership(planner, node, may_switch_power(planner, node))?;
    disc::before_start(planner, node)?;
    planner.request(Request::Power(node.uuid.clone(), Power::On));
    planner.record_event(reason::POWER_ON, "Host is powered on");
    planner.count(Count::Power { on: true });
    Ok(Decision::Wait(wait::on_node("Ironic is changing the power state")))
}

fn power_off(planner: &mut Planner<'_>, node: &Node, reboots: &Reboots) -> PlanResult {
    let has_failed = recorded(planner, false).is_some_and(|message| !is_aborted(message));
    let is_hard = reboots.mode == Some(RebootMode::Hard) || has_failed || is_soft_unsupported(planner);
    retry(planner, node, false, if is_hard { OFF_FAILED } else { SOFT_FAILED })?;
    let power = if is_hard {
        Power::Off
    } else {
        Power::SoftOff(SOFT_LIMIT)
    };
    let why = if reboots.mode.is_some() {
        "a reboot annotation"
    } else {
        "spec.online is false"
    };
    request_disruptive(planner, node, Request::Power(node.uuid.clone(), power), why)?;
    // A service that failed is repeated when the machine is started again.
    status::clear_kind(&mut planner.draft.status, ErrorType::Servicing);
    planner.record_event(reason::POWER_OFF, "Host is powered off");
    planner.count(Count::Power { on: false });
    Ok(Decision::Wait(wait::on_node("Ironic is changing the power state")))
}

/// Reboots a machine that must not be powered off, once; it cannot be kept off.
fn reboot_in_place(planner: &mut Planner<'_>, node: &Node, reboots: &Reboots) -> PlanResult {
    if !reboots.once {
        if planner.facts.requested_reboot.is_some() {
            // The user took it back; its end must not be taken for the end of the next one.
            planner.add(Action::EndPowerRequest);
        }
        // Nothing is attempted any more, so no failure is recorded.
        status::clear_kind(&mut planner.draft.status, ErrorType::PowerManagement);
        let what = match &reboots.held_by {
            Some(name) => format!("the annotation {name} requests power off"),
            None => "spec.online is false".to_owned(),
        };
        // differs: `host-never-off`. The Go manager reboots such a host on every reconcile.
        planner.withheld = Some(Withheld {
            reason: reason::REFUSED,
            message: format!(
                "{what}, and spec.disablePowerOff forbids it; remove one of them, or use the annotation \
                 {REBOOT_ANNOTATION} for one reboot"
            ),
        });
        return Ok(Decision::Wait(wait::on_user("the host must not be powered off")));
    }
    // Without a response, an order that the node does not show is sent again.
    let requested = planner.facts.requested_reboot.as_ref();
    if requested.is_some_and(|reboot| reboot.is_accepted(node)) {
        return reboot_ended(planner, node);
    }
    let recorded = planner.recorded_error(ErrorType::PowerManagement);
    let recorded = recorded.filter(|message| message.starts_with(REBOOT_FAILED));
    let has_failed = recorded.is_some_and(|message| !is_aborted(message));
    if let Some(message) = recorded {
        planner.retry(&Failure::retryable(ErrorType::PowerManagement, message))?;
    }
    let power = if reboots.mode == Some(RebootMode::Hard) || has_failed || is_soft_unsupported(planner) {
        Power::Reboot
    } else {
        Power::SoftReboot
    };
    request_disruptive(
        planner,
        node,
        Request::Power(node.uuid.clone(), power),
        "a reboot annotation",
    )?;
    disc::before_reboot_in_place(planner);
    planner.record_event(reason::POWER_OFF, "Host is rebooted");
    planner.count(Count::Power { on: false });
    Ok(Decision::Wait(wait::on_node("Ironic is rebooting the machine")))
}

/// Why Ironic did not reboot the machine. A conductor that restarts aborts what it was doing, and one that takes the node of
/// another over releases it first, and records the error and removes the target later.
fn reboot_error(node: &Node) -> Option<&str> {
    const OF_REBOOTS: [&str; 2] = ["rebooting", ABORTED];
    let error = node.last_error.as_deref();
    let error = error.filter(|error| OF_REBOOTS.iter().any(|part| error.contains(part)));
    let is_left = node.target_power_state.is_some();
    error.or_else(|| is_left.then_some(LEFT))
}

/// The end of the reboot that this process requested. Ironic accepts the request first, and a machine that it cannot reboot
/// stays on. The annotation stays until the reboot is over, so a failed one is repeated.
///
/// An error in the status is of an earlier attempt: it was cleared after the request, and that write may be lost.
fn reboot_ended(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    if let Some(conductor) = &node.reservation {
        let message = format!(
            "Ironic has not ended the reboot of the machine: the conductor {conductor} holds the node for more than {} minutes; \
             a lock that stays goes with a restart of that conductor",
            LOCK_THRESHOLD.as_secs() / 60
        );
        let next = wait::on_node("Ironic is rebooting the machine");
        return Err(Decision::Fail(Failure::until(
            ErrorType::PowerManagement,
            message,
            next,
        )));
    }
    planner.add(Action::EndPowerRequest);
    if let Some(error) = reboot_error(node) {
        let message = format!("{REBOOT_FAILED}{error}");
        return Err(Decision::Fail(Failure::retryable(ErrorType::PowerManagement, message)));
    }
    remove_annotation(planner, REBOOT_ANNOTATION);
    Ok(Decision::Wait(Next::Requeue))
}
