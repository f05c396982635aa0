//! The writes for a Metal3Cluster.

use metal3_api::cluster::ContractReference;
use metal3_api::infrastructure::v1beta2::Metal3ClusterStatus;
use metal3_runtime::patch::MergePatch;

use crate::data::claims::NewClaim;
use crate::endpoint::address::Address;
use crate::endpoint::held_claims::HeldClaim;
use crate::endpoint::render::SecretWrite;
use crate::endpoint::spec_endpoint::Derived;

/// The plan of a Metal3Cluster.
pub type Plan = metal3_runtime::plan::Plan<Vec<Read>, Action, Box<Metal3ClusterStatus>>;

/// The plan for the address claims of a Metal3Cluster that is not in the cache: the claims to release.
pub type DeletedPlan = metal3_runtime::plan::Plan<Vec<Read>, HeldClaim>;

/// A live read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The Metal3Cluster.
    Object,
    /// The Metal3Machines of the namespace.
    Machines,
}

/// A write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Patches the object at the planned version. The actions after it use the object as written.
    Patch(MergePatch),
    /// Deletes that version of the object.
    Delete,
    /// Creates the address claim.
    Claim(NewClaim),
    /// Applies the endpoint, with its marker, unless another field manager owns the field.
    Derive(Derived),
    /// Writes the Secret with the endpoint filled in.
    Render(SecretWrite),
    /// Writes the status, and records the events. Only where other actions follow.
    Status(Box<Metal3ClusterStatus>),
    /// Touches an idle control plane, so that its controller reads this endpoint.
    Touch(ContractReference, Address),
    /// Releases an address claim.
    Release(Box<HeldClaim>),
}
