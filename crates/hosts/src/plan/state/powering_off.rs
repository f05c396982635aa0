//! `powering off before delete`: the machine of a deleted host is powered off.

use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::calls::state::Power;
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_runtime::plan::Observed;

use super::firmware_order;
use super::graph::Trigger;
use super::register::ensure_registered;
use super::shared::{abort, wait_for_cleaning};
use crate::action::{Count, Request};
use crate::facts::{FoundNode, NodeFreshness};
use crate::names::reason;
use crate::plan::deletion::MAX_ATTEMPTS;
use crate::plan::error::Failure;
use crate::plan::ownership::is_owned_node;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::request_disruptive;
use crate::plan::{power, wait};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    let status = &planner.host().status;
    if status.error_type.is_some() && status.error_count > MAX_ATTEMPTS {
        planner.count(Count::One("metal3_delete_without_powering_off_total"));
        return Ok(Decision::ChangeState(Trigger::GivenUp));
    }
    if planner.host().spec.disable_power_off == Some(true) {
        return Ok(Decision::ChangeState(Trigger::PoweredOff));
    }
    if matches!(
        planner.facts.node,
        Observed::Absent | Observed::Present(FoundNode::Foreign(_))
    ) {
        return Ok(Decision::ChangeState(Trigger::NodeAbsent));
    }
    if let Some((node, freshness)) = planner.facts.own_node()
        && freshness >= NodeFreshness::Current
        && !is_owned_node(planner, node)
    {
        return Ok(Decision::ChangeState(Trigger::GivenUp));
    }
    let node = ensure_registered(planner)?;
    match &node.provision_state {
        // The BMC writes firmware, which a power-off would cut.
        S::ServiceWait if !node.firmware_left().is_empty() => {
            return Ok(Decision::Wait(wait::on_node("Ironic is servicing the machine")));
        }
        S::InspectWait | S::ServiceWait => return abort(planner, node),
        S::CleanWait => return wait_for_cleaning(planner, node),
        S::Inspecting | S::Cleaning | S::Deleting | S::Deploying | S::Adopting | S::Servicing | S::Verifying => {
            return Ok(Decision::Wait(wait::on_node("Ironic is busy")));
        }
        _ => {}
    }
    // A power-on may be in progress, perhaps of a process that was replaced.
    power::require_end_of_switching(planner, node)?;
    if node.power_state == Some(PowerState::Off) && node.reservation.is_none() {
        planner.require_fresh_node()?;
        planner.draft.status.powered_on = false;
        return Ok(Decision::ChangeState(Trigger::PoweredOff));
    }
    if node.fault.is_some() || node.maintenance {
        let message = format!(
            "the machine cannot be powered off while its node has a fault or is in maintenance ({}); after \
             {MAX_ATTEMPTS} more attempts the deletion continues without powering off",
            node.fault
                .as_deref()
                .or(node.maintenance_reason.as_deref())
                .unwrap_or("no reason given")
        );
        return Err(planner.fail_with_backoff(Failure::retryable(ErrorType::PowerManagement, message)));
    }
    firmware_order::require_no_lost_order(planner, node)?;
    power::retry_hard_off(planner, node)?;
    let off = Request::Power(node.uuid.clone(), Power::Off);
    request_disruptive(planner, node, off, "deletion of the host")?;
    planner.record_event(reason::POWER_OFF, "Host is powered off before deletion");
    Ok(Decision::Wait(wait::on_node("Ironic is changing the power state")))
}
