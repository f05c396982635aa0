//! Detachment: Ironic deletes its record of the node; the machine and the object stay.

use metal3_api::metal3::v1alpha1::{DetachedDelete, OperationalStatus, ProvisioningState as State};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use crate::facts::{FoundNode, NodeFreshness, Read};
use crate::plan::deletion::{delete_node, report_left_node};
use crate::plan::ironic;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::state::check_refused;
use crate::plan::wait;

/// The requests and reads of a detachment. Another rejected request does not delay it.
const DETACHING: [&str; 6] = [
    "read node",
    "change node",
    "set maintenance",
    "abort",
    "deleted",
    "delete node",
];

/// Ends the decision for a host that is detached or is being detached.
pub(crate) fn handle_detached(planner: &mut Planner<'_>) -> PlanResult<()> {
    let is_detached = planner.host().status.operational_status == OperationalStatus::Detached;
    let Some(request) = planner.host().detach_request() else {
        if is_detached {
            let has_error = planner.host().status.error_type.is_some();
            planner.draft.status.operational_status = if has_error {
                OperationalStatus::Error
            } else {
                OperationalStatus::Ok
            };
            return Err(Decision::Wait(Next::Requeue));
        }
        return Ok(());
    };
    let is_steady = matches!(
        planner.state(),
        State::Provisioned | State::ExternallyProvisioned | State::Available | State::Ready
    );
    if *planner.state() == State::Deleting {
        return Ok(());
    }
    // differs: `host-delayed-deletion`. The Go manager continues the operation of the host, up to its deletion.
    let is_delayed = planner.is_deleting() && request.delete == DetachedDelete::Delay;
    let done = wait::on_user(if is_delayed {
        "the host is detached and its deletion is delayed"
    } else {
        "the host is detached"
    });
    if is_detached {
        return Err(Decision::Wait(done));
    }
    if !is_steady && !request.force {
        if is_delayed {
            return Err(Decision::Wait(wait::on_user("the deletion of the host is delayed")));
        }
        // Detached later, in a steady state.
        return Ok(());
    }
    let refused = planner.facts.refused;
    if refused.is_some_and(|refused| DETACHING.contains(&refused.request)) {
        check_refused(planner)?;
    }
    match planner.facts.node {
        Observed::Unknown(_) | Observed::Present(FoundNode::Own(_, NodeFreshness::Stale)) => {
            return Err(Decision::read(Read::Node));
        }
        Observed::Present(FoundNode::Own(node, _)) => delete_node(planner, node, request.force)?,
        Observed::Present(FoundNode::Foreign(found)) => report_left_node(planner, found),
        Observed::Absent => {
            planner.require_no_creation()?;
            ironic::require_nowhere_else(planner, false)?;
        }
    }
    planner.draft.status.operational_status = OperationalStatus::Detached;
    // Another Ironic that the label names may be recorded now.
    let waits_for_end = planner.withheld.as_ref().is_some_and(ironic::is_change_refused);
    Err(Decision::Wait(if waits_for_end { Next::Requeue } else { done }))
}
