//! New hosts, and hosts without a BMC.

use metal3_api::metal3::v1alpha1::{OperationalStatus, ProvisioningState as State};

use super::graph::Trigger;
use crate::action::{Count, Wait};
use crate::names::reason;
use crate::plan::planner::{Decision, PlanResult, Planner};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    if !planner.host().is_unmanaged() {
        planner.draft.status.operational_status = OperationalStatus::Ok;
        planner.count(Count::One("metal3_host_registration_required_total"));
        return Ok(Decision::ChangeState(Trigger::Managed));
    }
    if *planner.state() == State::Unmanaged {
        return Ok(Decision::Wait(Wait::OnUser("the host has no BMC")));
    }
    planner.draft.status.operational_status = OperationalStatus::Discovered;
    planner.record_event(reason::DISCOVERED, "the host has no BMC; set spec.bmc to manage it");
    planner.count(Count::One("metal3_host_unmanaged_total"));
    Ok(Decision::ChangeState(Trigger::Unmanaged))
}
