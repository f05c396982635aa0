//! The decision of each state, one file per state; [`graph`] defines the transitions.

mod available;
mod deleting;
mod deprovisioning;
mod external;
pub mod graph;
mod inspecting;
mod powering_off;
mod preparing;
mod provisioned;
mod provisioning;
mod register;
mod registering;
mod start;

use metal3_api::metal3::v1alpha1::{ErrorType, OperationalStatus, ProvisioningState as State};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::slots::SlotState;
use metal3_runtime::plan::Observed;

use crate::action::{Count, Request, Wait};
use crate::facts::{NodeFreshness, ObservedNode, Read, RefusalClass};
use crate::node::BmcEndpoint;
use crate::plan::conditions::POWER_FAULT;
use crate::plan::error::{Failure, kind_in};
use crate::plan::{Decision, PlanResult, Planner};
use crate::plan::{power, status};

pub(crate) use provisioned::is_cancelled;
pub(crate) use register::release_secrets;

pub(crate) fn run(planner: &mut Planner<'_>) -> PlanResult {
    check_refused(planner)?;
    match planner.state() {
        State::None | State::Unmanaged => start::run(planner),
        State::Registering => registering::run(planner),
        State::MatchProfile => Ok(Decision::ChangeState(graph::Trigger::Inspected)),
        State::Inspecting => inspecting::run(planner),
        State::Preparing => preparing::run(planner),
        State::Available | State::Ready => available::run(planner),
        State::Provisioning => provisioning::run(planner),
        State::Provisioned => provisioned::run(planner),
        State::ExternallyProvisioned => external::run(planner),
        State::Deprovisioning => deprovisioning::run(planner),
        State::PoweringOffBeforeDelete => powering_off::run(planner),
        State::Deleting => deleting::run(planner),
        State::Other(text) => Err(Decision::Fail(Failure::until_host_changes(
            ErrorType::Registration,
            format!(
                "status.provisioning.state is {text:?}, which this version does not support; the host is not \
                 changed. Return to the version that wrote it"
            ),
        ))),
    }
}

/// Applies what is known on entering a state, so that it is written together with the state and watchers of the state
/// see a complete host.
pub(crate) fn on_enter(planner: &mut Planner<'_>, at: &State) {
    match at {
        State::Available => available::on_enter(planner),
        State::Provisioned => {}
        _ => return,
    }
    if let ObservedNode::Found(node, freshness) = planner.facts.node
        && freshness != NodeFreshness::Stale
    {
        power::record_power_state(planner, node);
    }
}

/// Records a rejected request. It is repeated after its backoff, or when the host has changed.
fn check_refused(planner: &mut Planner<'_>) -> PlanResult<()> {
    let Some(refused) = planner
        .facts
        .refused
        .filter(|refused| refused.class != RefusalClass::Transient)
    else {
        return Ok(());
    };
    if refused.class == RefusalClass::Invalid && power::is_soft(refused.request) {
        return Ok(());
    }
    if !refused.is_fresh && planner.host().status.operational_status == OperationalStatus::Delayed {
        // The retry is due and only waits for a slot: the error was cleared for it.
        return Ok(());
    }
    let message = format!("Ironic rejected the request ({}): {}", refused.request, refused.message);
    let failure = Failure::retryable(kind_in(planner.state()), message);
    if refused.is_fresh {
        // Attempted in this reconcile, whatever is recorded of earlier attempts.
        return Err(Decision::Fail(failure));
    }
    planner.retry(&failure)
}

/// Requires that Ironic operates the node; records a fault or maintenance (differs: `host-maintenance-told`).
fn require_operable(planner: &Planner<'_>, node: &Node) -> PlanResult<()> {
    let failure = |message: String| {
        let kind = kind_in(planner.state());
        // A deletion must not wait for ever: its attempts are counted.
        if planner.is_deleting() {
            return Err(planner.fail_with_backoff(Failure::retryable(kind, message)));
        }
        Err(Decision::Fail(Failure::until(
            kind,
            message,
            Wait::OnNode("the node has a fault"),
        )))
    };
    match (node.fault.as_deref(), node.maintenance) {
        (Some(POWER_FAULT), _) => failure(
            "Ironic cannot reach the BMC (power failure); check its address, network and credentials. Ironic \
             continues once the BMC responds"
                .to_owned(),
        ),
        (Some(fault), _) => failure(format!(
            "Ironic reports a fault of the node ({fault}): {}; correct it and end the node's maintenance in Ironic",
            node.last_error.as_deref().unwrap_or("no details")
        )),
        (None, true) => failure(format!(
            "the node is in maintenance ({}), so Ironic does not operate it; end its maintenance in Ironic",
            node.maintenance_reason.as_deref().unwrap_or("no reason given")
        )),
        (None, false) => Ok(()),
    }
}

/// Records that the node is in an unexpected state, and leaves it (differs: `host-unexpected-state`).
fn unexpected_state(planner: &Planner<'_>, node: &Node, cure: &str) -> Decision {
    let message = format!(
        "in Ironic the node is in state {:?}, which is unexpected for a host in state {:?}; the node is not \
         changed. {cure}",
        node.provision_state.as_str(),
        graph::name(planner.state()),
    );
    let kind = kind_in(planner.state());
    if planner.is_deleting() {
        return planner.fail_with_backoff(Failure::retryable(kind, message));
    }
    Decision::Fail(Failure::until(
        kind,
        message,
        Wait::OnNode("the node is in an unexpected state"),
    ))
}

fn failure_reason(planner: &Planner<'_>, node: &Node) -> PlanResult<String> {
    match (&node.last_error, &planner.facts.last_history_error) {
        (Some(error), _) => Ok(error.clone()),
        // Ironic sets the failed state before the reason, and holds a reservation until then.
        (None, _) if node.reservation.is_some() => Err(Decision::Wait(Wait::OnNode(
            "Ironic has not reported the reason of the failure yet",
        ))),
        // Powering off, and each power synchronisation, erase the reason from the node.
        (None, Observed::Unknown(_)) => Err(Decision::read(Read::History)),
        (None, Observed::Present(error)) => Ok((*error).to_owned()),
        (None, Observed::Absent) => {
            Ok("Ironic reports no reason; check its log and the console of the machine".to_owned())
        }
    }
}

/// Adds a transition without impact; the next decision needs a new observation of the node.
fn request_transition(planner: &mut Planner<'_>, node: &Node, to: Transition) -> Decision {
    planner.request(Request::Provision(node.uuid.clone(), to));
    Decision::Wait(Wait::OnNode("Ironic is busy"))
}

/// Recovers from a failed state: ends the maintenance that Ironic set, and makes the node manageable.
fn recover(planner: &mut Planner<'_>, node: &Node) -> Decision {
    if node.maintenance {
        planner.request(Request::ClearMaintenance(node.uuid.clone()));
    }
    request_transition(planner, node, Transition::Manage)
}

/// Clears an error whose request is sent now: a later failure is a new one. The error of a deployment stays, as the
/// reason for deprovisioning.
fn clear_error(planner: &mut Planner<'_>) {
    let kind = kind_in(planner.state());
    if planner.recorded_error(kind).is_some() {
        status::clear_kind(&mut planner.draft.status, kind);
    }
}

fn require_slot(planner: &mut Planner<'_>) -> PlanResult<()> {
    let address = planner.host().spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
    let loads = BmcEndpoint::of(address, &planner.facts.settings.node)
        .is_ok_and(|endpoint| endpoint.loads_provisioning_network());
    let delayed = planner.host().status.operational_status == OperationalStatus::Delayed;
    let slot = if loads {
        planner.facts.slot
    } else {
        Some(SlotState::Granted)
    };
    match slot {
        None => Err(Decision::read(Read::Slot)),
        Some(SlotState::Granted) => {
            status::end_delay(&mut planner.draft.status);
            Ok(())
        }
        Some(SlotState::Waiting { .. }) => {
            if !delayed {
                planner.draft.status.operational_status = OperationalStatus::Delayed;
                planner.count(Count::One(if *planner.state() == State::Deprovisioning {
                    "metal3_delayed__deprovisioning_total"
                } else {
                    "metal3_delayed__provisioning_total"
                }));
            }
            Err(Decision::Wait(Wait::OnSlot))
        }
    }
}
