//! `registering`: Ironic verifies the BMC.

use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Trigger;
use super::host_ports::ensure_ports;
use super::register::ensure_registered;
use super::shared::{require_operable, require_slot};
use crate::plan::error::Failure;
use crate::plan::planner::{Decision, PlanResult, Planner};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    let node = ensure_registered(planner)?;
    require_operable(planner, node)?;
    if planner.host().spec.externally_provisioned == Some(true) {
        ensure_ports(planner, node)?;
        return Ok(Decision::ChangeState(Trigger::External));
    }
    require_unused_node(planner, node)?;
    if planner.host().inspection_disabled() {
        ensure_ports(planner, node)?;
        return Ok(Decision::ChangeState(Trigger::NotInspected));
    }
    // Before the ports are read: a host that waits for a slot would read them again later.
    require_slot(planner)?;
    ensure_ports(planner, node)?;
    Ok(Decision::ChangeState(Trigger::Inspect))
}

/// Rejects a new host whose node is in use: its status was lost.
fn require_unused_node(planner: &Planner<'_>, node: &Node) -> PlanResult<()> {
    let is_in_use = node.instance_uuid.is_some()
        || matches!(
            node.provision_state,
            S::Active | S::Deploying | S::WaitCallBack | S::DeployHold | S::Servicing | S::ServiceWait | S::Rescue
        );
    if !is_in_use {
        return Ok(());
    }
    // differs: `host-new-over-running`. The Go manager inspects it, which fails for ever without a message.
    Err(planner.fail_with_backoff(Failure::retryable(
        ErrorType::Registration,
        format!(
            "in Ironic node {} is in use ({}, instance {}), and this host has no record of it; it is not changed. \
             Restore the host's status (annotation baremetalhost.metal3.io/status), or undeploy the node in Ironic. To \
             keep the running system without that status, delete the host, which leaves the machine as it is, and \
             create it again with spec.externallyProvisioned",
            node.uuid,
            node.provision_state,
            node.instance_uuid.as_deref().unwrap_or("none"),
        ),
    )))
}
