//! How a deployment ends: what runs is recorded, or its failure is reported and counted.

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::model::node::Node;

use super::graph::Trigger;
use super::provisioning::instance;
use super::shared::{failure_reason, unexpected_state};
use crate::names::reason;
use crate::node::deployment::ordered_method;
use crate::node::{Deployment, Instance};
use crate::plan::error::Failure;
use crate::plan::object::remove_annotation;
use crate::plan::ownership::has_no_other_instance;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::require_ownership;
use crate::plan::status;

pub(super) fn failed(planner: &mut Planner<'_>, node: &Node, asked: &Deployment, instance: &Instance) -> PlanResult {
    let failure_reason = failure_reason(planner, node)?;
    let what = if instance.is_written_on(node) {
        describe(asked)
    } else if ordered_method(node).is_some() {
        "of the formerly requested deploy step".to_owned()
    } else {
        "of the formerly requested image".to_owned()
    };
    let message = format!("Image provisioning failed {what}: {failure_reason}");
    reset_error_count(planner);
    // differs: `host-cleanup-at-once`. The Go manager waits for the backoff first.
    let is_of_other_step = !instance.is_written_on(node) && (asked.method.is_some() || ordered_method(node).is_some());
    let failures = &mut planner.draft.status.provisioning_fail_count;
    // No field records which step failed.
    *failures = if is_of_other_step {
        0
    } else {
        failures.saturating_add(1)
    };
    Ok(Decision::FailAndChangeState(
        Failure::retryable(ErrorType::Provisioning, message),
        Trigger::Failed,
    ))
}

/// Earlier errors, of another image or of cleaning, are not attempts to deprovision: only failures beyond the failed
/// deployments count there.
pub(super) fn reset_error_count(planner: &mut Planner<'_>) {
    let status = &mut planner.draft.status;
    status.error_count = status.provisioning_fail_count.max(0);
}

fn describe(asked: &Deployment) -> String {
    let step = asked.method.as_ref().map(|method| format!("customDeploy: {method}"));
    let url = asked.image.as_ref().map(|image| format!("url: {}", image.url));
    let checksum = asked.image.as_ref().and_then(|image| image.checksum.as_ref());
    let checksum = checksum.map(|checksum| format!("checksum: {checksum}"));
    let parts: Vec<_> = [step, url, checksum].into_iter().flatten().collect();
    format!("({})", parts.join(", "))
}

pub(super) fn done(planner: &mut Planner<'_>, node: &Node, asked: &Deployment, instance: &Instance) -> PlanResult {
    require_ownership(planner, node, has_no_other_instance(planner, node))?;
    let is_left = || planner.facts.began_elsewhere && instance.is_left_on(node);
    let deployed = if instance.is_written_on(node) || is_left() || !planner.rules.match_image() {
        asked.clone()
    } else if let Some(before) = ordered_before(planner, node, asked) {
        // differs: `host-image-as-deployed`. What was requested before runs; the next reconcile handles the new request.
        before
    } else {
        let what = match asked.method {
            Some(_) => "what",
            None => "an image that",
        };
        let remedy = format!(
            "It runs {what} this host did not request. To replace it, {}",
            asked.remedy()
        );
        return Err(unexpected_state(planner, node, &remedy));
    };
    let status = &mut planner.draft.status.provisioning;
    status.custom_deploy = deployed.custom_deploy();
    status.image = deployed.image.unwrap_or_default();
    planner.draft.status.provisioning_fail_count = 0;
    status::end_service(&mut planner.draft.status);
    // The deployment powered the machine on.
    remove_annotation(planner, REBOOT_ANNOTATION);
    planner.record_event(reason::PROVISIONING_COMPLETE, "Image provisioning completed");
    Ok(Decision::ChangeState(Trigger::Provisioned))
}

/// What this host requested before, if the node runs it: the image of the last attempt or of the spec, by the deploy step that
/// the node was configured with.
fn ordered_before(planner: &Planner<'_>, node: &Node, asked: &Deployment) -> Option<Deployment> {
    let attempted = planner.host().status.last_attempted_image.as_ref();
    // A Go manager that deployed meanwhile keeps the record of the step.
    let method = ordered_method(node);
    if method.is_some() && planner.facts.began_elsewhere {
        return None;
    }
    let images = [attempted, asked.image.as_ref(), None].into_iter();
    let mut before = images.map(|image| Deployment::new(image, method));
    before.find(|before| {
        let instance = instance(planner, before).ok();
        !before.is_none() && instance.is_some_and(|instance| instance.is_written_on(node))
    })
}
