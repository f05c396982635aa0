//! `available`: the host waits for an image.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, Image, OperationalStatus};

use super::graph::Trigger;
use super::inspecting::is_inspection_requested;
use super::provisioning::{instance, require_allowed_image};
use super::register::ensure_registered;
use super::shared::{require_idle, require_slot};
use super::volumes::{self, root_device_hints};
use super::{bios, firmware};
use crate::node::raid;
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
    let Some(image) = desired_image(planner.host()) else {
        clear_deployment_history(planner);
        return power::reconcile(planner, node);
    };
    if !planner.host().spec.online {
        return power::reconcile(planner, node);
    }
    provision(planner, image)
}

fn clear_deployment_history(planner: &mut Planner<'_>) {
    planner.draft.status.provisioning_fail_count = 0;
    planner.draft.status.last_attempted_image = None;
    status::clear_kind(&mut planner.draft.status, ErrorType::Provisioning);
}

/// Applied on entering the state, so that it is written together with the state.
pub(super) fn on_enter(planner: &mut Planner<'_>) {
    if desired_image(planner.host()).is_none() {
        clear_deployment_history(planner);
    }
}

fn desired_image(host: &BareMetalHost) -> Option<&Image> {
    host.spec.image.as_ref().filter(|image| !image.url.is_empty())
}

fn provision(planner: &mut Planner<'_>, image: &Image) -> PlanResult {
    instance(planner, image)?;
    require_allowed_image(planner, image)?;
    if planner.host().status.last_attempted_image.as_ref() == Some(image) {
        require_retry_allowed(planner)?;
    } else {
        planner.draft.status.provisioning_fail_count = 0;
        planner.draft.status.last_attempted_image = Some(image.clone());
    }
    require_slot(planner)?;
    status::clear(&mut planner.draft.status);
    Ok(Decision::ChangeState(Trigger::Provision))
}

/// Requires that the deployment of a failed image may be retried now.
fn require_retry_allowed(planner: &Planner<'_>) -> PlanResult<()> {
    let (count, limit) = (
        planner.host().status.provisioning_fail_count,
        planner.facts.settings.retries,
    );
    if limit > 0 && count >= i64::from(limit) {
        return Err(Decision::reject(
            ErrorType::Provisioning,
            format!(
                "provisioning failed {count} times, retry limit ({limit}) reached; change image or reset provisioningFailCount \
                 to retry"
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
