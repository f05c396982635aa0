//! The report about the HostFirmwareSettings of a host: their status, the FirmwareSchema, an Event and the owner.
//!
//! The settings of the machine are read for it when the status is not about the present spec or about the last inspection. Each
//! plan reports what was read, after its other writes: a host does not wait for its report.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{HostFirmwareSettings, ProvisioningState as State};
use metal3_ironic::model::node::Node;
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::{Observed, PlannedEvent, UnknownReason};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::{Next, WaitingOn};

use crate::action::Action;
use crate::facts::Read;
use crate::names::settings_reason::VALIDATION_FAILED;
use crate::node::bios::{self, When};
use crate::plan::planner::{Decision, PlanResult, Planner, document};
use crate::plan::reported_node::reported_node;
use crate::plan::service_policy;
use crate::plan::wait;

/// How often settings that could not be read are read again: nothing reports that Ironic can read them.
const RECHECK: Duration = Duration::from_mins(5);

/// The HostFirmwareSettings that are reported about, and the node.
// differs: `firmware-settings-on-demand`. The Go manager creates them, and reads the settings of each machine every five minutes.
fn subject<'a>(planner: &Planner<'a>) -> Option<(&'a HostFirmwareSettings, &'a Node)> {
    let settings = planner.facts.firmware_settings.clone().into_present()?;
    let node = reported_node(planner, &settings.metadata)?;
    // The schema names vendor and model, which an inspection reports.
    let is_inspected = !matches!(planner.state(), State::Inspecting | State::MatchProfile);
    is_inspected.then_some((settings, node))
}

/// Requires the settings of the machine when a report about them is due.
pub(crate) fn require_settings(planner: &mut Planner<'_>) -> PlanResult<()> {
    planner.may_report = true;
    let Some((settings, node)) = subject(planner) else {
        return Ok(());
    };
    let is_unread = matches!(
        planner.facts.bios,
        Observed::Unknown(UnknownReason::NotRead | UnknownReason::NotListed)
    );
    let is_owned = bios::owned(settings, planner.host()).is_none();
    // The program may have ended between the end of the preparation and its report, or the policy was changed.
    let when = when(planner, planner.state());
    let lacks_failure = when == When::Rebooted && bios::lacks_failure(settings, planner.host());
    let is_left = lacks_failure || bios::is_reported_otherwise(settings, when);
    if is_unread && is_owned && (is_left || !bios::is_current(settings, node)) {
        return Err(Decision::read(Read::ReportedBios));
    }
    planner.has_new_settings = has_new_settings(planner);
    Ok(())
}

/// When settings that differ are applied, for a host in this state.
fn when(planner: &Planner<'_>, state: &State) -> When {
    match state {
        State::Preparing | State::Available | State::Ready => When::Now,
        state if service_policy::changes_settings(planner, state) => When::Rebooted,
        _ => When::Prepared,
    }
}

/// Whether the spec of the HostFirmwareSettings changed since their report, which this plan renews: what failed before may succeed
/// now.
fn has_new_settings(planner: &Planner<'_>) -> bool {
    let Observed::Present(reported) = planner.facts.bios else {
        return false;
    };
    // A report that cannot be written would end the backoff of each failure.
    let is_prepared =
        planner.may_report && *planner.state() == State::Preparing && !planner.facts.refused_reports.settings;
    let is_ordered = |settings: &HostFirmwareSettings| {
        let differing = bios::change(&settings.spec.settings, reported).differing;
        let order = planner.facts.cleaning_order.as_ref();
        order.is_some_and(|order| !order.settings.is_empty() && bios::covers(&order.settings, &differing))
    };
    subject(planner).filter(|_| is_prepared).is_some_and(|(settings, _)| {
        let is_new = bios::is_changed_since_report(settings) && bios::owned(settings, planner.host()).is_none();
        is_new && !is_ordered(settings)
    })
}

/// Adds the writes of the report to a plan.
pub(crate) fn add(planner: &Planner<'_>, actions: &mut Vec<Action>, next: Next) -> Next {
    if !planner.may_report {
        return next;
    }
    let Some((settings, node)) = subject(planner) else {
        return next;
    };
    let version = settings.metadata.resource_version.as_deref();
    let Some(version) = version.and_then(|text| ResourceVersion::parse(text).ok()) else {
        return next;
    };
    if let Some(owned) = bios::owned(settings, planner.host()) {
        let patch = Changes::between(&document(settings), &document(&owned)).main;
        actions.extend(patch.map(|patch| Action::PatchFirmwareSettings(patch.with_precondition(&version))));
        return next;
    }
    let reported = match &planner.facts.bios {
        Observed::Present(reported) => *reported,
        Observed::Unknown(UnknownReason::Unreadable(_)) => {
            return with_recheck(next, RECHECK, "the BIOS settings are read again");
        }
        Observed::Absent | Observed::Unknown(_) => return next,
    };
    let report = bios::status(
        (settings, planner.host(), node),
        reported,
        when(planner, &planner.draft.status.provisioning.state),
        planner.facts.now,
    );
    let mut changed = settings.clone();
    changed.status = report.status;
    let Some(patch) = Changes::between(&document(settings), &document(&changed)).status else {
        return next;
    };
    if changed.status.schema.is_some() && changed.status.schema != settings.status.schema {
        let schema = bios::firmware_schema(planner.host(), reported);
        actions.push(Action::CreateFirmwareSchema(Box::new(schema)));
    }
    actions.push(Action::ReportFirmwareSettings {
        patch: patch.with_precondition(&version),
        event: report
            .warning
            .map(|message| PlannedEvent::warning(VALIDATION_FAILED, message)),
    });
    next
}

/// The same wait with an end, when it has none.
pub(crate) fn with_recheck(next: Next, after: Duration, why: &str) -> Next {
    match next {
        Next::Done => wait::for_time(after, why),
        Next::Waiting(on) if on.recheck.is_none() => Next::Waiting(WaitingOn {
            recheck: Some(after),
            ..on
        }),
        other => other,
    }
}
