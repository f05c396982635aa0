//! `provisioned` and `externally provisioned`: manages the power, and adopts the node again when Ironic lost it.

use metal3_api::metal3::v1alpha1::{ErrorType, Image, ProvisioningState as State};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Trigger;
use super::provisioning::require_allowed_image;
use super::register::ensure_registered;
use super::service;
use super::shared::{recover, request_transition, require_operable, unexpected_state};
use crate::action::Request;
use crate::names::{CONFIRM_ANNOTATION, reason};
use crate::node::{Deployment, Instance};
use crate::plan::error::Failure;
use crate::plan::object::remove_annotation;
use crate::plan::ownership::may_switch_power;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::{
    check_deprovision_budget, disruptive_transition, is_cancelled, require_ownership, was_withheld,
};
use crate::plan::{power, status, wait};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    if is_cancelled(planner.host()) {
        // The running system is not removed for an image that is not deployed.
        require_allowed_image(planner, next_image(planner))?;
        check_deprovision_budget(planner)?;
        if !planner.rules.record_first() {
            deprovision_unrecorded(planner)?;
        }
        return Ok(Decision::ChangeState(Trigger::Cancelled));
    }
    keep_running(planner)
}

/// The image that replaces what runs.
pub(super) fn next_image<'a>(planner: &Planner<'a>) -> Option<&'a Image> {
    let image = planner.host().spec.image.as_ref();
    image.filter(|image| !image.url.is_empty() && !planner.is_deleting())
}

pub(super) fn run_external(planner: &mut Planner<'_>) -> PlanResult {
    let spec = &planner.host().spec;
    if spec.externally_provisioned == Some(true) {
        return keep_running(planner);
    }
    // The requested image is taken as the running one.
    let running = &mut planner.draft.status.provisioning;
    running.image = spec.image.clone().unwrap_or_default();
    running.custom_deploy.clone_from(&spec.custom_deploy);
    Ok(Decision::ChangeState(Trigger::NoLongerExternal))
}

/// Requests the deletion before recording it. Only reached with the rule switched off.
fn deprovision_unrecorded(planner: &mut Planner<'_>) -> PlanResult<()> {
    let node = ensure_registered(planner)?;
    if node.provision_state == S::Active {
        disruptive_transition(planner, node, Transition::Delete, "spec.image or spec.customDeploy")?;
    }
    Ok(())
}

fn keep_running(planner: &mut Planner<'_>) -> PlanResult {
    if was_withheld(planner) {
        // What it confirms was taken back.
        remove_annotation(planner, CONFIRM_ANNOTATION);
    }
    let node = ensure_registered(planner)?;
    match &node.provision_state {
        S::Active => {
            require_operable(planner, node)?;
            status::clear_kind(&mut planner.draft.status, ErrorType::ProvisionedRegistration);
            service::end(planner, node)?;
            if power::is_to_start(planner, node)? {
                service::before_start(planner, node)?;
            }
            power::reconcile(planner, node)
        }
        S::Manageable if planner.rules.adopt_the_provisioned() => adopt(planner, node, &running(planner)),
        S::Manageable => {
            // Only reached with the rule switched off: cleans a node that Ironic lost.
            disruptive_transition(planner, node, Transition::Provide, "the node runs nothing")?;
            Ok(Decision::Wait(wait::on_node("Ironic is cleaning the machine")))
        }
        // The host ran an image once, or was available: adoption needs a manageable node.
        S::Available | S::InspectFailed if *planner.state() == State::ExternallyProvisioned => {
            request_transition(planner, node, Transition::Manage)
        }
        S::CleanFailed if *planner.state() == State::ExternallyProvisioned => recover(planner, node),
        S::Adopting => Ok(Decision::Wait(wait::on_node("Ironic is adopting the machine"))),
        S::AdoptFailed => {
            let error = node.last_error.as_deref().unwrap_or("no details");
            let message = format!("Host adoption failed: {error}");
            planner.retry_node_failure(Failure::retryable(ErrorType::ProvisionedRegistration, message))?;
            adopt(planner, node, &running(planner))
        }
        S::Servicing | S::ServiceWait => service::follow(planner, node),
        S::ServiceFailed => service::failed(planner, node),
        S::Rescuing | S::RescueWait | S::Unrescuing => Ok(Decision::Wait(wait::on_node(
            "Ironic starts or ends a rescue of the machine",
        ))),
        S::ServiceHold | S::Rescue | S::RescueFailed | S::UnrescueFailed => Err(unexpected_state(
            planner,
            node,
            "End the hold or the rescue in Ironic, so that the node is active again",
        )),
        _ => {
            let remedy = Deployment::running(planner.host()).remedy();
            let cure = format!(
                "If the machine still runs the right system, bring the node to manageable in Ironic: it is then adopted as it is. \
                 To deploy it again, {remedy}"
            );
            Err(unexpected_state(planner, node, &cure))
        }
    }
}

fn running(planner: &Planner<'_>) -> Deployment {
    let recorded = Deployment::recorded(planner.host());
    match recorded.is_none() {
        true => Deployment::asked(planner.host()),
        false => recorded,
    }
}

/// Requests adoption. The image is written first: Ironic does not adopt a machine that boots an ISO without knowing the
/// ISO.
pub(super) fn adopt(planner: &mut Planner<'_>, node: &Node, runs: &Deployment) -> PlanResult {
    require_ownership(planner, node, may_switch_power(planner, node))?;
    // The request tells Ironic where the image is.
    require_allowed_image(planner, runs.image.as_ref())?;
    let settings = &planner.facts.settings.node;
    let instance = Instance::of(planner.host(), runs, settings)
        .ok()
        .filter(|_| !runs.is_none());
    let changes = instance.map(|instance| instance.changes(node).patch);
    if let Some(patch) = changes.filter(|patch| !patch.is_empty()) {
        planner.request(Request::PatchNode(node.uuid.clone(), patch));
    }
    planner.record_event(reason::REGISTERED, "adoption of the running machine requested");
    request_transition(planner, node, Transition::Adopt)
}
