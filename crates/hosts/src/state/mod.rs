//! What each state asks for. One file a state; where it leads to is said by [`graph`].

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
use metal3_ironic::slots::Turn;

use crate::action::{Count, Request, Wait};
use crate::conditions::POWER_FAULT;
use crate::error::{Failure, kind_in};
use crate::facts::{Cure, NodeSeen, NodeSight, Read, Sight};
use crate::node::Controller;
use crate::plan::{End, Pass};
use crate::{power, status};

pub(crate) use provisioned::is_cancelled;
pub(crate) use register::release_secrets;

/// What the host's state asks for.
pub(crate) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    refused(pass)?;
    match pass.state() {
        State::None | State::Unmanaged => start::run(pass),
        State::Registering => registering::run(pass),
        State::MatchProfile => Ok(End::Go(graph::Why::Inspected)),
        State::Inspecting => inspecting::run(pass),
        State::Preparing => preparing::run(pass),
        State::Available | State::Ready => available::run(pass),
        State::Provisioning => provisioning::run(pass),
        State::Provisioned => provisioned::run(pass),
        State::ExternallyProvisioned => external::run(pass),
        State::Deprovisioning => deprovisioning::run(pass),
        State::PoweringOffBeforeDelete => powering_off::run(pass),
        State::Deleting => deleting::run(pass),
        State::Other(text) => Err(End::Fail(Failure::standing(
            ErrorType::Registration,
            format!(
                "status.provisioning.state is {text:?}, which this version does not know; the host is left as it is. Go \
                 back to the version that wrote it"
            ),
        ))),
    }
}

/// What of a state is known as the host gets there: it is written together with it, and whoever waits for the state does
/// not find the host changed under its hands.
pub(crate) fn arrive(pass: &mut Pass<'_>, at: &State) {
    match at {
        State::Available => available::arrive(pass),
        State::Provisioned => {}
        _ => return,
    }
    if let NodeSight::Found(node, seen) = pass.facts.node
        && seen != NodeSeen::Stale
    {
        power::observe(pass, node);
    }
}

/// Tells what Ironic refused. The request is made again when its time has come, or when the host has changed.
fn refused(pass: &mut Pass<'_>) -> Result<(), End> {
    let Some(refused) = pass.facts.refused.filter(|refused| refused.cure != Cure::Wait) else {
        return Ok(());
    };
    if refused.cure == Cure::Change && power::is_soft(refused.request) {
        return Ok(());
    }
    if !refused.is_fresh && pass.host().status.operational_status == OperationalStatus::Delayed {
        // The attempt is due and only waits for its turn: what was told was taken back for it.
        return Ok(());
    }
    let message = format!("Ironic refuses the request ({}): {}", refused.request, refused.message);
    let failure = Failure::attempt(kind_in(pass.state()), message);
    if refused.is_fresh {
        // It was attempted just now, whatever is told of attempts before.
        return Err(End::Fail(failure));
    }
    pass.attempt(&failure)
}

/// Whether Ironic works with the node as asked; a fault or maintenance is told instead of waited for in silence
/// (differs: `host-maintenance-told`).
fn operable(pass: &Pass<'_>, node: &Node) -> Result<(), End> {
    let told = |message: String| {
        let kind = kind_in(pass.state());
        // A host that leaves must not wait for ever: its attempts are counted.
        if pass.is_leaving() {
            return Err(pass.fails(Failure::attempt(kind, message)));
        }
        Err(End::Fail(Failure::until(
            kind,
            message,
            Wait::OnNode("the node has a fault"),
        )))
    };
    match (node.fault.as_deref(), node.maintenance) {
        (Some(POWER_FAULT), _) => told(
            "Ironic does not reach the BMC (power failure); check its address, network and login. Ironic goes on by itself \
             once it does"
                .to_owned(),
        ),
        (Some(fault), _) => told(format!(
            "Ironic reports a fault of the node ({fault}): {}; correct it and end the node's maintenance in Ironic",
            node.last_error.as_deref().unwrap_or("no details")
        )),
        (None, true) => told(format!(
            "the node is in maintenance ({}), so Ironic leaves it alone; end its maintenance in Ironic",
            node.maintenance_reason.as_deref().unwrap_or("no reason given")
        )),
        (None, false) => Ok(()),
    }
}

/// Tells that the node is in a state in which it should not be, and leaves it alone (differs: `host-unexpected-state`).
fn unexpected(pass: &Pass<'_>, node: &Node, cure: &str) -> End {
    let message = format!(
        "in Ironic the node is in state {:?}, which does not fit a host that is {:?}; it is left as it is. {cure}",
        node.provision_state.as_str(),
        graph::name(pass.state()),
    );
    let kind = kind_in(pass.state());
    if pass.is_leaving() {
        return pass.fails(Failure::attempt(kind, message));
    }
    End::Fail(Failure::until(
        kind,
        message,
        Wait::OnNode("the node is in an unexpected state"),
    ))
}

/// Why an operation failed, in Ironic's words.
fn said(pass: &Pass<'_>, node: &Node) -> Result<String, End> {
    match (&node.last_error, pass.facts.last_history_error) {
        (Some(error), _) => Ok(error.clone()),
        // A node is failed before Ironic says why, and is held until then.
        (None, _) if node.reservation.is_some() => {
            Err(End::Wait(Wait::OnNode("Ironic has not said yet why it failed")))
        }
        // Switching it off afterwards, and any look at its power, erase the words of a failure.
        (None, Sight::Unknown) => Err(End::read(Read::History)),
        (None, Sight::Found(error)) => Ok(error.to_owned()),
        (None, Sight::Absent) => {
            Ok("Ironic gives no reason; look at its log and at the console of the machine".to_owned())
        }
    }
}

/// A request that harms nobody, after which the node has to be seen anew.
fn order(pass: &mut Pass<'_>, node: &Node, to: Transition) -> End {
    pass.ask(Request::Provision(node.uuid.clone(), to));
    End::Wait(Wait::OnNode("Ironic is at work"))
}

/// Has Ironic forget a failure: ends the maintenance that it set, and takes the node back under control.
fn recover(pass: &mut Pass<'_>, node: &Node) -> End {
    if node.maintenance {
        pass.ask(Request::ClearMaintenance(node.uuid.clone()));
    }
    order(pass, node, Transition::Manage)
}

/// What held a request back is cured, since it is made now: whatever fails from here on is another failure. The error of a
/// deployment stays, which says why the host is torn down.
fn went_on(pass: &mut Pass<'_>) {
    let kind = kind_in(pass.state());
    if pass.told(kind).is_some() {
        status::clear_of(&mut pass.draft.status, kind);
    }
}

/// Passes when the host may load the provisioning network.
fn turn(pass: &mut Pass<'_>) -> Result<(), End> {
    let address = pass.host().spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
    let loads = Controller::of(address, &pass.facts.settings.node)
        .is_ok_and(|controller| controller.loads_provisioning_network());
    let delayed = pass.host().status.operational_status == OperationalStatus::Delayed;
    let turn = if loads { pass.facts.turn } else { Some(Turn::Granted) };
    match turn {
        None => Err(End::read(Read::Turn)),
        Some(Turn::Granted) => {
            status::end_delay(&mut pass.draft.status);
            Ok(())
        }
        Some(Turn::Waiting { .. }) => {
            if !delayed {
                pass.draft.status.operational_status = OperationalStatus::Delayed;
                pass.count(Count::One(if *pass.state() == State::Deprovisioning {
                    "metal3_delayed__deprovisioning_total"
                } else {
                    "metal3_delayed__provisioning_total"
                }));
            }
            Err(End::Wait(Wait::OnTurn))
        }
    }
}
