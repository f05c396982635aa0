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
mod shared;
mod start;

use metal3_api::metal3::v1alpha1::{ErrorType, OperationalStatus, ProvisioningState as State};

use crate::facts::{NodeFreshness, ObservedNode, RefusalClass};
use crate::plan::error::{Failure, kind_in};
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::power;

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
