//! The conditions of a host, from its status and its node.
//!
//! They equal the Go manager's, with messages. `Held` is additional and present only while it holds, and so is `CleaningPlan` for
//! hosts with `spec.cleaning`.

use metal3_api::meta::{Condition, Time};
use metal3_api::metal3::names::host_condition as of;
use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, OperationalStatus, ProvisioningState as State};
use metal3_domain::uri::public_text;
use metal3_ironic::model::node::Node;
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};

use crate::names::{HELD, reason};
use crate::plan::cleaning_plan;
use crate::plan::error::LOGIN_REFUSED;
use crate::plan::firmware_record::is_firmware_still_unknown;
use crate::plan::login;
use crate::plan::planner::{Planner, Withheld};
use crate::plan::running_step;
use crate::plan::safety::is_still_withheld;

pub(crate) fn renew(planner: &mut Planner<'_>) {
    let (generation, now) = (planner.host().metadata.generation, planner.facts.now);
    let node = planner.facts.own_node().map(|(node, _)| node);
    let withheld = planner.withheld.clone();
    let stays_withheld = is_still_withheld(planner) || is_firmware_still_unknown(planner);
    let (step, before) = (running_step::shown(planner), &planner.host().status.conditions);
    let status = &mut planner.draft.status;
    let mut statements = vec![ready(status)];
    statements.push(available(status));
    statements.extend(healthy(status, node));
    statements.push(manageable(status, node));
    statements.push(progressing(status));
    statements.push(provisioned(status));
    let unproven = login::unproven(status).filter(|_| has_node(status));
    for statement in &statements {
        let mut condition = statement.standard(generation, now);
        if let Some(unproven) = unproven.as_ref().filter(|_| says_nothing_of_login(&condition)) {
            condition.message = join(&condition.message, unproven);
        }
        if let Some(step) = step.as_ref().filter(|_| running_step::is_about_progress(&condition)) {
            let step = running_step::since(step, before, &condition.type_, now);
            condition.message = join(&condition.message, &step);
        }
        set_condition(&mut status.conditions, condition);
    }
    if let Some(withheld) = &withheld {
        hold(status, withheld, generation, now);
    } else if !stays_withheld {
        status.conditions.retain(|condition| condition.type_ != HELD);
    }
    cleaning_plan::renew(&mut planner.draft, node, now);
    sort(&mut planner.draft.status.conditions);
}

/// Sets `Held`: the only condition that reports a problem when it is true, so it has a message.
pub(crate) fn hold(status: &mut BareMetalHostStatus, withheld: &Withheld, generation: Option<i64>, now: Time) {
    let mut condition = ConditionBuilder::mark_true(HELD, withheld.reason).standard(generation, now);
    condition.message = public_text(&withheld.message);
    set_condition(&mut status.conditions, condition);
    sort(&mut status.conditions);
}

/// `Ready` first, then by name.
fn sort(conditions: &mut [Condition]) {
    conditions.sort_by(|a, b| {
        let key = |condition: &Condition| (condition.type_ != of::READY, condition.type_.clone());
        key(a).cmp(&key(b))
    });
}

const fn is_provisioned(state: &State) -> bool {
    matches!(state, State::Provisioned | State::ExternallyProvisioned)
}

const fn is_available(state: &State) -> bool {
    matches!(state, State::Available | State::Ready)
}

fn ready(status: &BareMetalHostStatus) -> ConditionBuilder {
    let not = |reason, message: &str| ConditionBuilder::mark_false(of::READY, reason, Severity::Info, message);
    match status.operational_status {
        OperationalStatus::Error => not(reason::ERROR, &status.error_message),
        OperationalStatus::Servicing => not(
            reason::SERVICING,
            "Ironic services the machine; the controller continues when the service ends",
        ),
        OperationalStatus::Detached => not(
            reason::DETACHED,
            "the host is detached from Ironic on request; remove the annotation baremetalhost.metal3.io/detached to \
             manage it again",
        ),
        _ if is_provisioned(&status.provisioning.state) => ConditionBuilder::mark_true(of::READY, reason::PROVISIONED),
        _ => not(reason::NOT_PROVISIONED, ""),
    }
}

fn available(status: &BareMetalHostStatus) -> ConditionBuilder {
    let aspect = of::AVAILABLE_FOR_PROVISIONING;
    if is_available(&status.provisioning.state) {
        ConditionBuilder::mark_true(aspect, reason::AVAILABLE)
    } else {
        ConditionBuilder::mark_false(aspect, reason::NOT_AVAILABLE, Severity::Info, "")
    }
}

fn provisioned(status: &BareMetalHostStatus) -> ConditionBuilder {
    if is_provisioned(&status.provisioning.state) {
        ConditionBuilder::mark_true(of::PROVISIONED, reason::PROVISIONED)
    } else {
        ConditionBuilder::mark_false(of::PROVISIONED, reason::NOT_PROVISIONED, Severity::Info, "")
    }
}

/// Whether the state of the node describes the machine.
const fn has_node(status: &BareMetalHostStatus) -> bool {
    !matches!(
        status.provisioning.state,
        State::None | State::Unmanaged | State::Registering | State::Deleting
    ) && !matches!(status.operational_status, OperationalStatus::Detached)
}

fn manageable(status: &BareMetalHostStatus, node: Option<&Node>) -> ConditionBuilder {
    let not = |reason, message: &str| ConditionBuilder::mark_false(of::MANAGEABLE, reason, Severity::Info, message);
    match status.provisioning.state {
        State::None | State::Unmanaged => not(
            reason::NOT_MANAGED,
            "set spec.bmc.address and spec.bmc.credentialsName to manage the host",
        ),
        State::Registering if status.operational_status == OperationalStatus::Error => {
            not(reason::REGISTRATION_FAILED, &status.error_message)
        }
        State::Registering => not(reason::REGISTERING, "Ironic verifies the BMC"),
        _ if status.error_message.starts_with(LOGIN_REFUSED) => not(reason::LOGIN_REFUSED, &status.error_message),
        _ if has_node(status) && node.is_some_and(|node| node.fault.as_deref() == Some(POWER_FAULT)) => not(
            reason::POWER_FAILURE,
            "Ironic cannot reach the BMC; check its address, network and credentials. Ironic continues once the BMC \
             responds",
        ),
        _ => ConditionBuilder::mark_true(of::MANAGEABLE, reason::MANAGEABLE),
    }
}

/// Whether the condition is about the BMC of a registered host, and does not name the login that it refuses.
fn says_nothing_of_login(condition: &Condition) -> bool {
    condition.type_ == of::MANAGEABLE
        && [reason::MANAGEABLE.as_str(), reason::POWER_FAILURE.as_str()].contains(&condition.reason.as_str())
}

fn join(message: &str, more: &str) -> String {
    match message.is_empty() {
        true => more.to_owned(),
        false => format!("{message}. {more}"),
    }
}

/// Ironic's fault when a BMC stops responding.
pub(crate) const POWER_FAULT: &str = "power failure";

fn healthy(status: &BareMetalHostStatus, node: Option<&Node>) -> Option<ConditionBuilder> {
    let aspect = of::HEALTHY;
    let has_one = status.conditions.iter().any(|condition| condition.type_ == aspect);
    let health = node
        .filter(|_| has_node(status))
        .and_then(|node| node.health.as_deref());
    let unknown = |message: &str| ConditionBuilder::mark_unknown(aspect, reason::UNKNOWN, message);
    match health {
        Some("OK") => Some(ConditionBuilder::mark_true(aspect, reason::HEALTHY)),
        Some("Warning") => Some(ConditionBuilder::mark_false(
            aspect,
            reason::WARNING,
            Severity::Info,
            "the BMC reports a hardware warning; check its log",
        )),
        Some("Critical") => Some(ConditionBuilder::mark_false(
            aspect,
            reason::CRITICAL,
            Severity::Info,
            "the BMC reports a hardware failure; check its log",
        )),
        Some(_) => Some(unknown("the BMC reports a health other than OK, Warning or Critical")),
        None if has_one || !has_node(status) || node.is_none() => None,
        None => Some(unknown(
            "the BMC does not report its health, or Ironic is too old to read it",
        )),
    }
}

fn progressing(status: &BareMetalHostStatus) -> ConditionBuilder {
    let aspect = of::PROGRESSING;
    if status.operational_status == OperationalStatus::Detached {
        return ConditionBuilder::mark_false(aspect, reason::DETACHED, Severity::Info, "");
    }
    let reason = match &status.provisioning.state {
        State::None
        | State::Unmanaged
        | State::Available
        | State::Ready
        | State::Provisioned
        | State::ExternallyProvisioned
        | State::Other(_) => return ConditionBuilder::mark_false(aspect, reason::NOT_PROGRESSING, Severity::Info, ""),
        State::Registering => reason::REGISTERING,
        State::MatchProfile | State::Inspecting => reason::INSPECTING,
        State::Preparing => reason::PREPARING,
        State::Provisioning => reason::PROVISIONING,
        State::Deprovisioning => reason::DEPROVISIONING,
        State::PoweringOffBeforeDelete => reason::POWERING_OFF,
        State::Deleting => reason::DELETING,
    };
    ConditionBuilder::mark_true(aspect, reason)
}
