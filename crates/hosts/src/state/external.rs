//! The host runs what something else deployed. Only its power is kept.

use super::graph::Why;
use super::provisioned::steady;
use crate::plan::{End, Pass};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    if pass.host().spec.externally_provisioned == Some(true) {
        return steady(pass);
    }
    let spec = &pass.host().spec;
    // The image that is asked for is the one that runs: whoever claims the machine says so.
    pass.draft.status.provisioning.image = spec.image.clone().unwrap_or_default();
    pass.draft
        .status
        .provisioning
        .custom_deploy
        .clone_from(&spec.custom_deploy);
    Ok(End::Go(Why::Claimed))
}
