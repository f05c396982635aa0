//! Power: what the node shows is recorded, what the host asks for is brought about, reboots are carried out.
//!
//! A reboot is switching off and on again: the annotation has the host off, and is taken away once it is.

use std::time::Duration;

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::v1alpha1::{ErrorType, ProvisioningState as State, RebootMode};
use metal3_ironic::calls::state::Power;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::PowerState;

use crate::action::{Count, Request, Wait};
use crate::brakes::harm;
use crate::conditions::Held;
use crate::error::Failure;
use crate::facts::Cure;
use crate::names::reason;
use crate::object::annotate_without;
use crate::plan::{End, Pass};
use crate::status;

/// How long a system has to end by itself. The Go manager's number.
pub(crate) const SOFT_LIMIT: Duration = Duration::from_secs(180);

/// Whether a request asks the system to end, which some machines cannot do.
pub(crate) fn is_soft(request: &str) -> bool {
    request.starts_with("soft ")
}

/// Whether Ironic said that the machine cannot end its system. A lock, a lost connection or a refused login says nothing
/// of the kind.
fn is_soft_unsupported(pass: &Pass<'_>) -> bool {
    let refused = pass.facts.refused;
    refused.is_some_and(|refused| refused.cure == Cure::Change && is_soft(refused.request))
}

/// Whether Ironic switches the power, or is about to: it says to what only once its worker has begun, and holds the node
/// until then.
pub(crate) const fn is_switching(node: &Node) -> bool {
    node.target_power_state.is_some() || node.reservation.is_some()
}

/// What went wrong with the last change of power. Other errors stand in the same place and are none of ours.
pub(crate) fn failure_of(node: &Node) -> Option<&str> {
    let error = node.last_error.as_deref()?;
    error.to_ascii_lowercase().contains("power").then_some(error)
}

/// What the annotations of a host ask for.
struct Reboots {
    /// How, if at all.
    mode: Option<RebootMode>,
    /// Whether one is to happen once.
    once: bool,
    /// One that holds the host off until its client takes it away.
    held_by: Option<String>,
}

/// Whether the machine is on, as far as its node shows. It is recorded.
pub(crate) fn observe(pass: &mut Pass<'_>, node: &Node) -> Option<bool> {
    let now = match &node.power_state {
        Some(PowerState::On) => Some(true),
        Some(PowerState::Off) => Some(false),
        Some(PowerState::Rebooting | PowerState::Error | PowerState::Other(_)) | None => None,
    };
    if let Some(on) = now.filter(|on| *on != pass.host().status.powered_on) {
        pass.draft.status.powered_on = on;
        status::clear_of(&mut pass.draft.status, ErrorType::PowerManagement);
    }
    now
}

/// Brings the machine's power to what the host asks for.
pub(crate) fn settle(pass: &mut Pass<'_>, node: &Node) -> Result<End, End> {
    let now = observe(pass, node);
    if now == Some(false) && pass.host().annotation(REBOOT_ANNOTATION).is_some() {
        annotate_without(pass, REBOOT_ANNOTATION);
        return Ok(End::Wait(Wait::Again));
    }
    if is_switching(node) {
        return Ok(End::Wait(Wait::OnNode("Ironic switches the power")));
    }
    let reboots = reboots(pass);
    let stays_on = pass.host().spec.disable_power_off == Some(true);
    match (pass.host().spec.online && reboots.mode.is_none(), now) {
        (_, None) => Ok(End::Wait(Wait::OnNode(
            "Ironic does not know whether the machine is on",
        ))),
        (true, Some(true)) | (false, Some(false)) => Ok(is_well(pass)),
        (true, Some(false)) => on(pass, node),
        (false, Some(true)) if stays_on => reboot(pass, node, &reboots),
        (false, Some(true)) => off(pass, node, &reboots),
    }
}

fn is_well(pass: &mut Pass<'_>) -> End {
    if pass.draft.status.error_type == Some(ErrorType::PowerManagement) {
        status::clear(&mut pass.draft.status);
    }
    if pass.draft.status.error_type.is_none() {
        // differs: `host-power-recovered`. The Go manager keeps the count, and switches off hard from then on.
        pass.draft.status.error_count = 0;
    }
    End::Wait(Wait::Settled)
}

fn reboots(pass: &mut Pass<'_>) -> Reboots {
    let mut found = Reboots {
        mode: None,
        once: false,
        held_by: None,
    };
    let is_running = matches!(pass.state(), State::Provisioned | State::ExternallyProvisioned);
    let mut unreadable = Vec::new();
    for (name, request) in pass.host().reboot_requests() {
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
        pass.warn(reason::INVALID_ANNOTATION, message);
    }
    found
}

fn on(pass: &mut Pass<'_>, node: &Node) -> Result<End, End> {
    if let Some(error) = failure_of(node) {
        pass.attempt_on_failed(Failure::attempt(
            ErrorType::PowerManagement,
            format!("PowerOn operation failed: {error}"),
        ))?;
    }
    pass.ask(Request::Power(node.uuid.clone(), Power::On));
    pass.tell(reason::POWER_ON, "Host is powered on");
    pass.count(Count::One("metal3_operation_power_change_total"));
    Ok(End::Wait(Wait::OnNode("Ironic switches the power")))
}

fn off(pass: &mut Pass<'_>, node: &Node, reboots: &Reboots) -> Result<End, End> {
    let failed = pass.host().status.error_type == Some(ErrorType::PowerManagement);
    let is_hard = reboots.mode == Some(RebootMode::Hard) || failed || is_soft_unsupported(pass);
    if let Some(error) = failure_of(node) {
        let message = if is_hard && !failed {
            format!("PowerOff operation failed: {error}")
        } else {
            format!("Continuing with hard poweroff after soft poweroff fails. More details: {error}")
        };
        pass.attempt_on_failed(Failure::attempt(ErrorType::PowerManagement, message))?;
    }
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
    harm(pass, node, Request::Power(node.uuid.clone(), power), why)?;
    pass.tell(reason::POWER_OFF, "Host is powered off");
    pass.count(Count::One("metal3_operation_power_change_total"));
    Ok(End::Wait(Wait::OnNode("Ironic switches the power")))
}

/// A machine that must not be switched off is rebooted, once; it cannot be held off.
fn reboot(pass: &mut Pass<'_>, node: &Node, reboots: &Reboots) -> Result<End, End> {
    if !reboots.once {
        let what = match &reboots.held_by {
            Some(name) => format!("the annotation {name} asks to hold the host off"),
            None => "spec.online is false".to_owned(),
        };
        // differs: `host-never-off`. The Go manager reboots such a host on every pass.
        pass.held = Some(Held {
            reason: reason::REFUSED,
            message: format!(
                "{what}, and spec.disablePowerOff forbids to switch it off; remove one of them, or use the annotation \
                 {REBOOT_ANNOTATION} for one reboot"
            ),
        });
        return Ok(End::Wait(Wait::OnUser("the host must not be switched off")));
    }
    let power = if reboots.mode == Some(RebootMode::Hard) || is_soft_unsupported(pass) {
        Power::Reboot
    } else {
        Power::SoftReboot
    };
    harm(
        pass,
        node,
        Request::Power(node.uuid.clone(), power),
        "a reboot annotation",
    )?;
    annotate_without(pass, REBOOT_ANNOTATION);
    pass.tell(reason::POWER_OFF, "Host is rebooted");
    pass.count(Count::One("metal3_operation_power_change_total"));
    Ok(End::Wait(Wait::OnNode("Ironic switches the power")))
}
