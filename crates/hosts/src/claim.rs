//! Whose a node is: the host's own, and at its service.
//!
//! A search may find a node by nothing but the plain name of a host, and the node of a host may by now serve another. Such
//! a node is not torn down, not switched off and not forgotten. A host that moved between clusters has another UID there,
//! while its node still serves the former: that is known by what was written down when it came. For the power of a host
//! that stays, the image that both sides name is enough; for its end it is not, since a fleet runs one image.

use metal3_api::metal3::v1alpha1::{BareMetalHostStatus, Image, ProvisioningState as State};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use crate::facts::{NodeSeen, NodeSight, Read};
use crate::names::FORMER_ANNOTATION;
use crate::node::{self, Instance};
use crate::plan::{End, Pass};

/// Whether the node was made or taken over for the host.
fn is_known(pass: &Pass<'_>, node: &Node) -> bool {
    let is_recorded = node.uuid.as_str() == pass.host().status.provisioning.id;
    let wanted = node::name::of(pass.host()).ok();
    is_recorded || (wanted.is_some() && node.name == wanted)
}

/// Whether the node serves this host or nobody.
pub(crate) fn serves_no_other(pass: &Pass<'_>, node: &Node) -> bool {
    let Some(instance) = &node.instance_uuid else {
        return true;
    };
    let former = pass.host().annotation(FORMER_ANNOTATION);
    let mut ours = [Some(pass.uid), former].into_iter().flatten();
    ours.any(|uid| uid.eq_ignore_ascii_case(instance)) || !pass.rules.own_instance
}

/// The same for the power of a host that stays: a node that shows the very image that the host runs is its own, too.
pub(crate) fn is_at_service(pass: &Pass<'_>, node: &Node) -> bool {
    serves_no_other(pass, node) || shows(pass, node, &pass.host().status.provisioning.image)
}

/// Whether the node is the host's to switch off for good and to have forgotten: by what is written, not by what it runs.
pub(crate) fn is_ours(pass: &Pass<'_>, node: &Node) -> bool {
    (is_known(pass, node) || !pass.rules.own_instance) && serves_no_other(pass, node)
}

fn shows(pass: &Pass<'_>, node: &Node, image: &Image) -> bool {
    let instance = Instance::of(pass.host(), image, &pass.facts.settings.node);
    !image.url.is_empty() && instance.is_ok_and(|instance| instance.is_written_on(node))
}

/// The instance that the node of a host serves since before the host moved, while the status that it brought vouches
/// for it: the same node, at rest, with the same image.
pub(crate) fn former(pass: &Pass<'_>, saved: &BareMetalHostStatus) -> Result<Option<String>, End> {
    let runs = matches!(saved.provisioning.state, State::Provisioned | State::Deprovisioning);
    if !runs || saved.provisioning.id.is_empty() {
        return Ok(None);
    }
    let node = match pass.facts.node {
        NodeSight::Found(node, seen) if seen >= NodeSeen::Live => node,
        NodeSight::Found(..) | NodeSight::Unknown => return Err(End::read(Read::Node)),
        NodeSight::Absent | NodeSight::Foreign { .. } => return Ok(None),
    };
    let is_same = node.uuid.as_str() == saved.provisioning.id
        && node.provision_state == S::Active
        && shows(pass, node, &saved.provisioning.image);
    let instance = node.instance_uuid.clone().filter(|_| is_same);
    Ok(instance.filter(|instance| !instance.eq_ignore_ascii_case(pass.uid)))
}
