//! The BMC is tried.

use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Why;
use super::register::{ports, registered};
use super::{operable, turn};
use crate::error::Failure;
use crate::plan::{End, Pass};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    let node = registered(pass)?;
    operable(pass, node)?;
    if pass.host().spec.externally_provisioned == Some(true) {
        ports(pass, node)?;
        return Ok(End::Go(Why::External));
    }
    runs_nothing(pass, node)?;
    if pass.host().inspection_disabled() {
        ports(pass, node)?;
        return Ok(End::Go(Why::NotInspected));
    }
    // Before the ports are read: who has to wait would read them once more when its turn has come.
    turn(pass)?;
    ports(pass, node)?;
    Ok(End::Go(Why::Inspect))
}

/// A new host whose node runs something has lost its status, or is not as new as it says.
fn runs_nothing(pass: &Pass<'_>, node: &Node) -> Result<(), End> {
    let is_in_use = node.instance_uuid.is_some()
        || matches!(
            node.provision_state,
            S::Active | S::Deploying | S::WaitCallBack | S::DeployHold | S::Servicing | S::ServiceWait | S::Rescue
        );
    if !is_in_use {
        return Ok(());
    }
    // differs: `host-new-over-running`. The Go manager inspects it, which fails for ever without a word.
    Err(pass.fails(Failure::attempt(
        ErrorType::Registration,
        format!(
            "in Ironic node {} is in use ({}, instance {}), and this host has no record of that; it is left as it is. Restore \
             the host's status (annotation baremetalhost.metal3.io/status), or set spec.externallyProvisioned to keep what \
             runs, or undeploy the node in Ironic",
            node.uuid,
            node.provision_state,
            node.instance_uuid.as_deref().unwrap_or("none"),
        ),
    )))
}
