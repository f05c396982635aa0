//! Whether a node belongs to a host.
//!
//! A node is the host's by its name, and the node of a host may serve another instance by
//! now. Such a node is not deprovisioned, powered off or deleted. A moved host has a new UID while its node still
//! serves the former one, which is recorded in an annotation. For power changes of a host that stays, the same image on
//! both sides is sufficient; for deletion it is not, since many hosts run the same image.

use metal3_api::metal3::names::host_error::SERVES_ANOTHER;
use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, ProvisioningState as State};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;

use crate::facts::{FoundNode, NodeFreshness, Read};
use crate::names::FORMER_ANNOTATION;
use crate::node::{self, Deployment, Instance};
use crate::plan::planner::{Decision, PlanResult, Planner};

/// Whether the node has the name of the host. The status that records a node may be written by a user.
fn has_name(planner: &Planner<'_>, node: &Node) -> bool {
    let accepts_plain = planner.facts.settings.plain_node_names;
    node::name::is_of_host(planner.host(), node.name.as_deref(), accepts_plain)
}

/// Whether the node serves this host or no instance.
pub(crate) fn has_no_other_instance(planner: &Planner<'_>, node: &Node) -> bool {
    let Some(instance) = &node.instance_uuid else {
        return true;
    };
    let former_instance = planner.host().annotation(FORMER_ANNOTATION);
    let mut owned = [Some(planner.uid), former_instance].into_iter().flatten();
    owned.any(|uid| uid.eq_ignore_ascii_case(instance)) || !planner.rules.own_instance()
}

/// Whether the power of the node may be changed for a host that stays: also when the node shows what the host runs.
pub(crate) fn may_switch_power(planner: &Planner<'_>, node: &Node) -> bool {
    has_no_other_instance(planner, node) || has_deployment(planner, node, &Deployment::running(planner.host()))
}

/// Whether the message is that the node serves another instance.
pub(crate) fn is_of_another_instance(message: &str) -> bool {
    message.starts_with(SERVES_ANOTHER)
}

/// Whether the node may be powered off and deleted for the host: by recorded identity, not by its image.
pub(crate) fn is_owned_node(planner: &Planner<'_>, node: &Node) -> bool {
    (has_name(planner, node) || !planner.rules.own_instance()) && has_no_other_instance(planner, node)
}

fn has_deployment(planner: &Planner<'_>, node: &Node, deployment: &Deployment) -> bool {
    let instance = Instance::of(planner.host(), deployment, &planner.facts.settings.node);
    !deployment.is_none() && instance.is_ok_and(|instance| instance.is_identified_on(node))
}

/// The former instance of a moved host, if the restored status fits the node: same UUID, active or about to be, same deployment.
pub(crate) fn former_instance(planner: &Planner<'_>, saved: &BareMetalHostStatus) -> PlanResult<Option<String>> {
    let is_begun = saved.provisioning.state == State::Provisioning;
    let runs = matches!(saved.provisioning.state, State::Provisioned | State::Deprovisioning);
    if !(runs || is_begun) || saved.provisioning.id.is_empty() {
        return Ok(None);
    }
    let node = match planner.facts.node {
        Observed::Present(FoundNode::Own(node, freshness)) if *freshness >= NodeFreshness::Live => node,
        Observed::Present(FoundNode::Own(..)) | Observed::Unknown(_) => return Err(Decision::read(Read::Node)),
        Observed::Absent | Observed::Present(FoundNode::Foreign(_)) => return Ok(None),
    };
    let deployment = match is_begun {
        true => Deployment::new(
            saved.last_attempted_image.as_ref(),
            node::deployment::ordered_method(node),
        ),
        false => Deployment::of_status(saved),
    };
    let fits = match node.provision_state {
        S::Active => true,
        S::Deploying | S::WaitCallBack | S::DeployFailed => is_begun,
        _ => false,
    };
    let is_same = node.uuid.as_str() == saved.provisioning.id && fits && has_deployment(planner, node, &deployment);
    let instance = node.instance_uuid.clone().filter(|_| is_same);
    Ok(instance.filter(|instance| !instance.eq_ignore_ascii_case(planner.uid)))
}
