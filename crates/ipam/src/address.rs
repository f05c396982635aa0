//! An address object of either kind, reduced to the fields that the planner reads.

use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::cluster;
use metal3_api::ipam::names;
use metal3_api::ipam::v1alpha1::IPAddress;
use metal3_domain::ip::parse_address;
use metal3_runtime::version::ResourceVersion;

use crate::claim::{ClaimKind, ObjectId};

/// An address object.
#[derive(Debug, Clone, PartialEq)]
pub struct AddressObject {
    /// Kind of its claim, and its own name.
    pub id: ObjectId,
    /// UID.
    pub uid: String,
    /// Resource version.
    pub version: ResourceVersion,
    /// The address by value; differs (`ipam-address-by-value`): the Go manager compares text. `None` when it cannot be parsed, since no machine can use it then.
    pub address: Option<IpAddr>,
    /// Name of its claim.
    pub claim: String,
    /// UID of the claim that owns it. This identifies the claim; the name does not.
    pub owner: Option<String>,
    /// UID of the pool that owns it.
    pub pool: Option<String>,
    /// Whether owner references and finalizer are as this controller writes them.
    pub complete: bool,
    /// All owner references.
    pub owners: Vec<OwnerReference>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
}

impl AddressObject {
    /// Converts an IPAddress of `ipam.metal3.io`. Also returns the name of its pool.
    #[must_use]
    pub fn of_metal3(object: &IPAddress) -> Option<(String, Self)> {
        let claim = object.spec.claim.name.as_deref().unwrap_or_default();
        let address = Self::of_meta(ClaimKind::Metal3, &object.metadata, claim, object.spec.address.as_str())?;
        Some((object.spec.pool.name.clone().unwrap_or_default(), address))
    }

    /// Converts an IPAddress of Cluster API. Also returns the name of its pool. Returns `None` for other kinds of
    /// pools.
    #[must_use]
    pub fn of_cluster_api(object: &cluster::IPAddress) -> Option<(String, Self)> {
        let pool = &object.spec.pool_ref;
        if pool.api_group != names::GROUP || pool.kind != "IPPool" {
            // differs: ipam-foreign-pool-kind. The Go manager compares the name alone.
            return None;
        }
        let claim = &object.spec.claim_ref.name;
        let address = Self::of_meta(ClaimKind::ClusterApi, &object.metadata, claim, &object.spec.address)?;
        Some((pool.name.clone(), address))
    }

    fn of_meta(kind: ClaimKind, meta: &ObjectMeta, claim: &str, address: &str) -> Option<Self> {
        let owners = meta.owner_references.clone().unwrap_or_default();
        let finalizers = meta.finalizers.clone().unwrap_or_default();
        let owner = owners.iter().find(|owner| kind.owns(&owner.api_version, &owner.kind));
        let pool = owners
            .iter()
            .find(|owner| owner.kind == "IPPool" && ClaimKind::Metal3.api_version() == owner.api_version);
        let is_complete = |owner: &OwnerReference, is_controller: bool| match kind {
            ClaimKind::Metal3 => true,
            ClaimKind::ClusterApi => {
                owner.controller.unwrap_or_default() == is_controller && owner.block_owner_deletion == Some(true)
            }
        };
        Some(Self {
            id: ObjectId::new(kind, meta.name.as_deref()?),
            uid: meta.uid.clone()?,
            version: ResourceVersion::parse(meta.resource_version.as_deref()?).ok()?,
            address: parse_address(address).ok(),
            claim: claim.to_owned(),
            owner: owner.map(|owner| owner.uid.clone()),
            pool: pool.map(|owner| owner.uid.clone()),
            complete: owner.is_some_and(|owner| is_complete(owner, true))
                && pool.is_some_and(|pool| is_complete(pool, false))
                && finalizers.iter().any(|name| name == kind.address_finalizer()),
            owners,
            finalizers,
            deleting: meta.deletion_timestamp.is_some(),
        })
    }

    /// The ID of its claim.
    #[must_use]
    pub fn claim(&self) -> ObjectId {
        ObjectId::new(self.id.kind, &self.claim)
    }
}
