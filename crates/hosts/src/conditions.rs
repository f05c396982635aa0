//! The conditions of a host, from its status and its node.
//!
//! They are the Go manager's, with messages. One is ours and only there while it holds: `Held`.

use metal3_api::meta::Condition;
use metal3_api::metal3::names::host_condition as of;
use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, OperationalStatus, ProvisioningState as State};
use metal3_ironic::model::node::Node;
use metal3_runtime::condition::{Severity, Statement, put};
use metal3_runtime::reason::Reason;

use crate::brakes::is_still_held;
use crate::facts::NodeSight;
use crate::names::{HELD, reason};
use crate::plan::Pass;

/// Something that is not done on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// Why, for programs.
    pub(crate) reason: Reason,
    /// Why, and what to do about it.
    pub(crate) message: String,
}

/// Brings the conditions of the draft up to date.
pub(crate) fn renew(pass: &mut Pass<'_>) {
    let (generation, now) = (pass.host().metadata.generation, pass.facts.now);
    let node = match pass.facts.node {
        NodeSight::Found(node, _) => Some(node),
        NodeSight::Unknown | NodeSight::Absent | NodeSight::Foreign { .. } => None,
    };
    let (held, stays_held) = (pass.held.clone(), is_still_held(pass));
    let status = &mut pass.draft.status;
    let mut statements = vec![ready(status)];
    statements.push(available(status));
    statements.extend(healthy(status, node));
    statements.extend(held.as_ref().map(|held| {
        // The only aspect whose truth is bad news: it has a message all the same.
        Statement::holds(HELD, held.reason)
    }));
    statements.push(manageable(status, node));
    statements.push(progressing(status));
    statements.push(provisioned(status));
    for statement in &statements {
        let mut condition = statement.standard(generation, now);
        if let Some(held) = held.as_ref().filter(|_| condition.type_ == HELD) {
            condition.message.clone_from(&held.message);
        }
        put(&mut status.conditions, condition);
    }
    if held.is_none() && !stays_held {
        status.conditions.retain(|condition| condition.type_ != HELD);
    }
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

fn ready(status: &BareMetalHostStatus) -> Statement {
    let not = |reason, message: &str| Statement::fails(of::READY, reason, Severity::Info, message);
    match status.operational_status {
        OperationalStatus::Error => not(reason::ERROR, &status.error_message),
        OperationalStatus::Servicing => not(reason::SERVICING, "the machine is changed while in use"),
        OperationalStatus::Detached => not(
            reason::DETACHED,
            "Ironic does not know the host, as asked; remove the annotation baremetalhost.metal3.io/detached to have it managed again",
        ),
        _ if is_provisioned(&status.provisioning.state) => Statement::holds(of::READY, reason::PROVISIONED),
        _ => not(reason::NOT_PROVISIONED, ""),
    }
}

fn available(status: &BareMetalHostStatus) -> Statement {
    let aspect = of::AVAILABLE_FOR_PROVISIONING;
    if is_available(&status.provisioning.state) {
        Statement::holds(aspect, reason::AVAILABLE)
    } else {
        Statement::fails(aspect, reason::NOT_AVAILABLE, Severity::Info, "")
    }
}

fn provisioned(status: &BareMetalHostStatus) -> Statement {
    if is_provisioned(&status.provisioning.state) {
        Statement::holds(of::PROVISIONED, reason::PROVISIONED)
    } else {
        Statement::fails(of::PROVISIONED, reason::NOT_PROVISIONED, Severity::Info, "")
    }
}

/// Whether the node says something of the machine now.
const fn has_node(status: &BareMetalHostStatus) -> bool {
    !matches!(
        status.provisioning.state,
        State::None | State::Unmanaged | State::Registering | State::Deleting
    ) && !matches!(status.operational_status, OperationalStatus::Detached)
}

fn manageable(status: &BareMetalHostStatus, node: Option<&Node>) -> Statement {
    let not = |reason, message: &str| Statement::fails(of::MANAGEABLE, reason, Severity::Info, message);
    match status.provisioning.state {
        State::None | State::Unmanaged => not(
            reason::NOT_MANAGED,
            "set spec.bmc.address and spec.bmc.credentialsName to have the host managed",
        ),
        State::Registering if status.operational_status == OperationalStatus::Error => {
            not(reason::REGISTRATION_FAILED, &status.error_message)
        }
        State::Registering => not(reason::REGISTERING, "Ironic tries the BMC"),
        _ if has_node(status) && node.is_some_and(|node| node.fault.as_deref() == Some(POWER_FAULT)) => not(
            reason::POWER_FAILURE,
            "Ironic does not reach the BMC; check its address, network and login. Ironic goes on by itself once it does",
        ),
        _ => Statement::holds(of::MANAGEABLE, reason::MANAGEABLE),
    }
}

/// What Ironic calls it when a BMC stops answering.
pub(crate) const POWER_FAULT: &str = "power failure";

fn healthy(status: &BareMetalHostStatus, node: Option<&Node>) -> Option<Statement> {
    let aspect = of::HEALTHY;
    let has_one = status.conditions.iter().any(|condition| condition.type_ == aspect);
    let health = node
        .filter(|_| has_node(status))
        .and_then(|node| node.health.as_deref());
    let unknown = |message: &str| Statement::unknown(aspect, reason::UNKNOWN, message);
    match health {
        Some("OK") => Some(Statement::holds(aspect, reason::HEALTHY)),
        Some("Warning") => Some(Statement::fails(
            aspect,
            reason::WARNING,
            Severity::Info,
            "the BMC warns of the hardware; look at its log",
        )),
        Some("Critical") => Some(Statement::fails(
            aspect,
            reason::CRITICAL,
            Severity::Info,
            "the BMC says that hardware fails; look at its log",
        )),
        Some(_) => Some(unknown("the BMC says something else than OK, Warning or Critical")),
        None if has_one || !has_node(status) || node.is_none() => None,
        None => Some(unknown("the BMC does not tell, or Ironic is too old to ask it")),
    }
}

fn progressing(status: &BareMetalHostStatus) -> Statement {
    let aspect = of::PROGRESSING;
    if status.operational_status == OperationalStatus::Detached {
        return Statement::fails(aspect, reason::DETACHED, Severity::Info, "");
    }
    let reason = match &status.provisioning.state {
        State::None
        | State::Unmanaged
        | State::Available
        | State::Ready
        | State::Provisioned
        | State::ExternallyProvisioned
        | State::Other(_) => return Statement::fails(aspect, reason::NOT_PROGRESSING, Severity::Info, ""),
        State::Registering => reason::REGISTERING,
        State::MatchProfile | State::Inspecting => reason::INSPECTING,
        State::Preparing => reason::PREPARING,
        State::Provisioning => reason::PROVISIONING,
        State::Deprovisioning => reason::DEPROVISIONING,
        State::PoweringOffBeforeDelete => reason::POWERING_OFF,
        State::Deleting => reason::DELETING,
    };
    Statement::holds(aspect, reason)
}
