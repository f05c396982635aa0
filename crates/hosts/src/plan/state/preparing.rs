//! `preparing`: selects the root device and creates the ports. RAID and firmware settings are not supported and
//! rejected at registration.

use metal3_api::metal3::v1alpha1::{ErrorType, RootDeviceHints};
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Trigger;
use super::register::{ensure_ports, ensure_registered};
use super::shared::{recover, require_operable, unexpected_state};
use crate::action::Wait;
use crate::names::reason;
use crate::node::profile;
use crate::plan::error::Failure;
use crate::plan::planner::{Decision, PlanResult, Planner};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    let node = ensure_registered(planner)?;
    match &node.provision_state {
        S::CleanFailed | S::InspectFailed | S::AdoptFailed => {
            let error = node.last_error.as_deref().unwrap_or("no details");
            planner.retry_node_failure(Failure::retryable(ErrorType::Preparation, error))?;
            return Ok(recover(planner, node));
        }
        S::Manageable | S::Available => require_operable(planner, node)?,
        S::Cleaning | S::CleanWait | S::Inspecting | S::InspectWait | S::Deleting | S::Adopting => {
            return Ok(Decision::Wait(Wait::OnNode("Ironic is busy")));
        }
        _ => {
            return Err(unexpected_state(
                planner,
                node,
                "Undeploy the node in Ironic if its system is not needed",
            ));
        }
    }
    ensure_ports(planner, node)?;
    let hints = root_device_hints(planner)?;
    planner.draft.status.provisioning.root_device_hints = hints;
    if planner.host().status.hardware_profile.is_none() {
        let chosen = profile::choose(planner.host()).map_err(|error| invalid(&error))?;
        planner.draft.status.hardware_profile = Some(chosen.name().to_owned());
        planner.record_event(reason::PROFILE_SET, format!("Hardware profile set: {}", chosen.name()));
    }
    Ok(Decision::ChangeState(Trigger::Prepared))
}

pub(super) fn root_device_hints(planner: &Planner<'_>) -> PlanResult<Option<RootDeviceHints>> {
    profile::root_device(planner.host()).map_err(|error| invalid(&error))
}

fn invalid(error: &crate::node::InvalidHost) -> Decision {
    Decision::Fail(Failure::until_host_changes(ErrorType::Registration, error.to_string()))
}
