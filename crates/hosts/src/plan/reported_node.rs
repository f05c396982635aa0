//! The node that a report about BIOS settings or firmware is about.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::metal3::v1alpha1::ProvisioningState as State;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use crate::facts::NodeFreshness;
use crate::plan::planner::Planner;

/// The node, once Ironic has read its machine; none for an object that is being deleted.
pub(super) fn reported_node<'a>(planner: &Planner<'a>, object: &ObjectMeta) -> Option<&'a Node> {
    let (node, freshness) = planner.facts.own_node()?;
    let has_machine = match planner.state() {
        State::Inspecting
        | State::MatchProfile
        | State::Preparing
        | State::Available
        | State::Ready
        | State::Provisioning
        | State::Provisioned
        | State::ExternallyProvisioned
        | State::Deprovisioning => true,
        State::None
        | State::Unmanaged
        | State::Registering
        | State::PoweringOffBeforeDelete
        | State::Deleting
        | State::Other(_) => false,
    };
    // Ironic reads settings and firmware when it verifies the BMC.
    let is_verified = !matches!(node.provision_state, S::Enroll | S::Verifying);
    let is_deleting = planner.is_deleting() || object.deletion_timestamp.is_some();
    let is_shown = has_machine && is_verified && !is_deleting && freshness != NodeFreshness::Stale;
    is_shown.then_some(node)
}
