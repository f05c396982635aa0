//! Disks and firmware are set up. Nothing of that is built, and whoever asks for it was told: what is left is to choose
//! the disk and to tell Ironic of every network card.

use metal3_api::metal3::v1alpha1::{ErrorType, RootDeviceHints};
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Why;
use super::register::{ports, registered};
use super::{operable, recover, unexpected};
use crate::action::Wait;
use crate::error::Failure;
use crate::names::reason;
use crate::node::profile;
use crate::plan::{End, Pass};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    let node = registered(pass)?;
    match &node.provision_state {
        S::CleanFailed | S::InspectFailed | S::AdoptFailed => {
            let error = node.last_error.as_deref().unwrap_or("no details");
            pass.attempt_on_failed(Failure::attempt(ErrorType::Preparation, error))?;
            return Ok(recover(pass, node));
        }
        S::Manageable | S::Available => operable(pass, node)?,
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
    ports(pass, node)?;
    let hints = disk(pass)?;
    pass.draft.status.provisioning.root_device_hints = hints;
    if pass.host().status.hardware_profile.is_none() {
        let chosen = profile::choose(pass.host()).map_err(|error| refused(&error))?;
        pass.draft.status.hardware_profile = Some(chosen.name().to_owned());
        pass.tell(reason::PROFILE_SET, format!("Hardware profile set: {}", chosen.name()));
    }
    Ok(End::Go(Why::Prepared))
}

/// The disk that a deployment goes to.
pub(super) fn disk(pass: &Pass<'_>) -> Result<Option<RootDeviceHints>, End> {
    profile::root_device(pass.host()).map_err(|error| refused(&error))
}

fn refused(error: &crate::node::Refusal) -> End {
    End::Fail(Failure::standing(ErrorType::Registration, error.to_string()))
}
