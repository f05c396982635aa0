//! What the host ran is removed, and its disks are cleaned as asked.

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::v1alpha1::{ErrorType, Image};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Why;
use super::provisioned::is_cancelled;
use super::provisioning::cleaning_failed;
use super::register::registered;
use super::{operable, order, recover, turn, unexpected, went_on};
use crate::action::{Count, Wait};
use crate::brakes::transition;
use crate::deletion::MOST_ATTEMPTS;
use crate::error::Failure;
use crate::facts::{NodeSeen, NodeSight};
use crate::names::{CONFIRM_ANNOTATION, FORMER_ANNOTATION, reason};
use crate::object::annotate_without;
use crate::plan::{End, Pass};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    let status = &pass.host().status;
    if pass.is_leaving() {
        if pass.host().spec.externally_provisioned == Some(true) && pass.rules.keep_external {
            return Ok(End::Go(Why::External));
        }
        // Deployments that failed before stay in the count: they are no attempts to remove.
        let of_removal = status.error_count - status.provisioning_fail_count.max(0);
        if status.error_type.is_some() && of_removal > MOST_ATTEMPTS {
            pass.count(Count::One("metal3_delete_without_deprovisioning_total"));
            return Ok(End::Go(Why::GivenUp));
        }
    } else if is_taken_back(pass)? {
        return Ok(End::Go(Why::TakenBack));
    }
    let node = registered(pass)?;
    match &node.provision_state {
        S::Active | S::DeployFailed | S::WaitCallBack => {
            operable(pass, node)?;
            tear_down(pass, node)
        }
        S::Error => {
            let error = node.last_error.as_deref().unwrap_or("Deprovisioning failed");
            pass.attempt_on_failed(Failure::attempt(ErrorType::Provisioning, error))?;
            tear_down(pass, node)
        }
        S::CleanFailed => {
            pass.attempt(&cleaning_failed(pass, node)?)?;
            Ok(recover(pass, node))
        }
        S::Manageable => {
            operable(pass, node)?;
            let why = why(pass);
            turn(pass)?;
            transition(pass, node, Transition::Provide, &why)?;
            went_on(pass);
            Ok(End::Wait(Wait::OnNode("Ironic cleans the machine")))
        }
        S::Available => {
            pass.abreast()?;
            Ok(done(pass))
        }
        S::InspectFailed | S::AdoptFailed => Ok(order(pass, node, Transition::Manage)),
        // Taken over from elsewhere without a login that could be tried: under control is what cleaning needs.
        S::Enroll => Ok(order(pass, node, Transition::Manage)),
        S::Deleting | S::Cleaning | S::CleanWait | S::Deploying | S::Adopting | S::Verifying => {
            Ok(End::Wait(Wait::OnNode("Ironic is at work")))
        }
        S::Inspecting | S::InspectWait => Ok(End::Wait(Wait::OnNode("Ironic looks at the hardware"))),
        S::ServiceFailed | S::Rescue | S::RescueFailed | S::UnrescueFailed | S::ServiceWait | S::ServiceHold => {
            Err(unexpected(pass, node, "Bring the node to active in Ironic"))
        }
        _ => Err(unexpected(
            pass,
            node,
            "Bring the node to active, manageable or available in Ironic",
        )),
    }
}

fn tear_down(pass: &mut Pass<'_>, node: &Node) -> Result<End, End> {
    let why = why(pass);
    turn(pass)?;
    transition(pass, node, Transition::Delete, &why)?;
    went_on(pass);
    pass.tell(reason::DEPROVISIONING_STARTED, "Image deprovisioning started");
    Ok(End::Wait(Wait::OnNode("Ironic tears down")))
}

/// Whether the image that runs is wanted again, and nothing was removed yet.
fn is_taken_back(pass: &Pass<'_>) -> Result<bool, End> {
    let host = pass.host();
    let runs = matches!(pass.facts.node, NodeSight::Found(node, seen)
        if node.provision_state == S::Active && seen >= NodeSeen::Current);
    // differs: `host-deprovision-taken-back`. The Go manager goes on.
    let is_wanted = !host.status.provisioning.image.url.is_empty() && !is_cancelled(host);
    if !runs || !is_wanted || !pass.rules.take_back {
        return Ok(false);
    }
    pass.abreast()?;
    Ok(true)
}

fn why(pass: &Pass<'_>) -> String {
    if pass.is_leaving() {
        return "deletion of the host".to_owned();
    }
    match (&pass.host().spec.image, pass.host().status.error_type) {
        (_, Some(_)) => "a failed deployment".to_owned(),
        (Some(image), None) if !image.url.is_empty() => "another image in spec.image".to_owned(),
        _ => "the removal of spec.image".to_owned(),
    }
}

fn done(pass: &mut Pass<'_>) -> End {
    annotate_without(pass, REBOOT_ANNOTATION);
    // It was for this once.
    annotate_without(pass, CONFIRM_ANNOTATION);
    // Ironic has ended that instance.
    annotate_without(pass, FORMER_ANNOTATION);
    let failed = pass.host().status.provisioning_fail_count > 0;
    let status = &mut pass.draft.status;
    status.provisioning.image = Image::default();
    status.provisioning.custom_deploy = None;
    if !failed {
        // After a failed deployment the error says why the host is available, and its count when it is tried again.
        crate::status::clear(status);
        status.error_count = 0;
    }
    pass.tell(reason::DEPROVISIONING_COMPLETE, "Image deprovisioning completed");
    End::Go(if pass.is_leaving() {
        Why::PoweredOff
    } else {
        Why::Deprovisioned
    })
}
