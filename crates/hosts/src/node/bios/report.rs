//! The status of HostFirmwareSettings.

use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::{
    AttributeType, BareMetalHost, ErrorType, HostFirmwareSettings, HostFirmwareSettingsStatus, SchemaReference,
    is_password,
};
use metal3_domain::uri::public_text;
use metal3_ironic::model::hardware::BiosSetting;
use metal3_ironic::model::node::Node;
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};

use super::super::reported::{
    CHANGE_DETECTED, VALID, When, changed_at, condition, is_changed_since_report, is_current, owners,
};
use super::{Change, change, invalid_text, names_text, schema, text_of};
use crate::names::settings_reason::{CONFIGURATION_ERROR, SUCCESS};

/// The end of the message while a host is prepared or waits for that.
const APPLIED_NOW: &str = "applied while the host is prepared";
/// The same of a running machine that is serviced.
const APPLIED_AT_REBOOT: &str = "applied when the host is rebooted the next time, as its HostUpdatePolicy allows";
/// Before the reason, in the message of settings whose last service failed.
const FAILED: &str = "the last service failed (";
/// The longest reason in a message, in characters.
const LONGEST_REASON: usize = 300;
/// As in the Go manager.
const INVALID: &str = "Invalid BIOS setting";

/// Of a machine of which Ironic has no settings, or none yet.
const NO_SETTINGS: &str = "Ironic has no BIOS settings of this machine; it reads them when it verifies the BMC and when it cleans the \
                           machine, if the driver of the BMC supports that";

/// A report about the settings of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The new status.
    pub status: HostFirmwareSettingsStatus,
    /// The warning of an Event, when the condition about the validity has changed to a problem.
    pub warning: Option<String>,
}

fn has_status(object: &HostFirmwareSettings, name: &str, status: ConditionStatus) -> bool {
    condition(object, name).is_some_and(|condition| condition.status == status)
}

/// Whether a report says when settings are applied, and they are not applied then.
#[must_use]
pub fn is_reported_otherwise(object: &HostFirmwareSettings, when: When) -> bool {
    condition(object, CHANGE_DETECTED).is_some_and(|condition| {
        let says = |text: &str| condition.message.ends_with(text);
        match when {
            When::Now => false,
            When::Rebooted => is_change_reported(object) && !says(APPLIED_AT_REBOOT),
            When::Prepared => says(APPLIED_NOW) || says(APPLIED_AT_REBOOT),
        }
    })
}

/// Whether a service of these settings failed, and their report does not say so yet.
#[must_use]
pub fn lacks_failure(object: &HostFirmwareSettings, host: &BareMetalHost) -> bool {
    let has_reason = |condition: &Condition| condition.message.contains(FAILED);
    host.status.error_type == Some(ErrorType::Servicing)
        && is_change_reported(object)
        && condition(object, CHANGE_DETECTED).is_some_and(|condition| !has_reason(condition))
}

/// Whether a current status says that settings are to be changed, and can be.
#[must_use]
pub fn is_change_reported(object: &HostFirmwareSettings) -> bool {
    has_status(object, CHANGE_DETECTED, ConditionStatus::True) && has_status(object, VALID, ConditionStatus::True)
}

/// The status with these settings of the machine. `when`: what differs is applied then.
#[must_use]
pub fn status(
    (object, host, node): (&HostFirmwareSettings, &BareMetalHost, &Node),
    settings: &[BiosSetting],
    when: When,
    now: Time,
) -> Report {
    let change = change(&object.spec.settings, settings);
    let mut status = object.status.clone();
    status.settings = settings.iter().filter_map(shown).collect();
    status.schema = (!settings.is_empty()).then(|| SchemaReference {
        namespace: host.metadata.namespace.clone().unwrap_or_default(),
        name: schema::name(settings),
    });
    let mut warning = None;
    let failure = failure(object, host).filter(|_| when == When::Rebooted);
    for (statement, message) in [
        detected(&change, when, failure.as_deref()),
        valid(&change, settings.is_empty()),
    ] {
        let mut condition = statement.standard(object.metadata.generation, now);
        condition.message = public_text(&message);
        let (is_warning, message) = (
            condition.reason == CONFIGURATION_ERROR.as_str(),
            condition.message.clone(),
        );
        let is_recorded = |recorded: &&Condition| recorded.type_ == condition.type_ && recorded.message == message;
        let is_known = status.conditions.iter().any(|recorded| is_recorded(&recorded));
        set_condition(&mut status.conditions, condition);
        warning = warning.or_else(|| (is_warning && !is_known).then_some(message));
    }
    // The clock of Ironic may be ahead.
    if status != object.status || !is_current(object, node) {
        let changed = changed_at(object, node).map(Time::new);
        status.last_updated = Some(changed.map_or(now, |changed| changed.max(now)));
    }
    Report { status, warning }
}

/// Name and value, unless the setting holds a secret.
fn shown(setting: &BiosSetting) -> Option<(String, String)> {
    let is_secret =
        is_password(&setting.name) || schema::of_setting(setting).attribute_type == Some(AttributeType::Password);
    (!is_secret).then(|| (setting.name.clone(), text_of(&setting.value).unwrap_or_default()))
}

/// A condition and its message: also one that is true has one.
type Statement = (ConditionBuilder, String);

/// Why the last service of the settings failed: the error of the host, or what the last report has of one.
fn failure(object: &HostFirmwareSettings, host: &BareMetalHost) -> Option<String> {
    if host.status.error_type == Some(ErrorType::Servicing) {
        return Some(host.status.error_message.chars().take(LONGEST_REASON).collect());
    }
    let recorded = condition(object, CHANGE_DETECTED).filter(|_| !is_changed_since_report(object))?;
    let (_, rest) = recorded.message.split_once(FAILED)?;
    let end = rest.rfind(&format!("); {APPLIED_AT_REBOOT}"))?;
    rest.get(..end).map(str::to_owned)
}

fn detected(change: &Change, when: When, failure: Option<&str>) -> Statement {
    if change.is_none() {
        let none = ConditionBuilder::mark_false(CHANGE_DETECTED, SUCCESS, Severity::Info, "");
        return (none, String::new());
    }
    let names = change.differing.iter().map(|one| one.name.as_str());
    let names: Vec<_> = names
        .chain(change.invalid.iter().map(|one| one.name.as_str()))
        .collect();
    let when = match when {
        _ if !change.invalid.is_empty() => "applied when all settings are valid",
        When::Now => APPLIED_NOW,
        When::Rebooted => APPLIED_AT_REBOOT,
        When::Prepared => "applied when the host is prepared the next time",
    };
    let names = names_text(&names);
    let message = match failure.filter(|_| change.invalid.is_empty()) {
        Some(failure) => format!("{names}: {FAILED}{failure}); {when}"),
        None => format!("{names}: {when}"),
    };
    (ConditionBuilder::mark_true(CHANGE_DETECTED, SUCCESS), message)
}

fn valid(change: &Change, is_unknown_machine: bool) -> Statement {
    if change.invalid.is_empty() {
        return (ConditionBuilder::mark_true(VALID, SUCCESS), String::new());
    }
    let message = match is_unknown_machine {
        true => NO_SETTINGS.to_owned(),
        false => format!("{INVALID}: {}", invalid_text(&change.invalid)),
    };
    let invalid = ConditionBuilder::mark_false(VALID, CONFIGURATION_ERROR, Severity::Error, "");
    (invalid, message)
}

/// The owner references with the host as a plain one; `None`: they have it.
#[must_use]
pub fn owned(object: &HostFirmwareSettings, host: &BareMetalHost) -> Option<HostFirmwareSettings> {
    let owners = owners(&object.metadata, host, false)?;
    let mut owned = object.clone();
    owned.metadata.owner_references = Some(owners);
    Some(owned)
}
