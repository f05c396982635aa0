//! The plan of a Metal3Cluster, from facts alone.
//!
//! The controller builds no infrastructure: the endpoint is provided by the user, the Cluster, or a source that the
//! [endpoint](crate::endpoint) is taken from. The plan decides which Cluster the object belongs to, what that Cluster
//! may wait for, and when the finalizer is removed: when no Metal3Machine belongs to the object any more. Machines of
//! other providers do not count.
//!
//! Invariants: `provisioned` never reverts; nothing is written for an object that is externally managed, paused or
//! moved away; an unreadable Cluster does not count as deleted; an object without extension fields is written as by the
//! Go manager.

mod attach;
mod plan;
mod serve;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster, Metal3ClusterStatus};
use metal3_api::kind::Kind;
use metal3_api::meta::Time;
use metal3_capi::owner;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;

use crate::data::claims::NewClaim;
use crate::endpoint::address::Address;
use crate::endpoint::held_claims::{HeldClaim, HeldClaims};
use crate::endpoint::render::{ExistingSecret, SecretWrite};
use crate::endpoint::source::SourceValues;
use crate::endpoint::spec_endpoint::Derived;
use crate::machine::resolve::joins;

pub use attach::is_namesake;
pub use plan::{counts_descendants, plan};

/// All input of the plan of a Metal3Cluster.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The object.
    pub object: &'a Metal3Cluster,
    /// The Cluster that [`cluster_link`] names. Absent when it names none, or a deleted one.
    pub cluster: Observed<&'a Cluster>,
    /// A Metal3Machine that belongs to the object, if any. Only read when [`counts_descendants`].
    pub descendant: Option<&'a str>,
    /// A Cluster that [references an object of the same name](is_namesake). Only read when the object names no Cluster.
    pub namesake: Option<&'a Cluster>,
    /// Whether such a Cluster adopts the object.
    pub adopts_namesakes: bool,
    /// The values of the endpoint sources.
    pub source_values: &'a SourceValues,
    /// The address claims with this controller's finalizer.
    pub held_claims: &'a HeldClaims,
    /// The existing Secret with the rendered endpoint, if one is requested.
    pub secret: Option<ExistingSecret<'a>>,
    /// Writes that the API server rejected in this reconcile.
    pub refused: Refused<'a>,
    /// Timestamp for writes.
    pub now: Time,
}

/// Writes that the API server rejected. They are not retried in the same reconcile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The endpoint: another field manager owns the field.
    pub endpoint: bool,
    /// The Secret with the endpoint, and the reason.
    pub secret: Option<&'a str>,
}

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Patches the object at the planned version.
    Patch(MergePatch),
    /// Deletes that version of the object.
    Delete,
}

/// The writes for a Metal3Cluster, in this order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The write to the object. The rest follows it.
    pub action: Option<Action>,
    /// The address claim to create.
    pub claim: Option<NewClaim>,
    /// The endpoint to apply, with its marker, unless another field manager owns the field.
    pub derive: Option<Derived>,
    /// The Secret write, with the endpoint in the object filled in.
    pub render: Option<SecretWrite>,
    /// The idle control plane to touch, and the endpoint that it has not noticed.
    pub touch: Option<(EndpointOrigin, Address)>,
    /// The status, if it changes.
    pub status: Option<Box<Metal3ClusterStatus>>,
    /// The address claims to release.
    pub release: Vec<HeldClaim>,
    /// Delay until the next reconcile.
    pub requeue_after: Option<Duration>,
}

impl Plan {
    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.action.is_none()
            && self.claim.is_none()
            && self.derive.is_none()
            && self.render.is_none()
            && self.status.is_none()
            && self.release.is_empty()
    }
}

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
    !is_primary(object, cluster) && (joins(object, name) || names_infrastructure && is_owned())
}
