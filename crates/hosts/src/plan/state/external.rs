//! `externally provisioned`: only the power is managed.

use super::graph::Trigger;
use super::provisioned::keep_running;
use crate::plan::planner::{Decision, PlanResult, Planner};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    if planner.host().spec.externally_provisioned == Some(true) {
        return keep_running(planner);
    }
    let spec = &planner.host().spec;
    // The requested image is taken as the running one.
    planner.draft.status.provisioning.image = spec.image.clone().unwrap_or_default();
    planner
        .draft
        .status
        .provisioning
        .custom_deploy
        .clone_from(&spec.custom_deploy);
    Ok(Decision::ChangeState(Trigger::NoLongerExternal))
}
