//! An address object of either kind, reduced to what a decision sees.

use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::cluster;
use metal3_api::ipam::names;
use metal3_api::ipam::v1alpha1::IPAddress;
use metal3_domain::ip::parse_address;
use metal3_runtime::version::ResourceVersion;

use crate::claim::{ClaimKind, Named};

/// An address object.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Kind of the claim it answers, and its own name.
    pub id: Named,
    /// Which object of that name.
    pub uid: String,
    /// How new.
    pub version: ResourceVersion,
    /// The address; nothing when it cannot be read, for then nobody can use it.
    pub address: Option<IpAddr>,
    /// Name of the claim it answers.
    pub claim: String,
    /// UID of the claim that owns it: this says whose it is, the name does not.
    pub owner: Option<String>,
    /// UID of the pool that owns it.
    pub pool: Option<String>,
    /// Whether the owner references and the finalizer are as we write them.
    pub complete: bool,
    /// All owner references.
    pub owners: Vec<OwnerReference>,
    /// Who keeps it.
    pub finalizers: Vec<String>,
    /// Whether its deletion was asked for.
    pub deleting: bool,
}

impl Held {
    /// Reads an IPAddress of `ipam.metal3.io`; the name of its pool comes first.
    #[must_use]
    pub fn of_metal3(object: &IPAddress) -> Option<(String, Self)> {
        let claim = object.spec.claim.name.as_deref().unwrap_or_default();
        let held = Self::of_meta(ClaimKind::Metal3, &object.metadata, claim, object.spec.address.as_str())?;
        Some((object.spec.pool.name.clone().unwrap_or_default(), held))
    }

    /// Reads an IPAddress of Cluster API; the name of its pool comes first. Nothing for those of other pools' kinds.
    #[must_use]
    pub fn of_cluster_api(object: &cluster::IPAddress) -> Option<(String, Self)> {
        let pool = &object.spec.pool_ref;
        if pool.api_group != names::GROUP || pool.kind != "IPPool" {
            // differs: ipam-foreign-pool-kind. The Go manager compares the name alone.
            return None;
        }
        let claim = &object.spec.claim_ref.name;
        let held = Self::of_meta(ClaimKind::ClusterApi, &object.metadata, claim, &object.spec.address)?;
        Some((pool.name.clone(), held))
    }

    fn of_meta(kind: ClaimKind, meta: &ObjectMeta, claim: &str, address: &str) -> Option<Self> {
        let owners = meta.owner_references.clone().unwrap_or_default();
        let finalizers = meta.finalizers.clone().unwrap_or_default();
        let owner = owners.iter().find(|owner| kind.owns(&owner.api_version, &owner.kind));
        let pool = owners
            .iter()
            .find(|owner| owner.kind == "IPPool" && ClaimKind::Metal3.api_version() == owner.api_version);
        let wired = |owner: &OwnerReference, controls: bool| match kind {
            ClaimKind::Metal3 => true,
            ClaimKind::ClusterApi => {
                owner.controller.unwrap_or_default() == controls && owner.block_owner_deletion == Some(true)
            }
        };
        Some(Self {
            id: Named::new(kind, meta.name.as_deref()?),
            uid: meta.uid.clone()?,
            version: ResourceVersion::parse(meta.resource_version.as_deref()?).ok()?,
            address: parse_address(address).ok(),
            claim: claim.to_owned(),
            owner: owner.map(|owner| owner.uid.clone()),
            pool: pool.map(|owner| owner.uid.clone()),
            complete: owner.is_some_and(|owner| wired(owner, true))
                && pool.is_some_and(|pool| wired(pool, false))
                && finalizers.iter().any(|name| name == kind.address_finalizer()),
            owners,
            finalizers,
            deleting: meta.deletion_timestamp.is_some(),
        })
    }

    /// The claim it answers, by name.
    #[must_use]
    pub fn claim(&self) -> Named {
        Named::new(self.id.kind, &self.claim)
    }
}
