//! Metal3Clusters: facts, plan, and the controller in [`reconciler`].
//!
//! The controller builds no infrastructure: the [endpoint](crate::endpoint) is set by the user or the Cluster, or taken
//! from another source. The plan decides which Cluster the object belongs to, whether the infrastructure is
//! provisioned, and when the finalizer is removed: when no Metal3Machine belongs to the object any more. Machines of
//! other providers do not count.
//!
//! Invariants: `provisioned` never reverts; nothing is written for an object that is externally managed or moved away,
//! and only its status while it is paused; an unreadable Cluster does not count as deleted; an object without extension
//! fields is written as by the Go manager, unless the preflight of joins is enabled.

mod action;
mod facts;
pub(crate) mod join;
mod plan;
pub mod reconciler;
pub mod sources;
#[cfg(test)]
mod tests;
mod watches;
pub(crate) mod zones;

use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::TOPOLOGY_OWNED_LABEL;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::kind::Kind;
use metal3_capi::owner;

use crate::machine::resolve::joins;

pub use action::{Action, DeletedPlan, Plan, Read};
pub use facts::{EndpointWrite, Facts, Results, WriteResult};
pub use join::JoinFacts;
pub use plan::{counts_descendants, is_namesake, plan, plan_deleted};
pub use zones::ZoneTemplate;

/// The link of an object to a Cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterLink<'a> {
    /// A Cluster owns it.
    Owned(&'a str),
    /// It names a Cluster by field or label.
    Joined(&'a str),
    /// None.
    None,
}

/// The Cluster that the object names.
#[must_use]
pub fn cluster_link(object: &Metal3Cluster) -> ClusterLink<'_> {
    let stated = object.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let owner = owner::first::<Cluster>(&object.metadata).map(|owner| owner.name.as_str());
    match (owner, stated, owner::cluster_of(&object.metadata)) {
        (Some(name), _, _) => ClusterLink::Owned(name),
        (None, Some(name), _) | (None, None, Some(name)) => ClusterLink::Joined(name),
        (None, None, None) => ClusterLink::None,
    }
}

/// The name of that Cluster.
#[must_use]
pub fn cluster_name(object: &Metal3Cluster) -> Option<&str> {
    match cluster_link(object) {
        ClusterLink::Owned(name) | ClusterLink::Joined(name) => Some(name),
        ClusterLink::None => None,
    }
}

/// Whether the object is the infrastructure that the Cluster names.
#[must_use]
pub fn is_primary(object: &Metal3Cluster, cluster: &Cluster) -> bool {
    let reference = cluster.spec.infrastructure_ref.as_ref();
    reference.is_some_and(|reference| {
        reference.kind == Metal3Cluster::KIND
            && reference.api_group == Metal3Cluster::GROUP
            && Some(&reference.name) == object.metadata.name.as_ref()
    })
}

/// Whether the object belongs to a Cluster that names another infrastructure. An owned object without a join is the
/// Cluster's infrastructure as long as the Cluster names none.
#[must_use]
pub fn is_secondary(object: &Metal3Cluster, cluster: &Cluster) -> bool {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let is_owned = || matches!(cluster_link(object), ClusterLink::Owned(owner) if owner == name);
    let names_infrastructure = cluster.spec.infrastructure_ref.is_some();
    // That of a class is created before the Cluster names it.
    let labels = object.metadata.labels.as_ref();
    let is_of_class = !names_infrastructure && labels.is_some_and(|all| all.contains_key(TOPOLOGY_OWNED_LABEL));
    !is_of_class && !is_primary(object, cluster) && (joins(object, name) || names_infrastructure && is_owned())
}
