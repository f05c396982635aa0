//! The host leaves: its machine is switched off first.

use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::state::Power;
use metal3_ironic::model::state::{PowerState, ProvisionState as S};

use super::graph::Why;
use super::order;
use super::register::registered;
use crate::action::{Count, Request, Wait};
use crate::brakes::harm;
use crate::claim::is_ours;
use crate::deletion::MOST_ATTEMPTS;
use crate::error::Failure;
use crate::facts::{NodeSeen, NodeSight};
use crate::names::reason;
use crate::plan::{End, Pass};
use crate::power;

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    let status = &pass.host().status;
    if status.error_type.is_some() && status.error_count > MOST_ATTEMPTS {
        pass.count(Count::One("metal3_delete_without_powering_off_total"));
        return Ok(End::Go(Why::GivenUp));
    }
    if pass.host().spec.disable_power_off == Some(true) {
        return Ok(End::Go(Why::PoweredOff));
    }
    if pass.facts.node == NodeSight::Absent {
        return Ok(End::Go(Why::Forgotten));
    }
    if let NodeSight::Found(node, seen) = pass.facts.node
        && seen >= NodeSeen::Current
        && !is_ours(pass, node)
    {
        return Ok(End::Go(Why::GivenUp));
    }
    let node = registered(pass)?;
    match &node.provision_state {
        S::InspectWait => return Ok(order(pass, node, Transition::Abort)),
        S::Inspecting | S::Cleaning | S::CleanWait | S::Deleting | S::Deploying | S::Adopting | S::Verifying => {
            return Ok(End::Wait(Wait::OnNode("Ironic is at work")));
        }
        _ => {}
    }
    // Off may be on its way to on.
    if power::is_switching(node) {
        return Ok(End::Wait(Wait::OnNode("Ironic switches the power")));
    }
    if node.power_state == Some(PowerState::Off) {
        pass.draft.status.powered_on = false;
        return Ok(End::Go(Why::PoweredOff));
    }
    if node.fault.is_some() || node.maintenance {
        let message = format!(
            "the machine cannot be switched off while its node has a fault or is in maintenance ({}); after {MOST_ATTEMPTS} \
             more attempts the host goes without",
            node.fault
                .as_deref()
                .or(node.maintenance_reason.as_deref())
                .unwrap_or("no reason given")
        );
        return Err(pass.fails(Failure::attempt(ErrorType::PowerManagement, message)));
    }
    if let Some(error) = power::failure_of(node) {
        pass.attempt_on_failed(Failure::attempt(
            ErrorType::PowerManagement,
            format!("PowerOff operation failed: {error}"),
        ))?;
    }
    let off = Request::Power(node.uuid.clone(), Power::Off);
    harm(pass, node, off, "deletion of the host")?;
    pass.tell(reason::POWER_OFF, "Host is powered off to be deleted");
    Ok(End::Wait(Wait::OnNode("Ironic switches the power")))
}
