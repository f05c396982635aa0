//! `deprovisioning`: what was deployed is removed, and the disks are cleaned as requested.

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::v1alpha1::{ErrorType, Image};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::graph::Trigger;
use super::provisioned::{adopt, next_image};
use super::provisioning::{cleaning_failure, instance, require_allowed_image};
use super::register::ensure_registered;
use super::shared::{
    SERVICE_FAULT, abort, clear_error, end_own_maintenance, recover, request_transition, require_operable,
    require_slot, unexpected_state, wait_for_agent, wait_for_cleaning, wait_for_service,
};
use crate::action::{Count, Request};
use crate::facts::NodeFreshness;
use crate::names::{CONFIRM_ANNOTATION, FORMER_ANNOTATION, reason};
use crate::node::cleaning::is_cleaned;
use crate::node::{self, Deployment, raid};
use crate::plan::deletion::{MAX_ATTEMPTS, failed_removals};
use crate::plan::error::Failure;
use crate::plan::object::{end_promise, remove_annotation};
use crate::plan::ownership::has_no_other_instance;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::{disruptive_transition, is_cancelled, require_ownership};
use crate::plan::{status, wait};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    if let Some(trigger) = next_without_node(planner)? {
        return Ok(Decision::ChangeState(trigger));
    }
    let node = ensure_registered(planner)?;
    if let Some(left) = left_live_image(planner, node) {
        require_operable(planner, node)?;
        return remove_by_adoption(planner, node, &left);
    }
    match &node.provision_state {
        S::WaitCallBack if is_held_by_cleaning(planner, node) => abort(planner, node),
        S::Active | S::DeployFailed | S::WaitCallBack => {
            if node.provision_state == S::Active {
                require_allowed_image(planner, next_image(planner))?;
            }
            require_operable(planner, node)?;
            tear_down(planner, node)
        }
        S::Error => {
            require_operable(planner, node)?;
            let error = node.last_error.as_deref().unwrap_or("Deprovisioning failed");
            planner.retry_node_failure(Failure::retryable(ErrorType::Provisioning, error))?;
            tear_down(planner, node)
        }
        S::CleanFailed => {
            planner.retry(&cleaning_failure(planner, node)?)?;
            recover(planner, node)
        }
        S::Manageable => {
            require_operable(planner, node)?;
            let why = audit_reason(planner);
            require_slot(planner)?;
            disruptive_transition(planner, node, Transition::Provide, &why)?;
            clear_error(planner);
            Ok(Decision::Wait(wait::on_node("Ironic is cleaning the machine")))
        }
        S::Available => undeployed(planner, node),
        S::InspectFailed | S::AdoptFailed => recover(planner, node),
        // Adopted without verified credentials: cleaning needs a manageable node.
        S::Enroll => {
            if let Some(error) = &node.last_error {
                planner.retry_node_failure(Failure::retryable(ErrorType::Provisioning, error.clone()))?;
            }
            request_transition(planner, node, Transition::Manage)
        }
        S::CleanWait => wait_for_cleaning(planner, node),
        S::Deleting | S::Cleaning | S::Deploying | S::Adopting | S::Verifying => {
            Ok(Decision::Wait(wait::on_node("Ironic is busy")))
        }
        S::InspectWait => wait_for_agent(planner, node, "Ironic is inspecting the hardware"),
        S::Inspecting => Ok(Decision::Wait(wait::on_node("Ironic is inspecting the hardware"))),
        S::Servicing | S::ServiceWait | S::ServiceFailed => tear_down_serviced(planner, node),
        S::Rescue | S::RescueFailed | S::UnrescueFailed | S::ServiceHold => {
            Err(unexpected_state(planner, node, "Bring the node to active in Ironic"))
        }
        _ => Err(unexpected_state(
            planner,
            node,
            "Bring the node to active, manageable or available in Ironic",
        )),
    }
}

/// Whether a deployment waits for its agent and the node takes no change of what is cleaned: waiting for its end would write the
/// image. Aborted, it takes the change.
fn is_held_by_cleaning(planner: &Planner<'_>, node: &Node) -> bool {
    node.provision_state == S::WaitCallBack
        && planner.facts.aborts_deployments
        && planner.host().spec.cleaning.is_some()
        && !node::restrictions(planner.host(), node).postponed.is_empty()
}

/// The live image that a machine still boots whose node Ironic lost, and that stays in its drive: the machine is not cleaned.
fn left_live_image(planner: &Planner<'_>, node: &Node) -> Option<Deployment> {
    let host = planner.host();
    let is_cleaned = is_cleaned(host);
    // A removal that began is none that ended: Ironic may have lost the node before it emptied the drive.
    let is_lost = matches!(node.provision_state, S::Manageable | S::AdoptFailed);
    if is_cleaned || !is_lost {
        return None;
    }
    let recorded = Deployment::recorded(host);
    // Ironic may have deployed it before it lost the node.
    let attempted = || Deployment::new(host.status.last_attempted_image.as_ref(), None);
    let ran = if recorded.is_none() { attempted() } else { recorded };
    let is_live = instance(planner, &ran).is_ok_and(|instance| instance.is_live_iso());
    // An image that may not be sent holds no removal up.
    let is_sent = ran.method.is_none() && require_allowed_image(planner, ran.image.as_ref()).is_ok();
    (is_live && is_sent).then_some(ran)
}

/// Adopts the machine, so that Ironic powers it off and empties its drive when it removes the deployment.
// differs: `host-lost-live-image`. The Go manager makes the node available, and the machine goes on running the image.
fn remove_by_adoption(planner: &mut Planner<'_>, node: &Node, ran: &Deployment) -> PlanResult {
    if node.provision_state == S::AdoptFailed {
        let error = node.last_error.as_deref().unwrap_or("no details");
        let message = format!(
            "Host adoption failed: {error}; without cleaning only an adopted node has its live image removed; let Ironic reach that \
             image, or set spec.automatedCleaningMode to metadata"
        );
        planner.retry_node_failure(Failure::retryable(ErrorType::Provisioning, message))?;
    }
    let decision = adopt(planner, node, ran)?;
    clear_error(planner);
    Ok(decision)
}

/// Ends it on a node without a deployment, which has none of the instance either then.
fn undeployed(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    planner.require_fresh_node()?;
    if node.instance_uuid.is_some() && has_no_other_instance(planner, node) {
        // differs: `host-cancelled-instance`. The Go manager leaves it: Ironic removed nothing of what did not begin.
        if let Some(left) = planner.facts.creation_left.max(planner.facts.unanswered) {
            return Ok(Decision::Wait(wait::on_lost_response(left)));
        }
        planner.request(Request::PatchNode(node.uuid.clone(), node::instance::clear(node)));
        return Ok(Decision::Wait(Next::Requeue));
    }
    Ok(done(planner))
}

/// The change of state for which the node does not matter, if any.
fn next_without_node(planner: &mut Planner<'_>) -> PlanResult<Option<Trigger>> {
    if !planner.is_deleting() {
        if !is_image_restored(planner)? {
            return Ok(None);
        }
        // What it confirms was taken back.
        remove_annotation(planner, CONFIRM_ANNOTATION);
        return Ok(Some(Trigger::ImageRestored));
    }
    if planner.host().spec.externally_provisioned == Some(true) && planner.rules.keep_external() {
        return Ok(Some(Trigger::External));
    }
    let status = &planner.host().status;
    if status.error_type.is_some() && failed_removals(planner) > MAX_ATTEMPTS {
        planner.count(Count::One("metal3_delete_without_deprovisioning_total"));
        return Ok(Some(Trigger::GivenUp));
    }
    Ok(None)
}

fn tear_down(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    let why = audit_reason(planner);
    require_slot(planner)?;
    disruptive_transition(planner, node, Transition::Delete, &why)?;
    clear_error(planner);
    status::end_service(&mut planner.draft.status);
    planner.record_event(reason::DEPROVISIONING_STARTED, "Image deprovisioning started");
    Ok(Decision::Wait(wait::on_node("Ironic is removing the deployment")))
}

/// The same for a node that is serviced, or was.
fn tear_down_serviced(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    let is_own_fault = node.fault.as_deref() == Some(SERVICE_FAULT);
    match &node.provision_state {
        S::Servicing => wait_for_service(planner, node),
        // The BMC writes firmware, which a power-off would cut.
        S::ServiceWait if !node.firmware_left().is_empty() => wait_for_service(planner, node),
        S::ServiceFailed if node.maintenance && is_own_fault => {
            require_ownership(planner, node, has_no_other_instance(planner, node))?;
            end_own_maintenance(planner, node, SERVICE_FAULT)?;
            Ok(Decision::Wait(wait::on_node("Ironic is ending the maintenance")))
        }
        _ => {
            require_operable(planner, node)?;
            tear_down(planner, node)
        }
    }
}

/// Whether what runs is requested again before anything was removed.
fn is_image_restored(planner: &Planner<'_>) -> PlanResult<bool> {
    let host = planner.host();
    // differs: `host-deprovision-taken-back`. The Go manager continues.
    let recorded = Deployment::recorded(host);
    let is_wanted = !recorded.is_none() && !is_cancelled(host) && recorded.is_same(&Deployment::asked(host));
    let node = planner
        .facts
        .own_node()
        .filter(|(_, freshness)| *freshness >= NodeFreshness::Current);
    let Some((node, _)) = node.filter(|_| is_wanted && planner.rules.cancel_deprovisioning()) else {
        return Ok(false);
    };
    let is_running = match (&node.provision_state, &planner.facts.erasing) {
        (state, _) if is_deployed(state) => true,
        // Ironic lost its record of the machine, which nothing has touched since.
        (state, Observed::Absent) => is_undeployed(state),
        (S::Manageable, Observed::Unknown(_)) => {
            planner.require_fresh_node()?;
            return Err(unexpected_state(
                planner,
                node,
                &format!(
                    "What runs is requested again, and it is not known whether its removal has begun: to keep the system of the \
                     machine, adopt the node in Ironic; to deploy it again, {} once the host is available",
                    recorded.remedy()
                ),
            ));
        }
        (_, Observed::Present(()) | Observed::Unknown(_)) => false,
    };
    if is_running {
        planner.require_fresh_node()?;
    }
    Ok(is_running)
}

/// Whether the node has its instance in this state: Ironic leaves all of them when it removes the deployment.
const fn is_deployed(state: &S) -> bool {
    matches!(
        state,
        S::Active
            | S::Servicing
            | S::ServiceWait
            | S::ServiceFailed
            | S::ServiceHold
            | S::Rescuing
            | S::RescueWait
            | S::Rescue
            | S::RescueFailed
            | S::Unrescuing
            | S::UnrescueFailed
    )
}

/// Whether the node is in a state of one that Ironic has never deployed or cleaned.
const fn is_undeployed(state: &S) -> bool {
    matches!(
        state,
        S::Enroll
            | S::Verifying
            | S::Manageable
            | S::Adopting
            | S::AdoptFailed
            | S::Inspecting
            | S::InspectWait
            | S::InspectFailed
    )
}

fn audit_reason(planner: &Planner<'_>) -> String {
    if planner.is_deleting() {
        return "deletion of the host".to_owned();
    }
    let (asked, ran) = (Deployment::asked(planner.host()), Deployment::recorded(planner.host()));
    let why = match (asked.is_none(), ran.is_none()) {
        (true, _) if ran.method.is_some() => "the removal of spec.customDeploy",
        (true, _) => "the removal of spec.image",
        (false, true) => "a deployment that failed or did not begin",
        (false, false) if asked.method != ran.method => "another deploy step in spec.customDeploy",
        (false, false) => "another image in spec.image",
    };
    why.to_owned()
}

fn done(planner: &mut Planner<'_>) -> Decision {
    remove_annotation(planner, REBOOT_ANNOTATION);
    // The confirmation is valid once.
    remove_annotation(planner, CONFIRM_ANNOTATION);
    // Ironic ended that instance.
    remove_annotation(planner, FORMER_ANNOTATION);
    end_promise(planner);
    let failed = planner.host().status.provisioning_fail_count > 0;
    let is_cleaned = is_cleaned(planner.host());
    let cleaned = is_cleaned.then(|| raid::after_cleaning(planner.host()));
    let status = &mut planner.draft.status;
    status.provisioning.image = Image::default();
    status.provisioning.custom_deploy = None;
    // differs: `host-raid-uncleaned`. The Go manager makes the volumes again, and erases what was not to be cleaned.
    if let Some(cleaned) = cleaned {
        status.provisioning.raid = cleaned;
    }
    if !failed {
        // After a failed deployment the error stays as the reason, and its count determines the backoff of the retry.
        crate::plan::status::clear(status);
        status.error_count = 0;
    }
    planner.record_event(reason::DEPROVISIONING_COMPLETE, "Image deprovisioning completed");
    Decision::ChangeState(if planner.is_deleting() {
        Trigger::PoweredOff
    } else {
        Trigger::Deprovisioned
    })
}
