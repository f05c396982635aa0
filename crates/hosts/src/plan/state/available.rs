//! `available`: the host waits for an image or a deploy step.

use metal3_api::metal3::v1alpha1::{ErrorType, OperationalStatus};

use super::graph::Trigger;
use super::inspecting::is_inspection_requested;
use super::provisioning::{instance, require_allowed_image};
use super::register::ensure_registered;
use super::shared::{require_idle, require_slot};
use super::volumes::{self, root_device_hints};
use super::{bios, firmware};
use crate::node::deployment::method;
use crate::node::{Deployment, raid};
use crate::plan::object::end_promise;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::{power, status, wait};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    let node = ensure_registered(planner)?;
    if planner.host().spec.externally_provisioned == Some(true) {
        let status = &mut planner.draft.status.provisioning;
        status.root_device_hints = None;
        status.raid = raid::of_external(status.raid.as_ref());
        return Ok(Decision::ChangeState(Trigger::External));
    }
    require_idle(planner, node)?;
    end_promise(planner);
    status::clear_kind(&mut planner.draft.status, ErrorType::Preparation);
    // The image was removed during a service.
    status::end_service(&mut planner.draft.status);
    if is_inspection_requested(planner) && !planner.host().inspection_disabled() {
        require_slot(planner)?;
        return Ok(Decision::ChangeState(Trigger::Inspect));
    }
    let hints = root_device_hints(planner)?;
    let is_changed = hints != planner.host().status.provisioning.root_device_hints || volumes::differ(planner, node);
    if is_changed || firmware::is_due(planner) || bios::is_due(planner, node)? {
        return Ok(Decision::ChangeState(Trigger::Prepare));
    }
    let asked = Deployment::asked(planner.host());
    if asked.is_none() {
        clear_deployment_history(planner);
        return power::reconcile(planner, node);
    }
    if !planner.host().spec.online {
        return power::reconcile(planner, node);
    }
    provision(planner, &asked)
}

fn clear_deployment_history(planner: &mut Planner<'_>) {
    planner.draft.status.provisioning_fail_count = 0;
    planner.draft.status.last_attempted_image = None;
    status::clear_kind(&mut planner.draft.status, ErrorType::Provisioning);
}

/// Applied on entering the state, so that it is written together with the state.
pub(super) fn on_enter(planner: &mut Planner<'_>) {
    if Deployment::asked(planner.host()).is_none() {
        clear_deployment_history(planner);
    }
}

fn provision(planner: &mut Planner<'_>, asked: &Deployment) -> PlanResult {
    instance(planner, asked)?;
    require_allowed_image(planner, asked.image.as_ref())?;
    if is_attempted(planner, asked) {
        require_retry_allowed(planner)?;
    } else {
        planner.draft.status.provisioning_fail_count = 0;
        planner.draft.status.last_attempted_image.clone_from(&asked.image);
    }
    require_slot(planner)?;
    status::clear(&mut planner.draft.status);
    Ok(Decision::ChangeState(Trigger::Provision))
}

/// Whether the failures that are counted are of this deployment. No field records the deploy step that failed, so each edit
/// of a host with a step counts as another.
// differs: `host-deploy-step-limit`. The Go manager loses the failures of a step without an image in each reconcile.
fn is_attempted(planner: &Planner<'_>, asked: &Deployment) -> bool {
    let is_edited = asked.method.is_some() && planner.has_new_generation();
    planner.host().status.last_attempted_image == asked.image && !is_edited
}

/// Requires that the failed deployment may be retried now.
fn require_retry_allowed(planner: &Planner<'_>) -> PlanResult<()> {
    let (count, limit) = (
        planner.host().status.provisioning_fail_count,
        planner.facts.settings.retries,
    );
    if limit > 0 && count >= i64::from(limit) {
        let change = match method(planner.host().spec.custom_deploy.as_ref()) {
            Some(_) => "image or customDeploy",
            None => "image",
        };
        return Err(Decision::reject(
            ErrorType::Provisioning,
            format!(
                "provisioning failed {count} times, retry limit ({limit}) reached; change {change} or reset \
                 provisioningFailCount to retry"
            ),
        ));
    }
    // The retry was due before: the delay is not one more failure.
    if planner.host().status.operational_status == OperationalStatus::Delayed {
        return Ok(());
    }
    match planner.remaining_backoff() {
        Some(left) if count > 0 => Err(Decision::WaitUnchanged(wait::for_deployment_retry(left))),
        _ => Ok(()),
    }
}
