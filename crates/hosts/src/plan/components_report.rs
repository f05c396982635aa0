//! The report about the HostFirmwareComponents of a host: their status, an Event and the owner.
//!
//! The firmware is read for it when the status is not about the present spec, the last inspection or the last cleaning. Each plan
//! reports what was read, after its other writes: a host does not wait for its report.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{HostFirmwareComponents, ProvisioningState as State};
use metal3_ironic::model::node::Node;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::{Observed, PlannedEvent, UnknownReason};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;

use crate::action::Action;
use crate::facts::Read;
use crate::names::components_reason::VALIDATION_FAILED;
use crate::node::firmware::{self, Machine, Order, When};
use crate::plan::planner::{Decision, PlanResult, Planner, document};
use crate::plan::reported_node::reported_node;
use crate::plan::service_policy;
use crate::plan::settings_report::with_recheck;

/// How often firmware that could not be read is read again: nothing reports that Ironic can read it.
const RECHECK: Duration = Duration::from_mins(5);

/// The HostFirmwareComponents that are reported about, and the node.
// differs: `firmware-components-on-demand`. The Go manager creates them, and reads the firmware of each machine every five minutes.
fn subject<'a>(planner: &Planner<'a>) -> Option<(&'a HostFirmwareComponents, &'a Node)> {
    let object = planner.facts.firmware_components.clone().into_present()?;
    Some((object, reported_node(planner, &object.metadata)?))
}

/// When updates that are due are made, for a host in this state.
fn when(planner: &Planner<'_>, state: &State) -> When {
    match state {
        State::Inspecting | State::MatchProfile | State::Preparing | State::Available | State::Ready => When::Now,
        state if service_policy::makes_updates(planner, state) => When::Rebooted,
        _ => When::Prepared,
    }
}

/// Requires the firmware of the machine when a report about it is due.
pub(crate) fn require_versions(planner: &mut Planner<'_>) -> PlanResult<()> {
    let Some((object, node)) = subject(planner) else {
        return Ok(());
    };
    let is_unread = matches!(
        planner.facts.versions,
        Observed::Unknown(UnknownReason::NotRead | UnknownReason::NotListed)
    );
    // The end of the order is compared with the versions of before it. One that cannot be written is not read for.
    let is_open = Order::of(object).is_open();
    let is_writable = firmware::owned(object, planner.host()).is_none() && !planner.facts.is_firmware_status_refused;
    let is_outdated =
        !firmware::is_current(object, node) || firmware::is_reported_otherwise(object, when(planner, planner.state()));
    if is_unread && is_writable && !is_open && is_outdated {
        return Err(Decision::read(Read::ReportedVersions));
    }
    planner.has_new_updates = has_new_updates(planner);
    Ok(())
}

/// Whether the spec changed since the report that this plan renews.
fn has_new_updates(planner: &Planner<'_>) -> bool {
    let is_prepared = planner.may_report && *planner.state() == State::Preparing;
    let is_read = matches!(planner.facts.versions, Observed::Present(_));
    // A report that cannot be written would end the backoff of each failure.
    let is_reported = is_read && !planner.facts.is_firmware_status_refused && !planner.facts.refused_reports.components;
    subject(planner)
        .filter(|_| is_prepared && is_reported)
        .is_some_and(|(object, _)| {
            firmware::is_changed_since_report(object) && firmware::owned(object, planner.host()).is_none()
        })
}

/// A patch of the status, if it changes something.
pub(crate) fn status_patch(object: &HostFirmwareComponents, changed: &HostFirmwareComponents) -> Option<MergePatch> {
    let version = ResourceVersion::parse(object.metadata.resource_version.as_deref()?).ok()?;
    let patch = Changes::between(&document(object), &document(changed)).status?;
    Some(patch.with_precondition(&version))
}

/// Adds the writes of the report to a plan.
pub(crate) fn add(planner: &Planner<'_>, actions: &mut Vec<Action>, next: Next) -> Next {
    // The record is a write of the same version.
    let has_record = actions.iter().any(|action| matches!(action, Action::RecordUpdates(_)));
    let Some((object, node)) = subject(planner).filter(|_| planner.may_report && !has_record) else {
        return next;
    };
    if let Some(owned) = firmware::owned(object, planner.host()) {
        let version = object.metadata.resource_version.as_deref();
        let version = version.and_then(|text| ResourceVersion::parse(text).ok());
        let patch = Changes::between(&document(object), &document(&owned)).main;
        let patch = patch
            .zip(version)
            .map(|(patch, version)| patch.with_precondition(&version));
        actions.extend(patch.map(Action::PatchFirmwareComponents));
        return next;
    }
    let components = match &planner.facts.versions {
        Observed::Present(components) => *components,
        Observed::Unknown(UnknownReason::Unreadable(_)) => {
            return with_recheck(next, RECHECK, "the firmware is read again");
        }
        Observed::Absent | Observed::Unknown(_) => return next,
    };
    if Order::of(object).is_open() {
        return next;
    }
    let when = when(planner, &planner.draft.status.provisioning.state);
    let machine = Machine {
        node,
        components,
        hosts: &planner.facts.settings.image_hosts,
    };
    let report = firmware::status(object, machine, when, planner.facts.now);
    let mut changed = object.clone();
    changed.status = report.status;
    let patch = status_patch(object, &changed);
    let event = report
        .warning
        .map(|message| PlannedEvent::warning(VALIDATION_FAILED, message));
    actions.extend(patch.map(|patch| Action::ReportFirmwareComponents { patch, event }));
    next
}
