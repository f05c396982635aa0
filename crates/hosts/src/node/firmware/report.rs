//! The status of HostFirmwareComponents.

use chrono::{DateTime, Utc};
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, FirmwareComponentStatus, HostFirmwareComponents, HostFirmwareComponentsStatus,
};
use metal3_domain::uri::public_text;
use metal3_ironic::model::hardware::FirmwareComponent;
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};

use super::super::reported::{CHANGE_DETECTED, VALID, When, changed_at, condition, is_current, owners};
use super::order::without_failure;
use super::{Machine, Order, due, invalid, invalid_text, names_text, requested};
use crate::names::components_reason::{INVALID_COMPONENT, OK};

/// The end of the message about updates of a running machine that is serviced.
const MADE_AT_REBOOT: &str = "made when the host is rebooted the next time, as its HostUpdatePolicy allows";
/// As in the Go manager.
const INVALID: &str = "Invalid Firmware Components";

/// A report about the firmware of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The new status.
    pub status: HostFirmwareComponentsStatus,
    /// The warning of an Event, when the condition about the validity has changed to a problem.
    pub warning: Option<String>,
}

/// Whether a report says when updates are made, and they are not made then.
#[must_use]
pub fn is_reported_otherwise(object: &HostFirmwareComponents, when: When) -> bool {
    let is_at_reboot =
        condition(object, CHANGE_DETECTED).is_some_and(|condition| condition.message.ends_with(MADE_AT_REBOOT));
    let is_due = !due(object).is_empty()
        && condition(object, VALID).is_some_and(|condition| condition.status == ConditionStatus::True);
    match when {
        When::Now => false,
        When::Rebooted => is_due && !is_at_reboot,
        When::Prepared => is_at_reboot,
    }
}

/// The status with these versions of the machine.
#[must_use]
pub fn status(object: &HostFirmwareComponents, machine: Machine<'_>, when: When, now: Time) -> Report {
    let mut status = object.status.clone();
    status.components = machine.components.iter().map(shown).collect();
    // What is asked for again later is a new request.
    let asked = requested(object);
    status.updates.retain(|update| asked.contains(update));
    if due(object).is_empty() && matches!(Order::of(object), Order::Failed(_)) {
        // They are not requested any more.
        let mut kept = object.clone();
        kept.status.updates.clone_from(&status.updates);
        status.conditions = without_failure(&kept, now).status.conditions;
    }
    let mut warning = None;
    for (statement, message) in statements(object, machine, when) {
        let mut condition = statement.standard(object.metadata.generation, now);
        condition.message = public_text(&message);
        let is_warning = condition.reason == INVALID_COMPONENT.as_str();
        let message = condition.message.clone();
        let is_recorded = |recorded: &Condition| recorded.type_ == condition.type_ && recorded.message == message;
        let is_known = status.conditions.iter().any(is_recorded);
        set_condition(&mut status.conditions, condition);
        warning = warning.or_else(|| (is_warning && !is_known).then_some(message));
    }
    // The clock of Ironic may be ahead.
    if status != object.status || !is_current(object, machine.node) {
        let changed = changed_at(object, machine.node).map(Time::new);
        status.last_updated = Some(changed.map_or(now, |changed| changed.max(now)));
    }
    Report { status, warning }
}

/// A condition and its message: also one that is true has one.
type Statement = (ConditionBuilder, String);

fn statements(object: &HostFirmwareComponents, machine: Machine<'_>, when: When) -> [Statement; 2] {
    let invalid = invalid(requested(object), machine);
    let valid = match invalid.is_empty() {
        true => (ConditionBuilder::mark_true(VALID, OK), String::new()),
        false => (
            ConditionBuilder::mark_false(VALID, INVALID_COMPONENT, Severity::Error, ""),
            format!("{INVALID}: {}", invalid_text(&invalid)),
        ),
    };
    let due = due(object);
    if due.is_empty() {
        let none = ConditionBuilder::mark_false(CHANGE_DETECTED, OK, Severity::Info, "");
        return [(none, String::new()), valid];
    }
    let when = match when {
        _ if !invalid.is_empty() => "made when all updates are valid",
        When::Now => "made while the host is prepared",
        When::Rebooted => MADE_AT_REBOOT,
        When::Prepared => {
            "made when the host is prepared the next time, after it is deprovisioned; a machine in use is not updated"
        }
    };
    let names = names_text(&due);
    let detected = ConditionBuilder::mark_true(CHANGE_DETECTED, OK);
    [(detected, format!("{names}: {when}")), valid]
}

pub(super) fn shown(component: &FirmwareComponent) -> FirmwareComponentStatus {
    FirmwareComponentStatus {
        component: component.component.clone(),
        initial_version: component.initial_version.clone().unwrap_or_default(),
        current_version: component.current_version.clone(),
        last_version_flashed: component.last_version_flashed.clone(),
        updated_at: component.updated_at.map(whole_seconds),
    }
}

/// As the API stores it.
fn whole_seconds(at: DateTime<Utc>) -> Time {
    Time::new(DateTime::from_timestamp(at.timestamp(), 0).unwrap_or(at))
}

/// The object with the host as its controller, or as a plain owner next to another controller; `None`: it has that owner.
#[must_use]
pub fn owned(object: &HostFirmwareComponents, host: &BareMetalHost) -> Option<HostFirmwareComponents> {
    let owners = owners(&object.metadata, host, true)?;
    let mut owned = object.clone();
    owned.metadata.owner_references = Some(owners);
    Some(owned)
}
