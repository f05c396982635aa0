//! The host waits for an image.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, Image};
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Why;
use super::inspecting::is_asked;
use super::preparing::disk;
use super::register::registered;
use super::{operable, recover, turn, unexpected};
use crate::action::Wait;
use crate::error::Failure;
use crate::node::Instance;
use crate::plan::{End, Pass};
use crate::{power, status};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    let node = registered(pass)?;
    if pass.host().spec.externally_provisioned == Some(true) {
        pass.draft.status.provisioning.root_device_hints = None;
        return Ok(End::Go(Why::External));
    }
    match &node.provision_state {
        S::Manageable | S::Available => operable(pass, node)?,
        S::CleanFailed | S::InspectFailed | S::AdoptFailed => {
            let error = node.last_error.as_deref().unwrap_or("no details");
            pass.attempt_on_failed(Failure::attempt(ErrorType::Preparation, error))?;
            return Ok(recover(pass, node));
        }
        S::Cleaning | S::CleanWait | S::Inspecting | S::InspectWait | S::Deleting | S::Adopting => {
            return Ok(End::Wait(Wait::OnNode("Ironic is at work")));
        }
        _ => {
            return Err(unexpected(
                pass,
                node,
                "Undeploy the node in Ironic if nothing needs what runs there",
            ));
        }
    }
    status::clear_of(&mut pass.draft.status, ErrorType::Preparation);
    if is_asked(pass) && !pass.host().inspection_disabled() {
        turn(pass)?;
        return Ok(End::Go(Why::Inspect));
    }
    if disk(pass)? != pass.host().status.provisioning.root_device_hints {
        return Ok(End::Go(Why::Prepare));
    }
    let Some(image) = wanted_image(pass.host()) else {
        forget_deployments(pass);
        return power::settle(pass, node);
    };
    if !pass.host().spec.online {
        return power::settle(pass, node);
    }
    provision(pass, image)
}

/// What was deployed, or failed to be, is over.
fn forget_deployments(pass: &mut Pass<'_>) {
    pass.draft.status.provisioning_fail_count = 0;
    pass.draft.status.last_attempted_image = None;
    status::clear_of(&mut pass.draft.status, ErrorType::Provisioning);
}

/// What is so as soon as the host gets here, so that it is written with the state and not after it.
pub(super) fn arrive(pass: &mut Pass<'_>) {
    if wanted_image(pass.host()).is_none() {
        forget_deployments(pass);
    }
}

/// The image that the host asks for.
fn wanted_image(host: &BareMetalHost) -> Option<&Image> {
    host.spec.image.as_ref().filter(|image| !image.url.is_empty())
}

fn provision(pass: &mut Pass<'_>, image: &Image) -> Result<End, End> {
    Instance::of(pass.host(), image, &pass.facts.settings.node)
        .map_err(|error| End::Fail(Failure::standing(ErrorType::Provisioning, error.to_string())))?;
    if pass.host().status.last_attempted_image.as_ref() == Some(image) {
        may_try_again(pass)?;
    } else {
        pass.draft.status.provisioning_fail_count = 0;
        pass.draft.status.last_attempted_image = Some(image.clone());
    }
    turn(pass)?;
    status::clear(&mut pass.draft.status);
    Ok(End::Go(Why::Provision))
}

/// Whether an image whose deployment failed is tried again, and whether already.
fn may_try_again(pass: &Pass<'_>) -> Result<(), End> {
    let (count, limit) = (pass.host().status.provisioning_fail_count, pass.facts.settings.retries);
    if limit > 0 && count >= i64::from(limit) {
        return Err(End::Fail(Failure::standing(
            ErrorType::Provisioning,
            format!(
                "provisioning failed {count} times, retry limit ({limit}) reached; change image or reset provisioningFailCount \
                 to retry"
            ),
        )));
    }
    match pass.left_to_wait() {
        Some(left) if count > 0 => Err(End::Rest(Wait::After(left, "a deployment failed"))),
        _ => Ok(()),
    }
}
