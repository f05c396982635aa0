//! The BIOS settings that the HostFirmwareSettings of a host ask for.
//!
//! They are compared with what Ironic reports, in the same reconcile in which they are ordered or the host leaves the state.
//! What the machine does not take in a cleaning that ended is not ordered again while the settings and the report stay as they
//! are: a BMC may answer in another spelling for ever.

use metal3_api::metal3::v1alpha1::{ErrorType, HostFirmwareSettings};
use metal3_ironic::model::node::Node;
use metal3_runtime::plan::{Observed, UnknownReason};

use crate::facts::{CleaningProgress, Read};
use crate::names::reason;
use crate::node::bios::{self, Change, Difference};
use crate::plan::error::Failure;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::wait;

/// The HostFirmwareSettings, if they ask for a setting.
fn asked<'a>(planner: &Planner<'a>) -> PlanResult<Option<&'a HostFirmwareSettings>> {
    match planner.facts.firmware_settings {
        Observed::Present(settings) => {
            let asks = !settings.spec.settings.is_empty() && settings.metadata.deletion_timestamp.is_none();
            Ok(Some(settings).filter(|_| asks))
        }
        Observed::Absent => Ok(None),
        // Unknown: neither changed nor awaited. An administrator decides that this program reads them, and it logs that it may not.
        Observed::Unknown(UnknownReason::NotPermitted) => Ok(None),
        Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead | UnknownReason::Unreadable(_)) => {
            Err(Decision::read(Read::FirmwareSettings))
        }
    }
}

/// What the settings of the machine lack.
fn change(planner: &Planner<'_>, settings: &HostFirmwareSettings) -> PlanResult<Change> {
    match planner.facts.bios {
        Observed::Present(reported) => Ok(bios::change(&settings.spec.settings, reported)),
        Observed::Absent => Ok(bios::change(&settings.spec.settings, &[])),
        Observed::Unknown(_) => Err(Decision::read(Read::Bios)),
    }
}

/// Whether an available host has settings that can be changed. Reads them only if their last report does not say so.
pub(super) fn is_due(planner: &Planner<'_>, node: &Node) -> PlanResult<bool> {
    let Some(settings) = asked(planner)? else {
        return Ok(false);
    };
    let is_read = matches!(planner.facts.bios, Observed::Present(_));
    if !is_read && bios::is_current(settings, node) && !bios::is_change_reported(settings) {
        return Ok(false);
    }
    let change = change(planner, settings)?;
    Ok(change.invalid.is_empty() && !change.differing.is_empty())
}

/// The settings that a cleaning must change. A host with settings that its machine cannot have is rejected; one of which Ironic has
/// no settings is not: Ironic may read them only when it cleans the machine, and its report names that.
pub(super) fn differing(planner: &Planner<'_>) -> PlanResult<Result<Vec<Difference>, Failure>> {
    let Some(settings) = asked(planner)? else {
        return Ok(Ok(Vec::new()));
    };
    let change = change(planner, settings)?;
    if change.invalid.is_empty() {
        return Ok(Ok(change.differing));
    }
    if planner.facts.bios.present().is_none_or(|reported| reported.is_empty()) {
        return Ok(Ok(Vec::new()));
    }
    Ok(Err(fail(bios::unusable_text(&change.invalid))))
}

/// The settings that a service of a running machine must change. Those that its machine cannot have, or does not take, are none.
pub(super) fn for_service(planner: &mut Planner<'_>, node: &Node) -> PlanResult<Vec<Difference>> {
    let Some(settings) = asked(planner)? else {
        return Ok(Vec::new());
    };
    match planner.facts.bios {
        Observed::Present(_) | Observed::Absent => {}
        _ if bios::is_current(settings, node) && !bios::is_change_reported(settings) => return Ok(Vec::new()),
        Observed::Unknown(UnknownReason::NotRead | UnknownReason::NotListed) => {
            return Err(Decision::read(Read::ReportedBios));
        }
        Observed::Unknown(_) => return Ok(Vec::new()),
    }
    let differing = differing(planner)?.unwrap_or_default();
    if !differing.is_empty() && has_ended(planner, node, &differing) {
        planner.record_warning(reason::SERVICE_SKIPPED, bios::still_reported_text(&differing));
        return Ok(Vec::new());
    }
    Ok(differing)
}

/// Requires that a cleaning may change these settings: it was not tried already.
// differs: `firmware-settings-spelling`. The Go manager cleans the host again and again.
pub(super) fn require_untried(planner: &Planner<'_>, node: &Node, differing: &[Difference]) -> PlanResult<()> {
    let failure = fail(bios::still_reported_text(differing));
    let recorded = planner.recorded_error(ErrorType::Preparation);
    let is_tried = match recorded.filter(|message| bios::is_still_reported(message)) {
        // Also of a process that ended.
        Some(recorded) => recorded == failure.message,
        None => has_ended(planner, node, differing),
    };
    if is_tried { Err(Decision::Fail(failure)) } else { Ok(()) }
}

/// Whether a cleaning or a service of this process for all these values has ended without a failure.
fn has_ended(planner: &Planner<'_>, node: &Node, differing: &[Difference]) -> bool {
    let order = planner.facts.cleaning_order.as_ref();
    let order = order.filter(|order| order.progress == CleaningProgress::Begun && order.node == node.uuid);
    order.is_some_and(|order| bios::covers(&order.settings, differing))
}

/// A failure until the settings change, which wakes the host.
fn fail(message: String) -> Failure {
    let next = wait::on_user("its HostFirmwareSettings must be changed");
    Failure::until(ErrorType::Preparation, message, next)
}
