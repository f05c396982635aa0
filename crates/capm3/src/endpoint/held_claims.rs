//! The finalizer of an address claim while the endpoint of a control plane is its address, and its removal.
//!
//! A claim is created with the finalizer of Metal3Clusters. Deleting it by hand, or its Metal3Cluster in the
//! foreground, does not free the address of a running control plane: IP address management keeps an address while its
//! claim has another finalizer. Managers of other pools may free it all the same.
//!
//! Invariants: a claim is released when its object is deleted and has no machines any more, when the claim is deleted
//! and the endpoint is not its address, or when the claim is deleted and the API server reports that no object of its
//! name exists. An unreadable address does not count as free. The owner of the claim does not count: after a restore
//! with new UIDs the garbage collector deletes the claim, and its address is still the endpoint.

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType, Metal3Cluster};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind;
use metal3_runtime::plan::Observed;

use super::address::Address;
use super::existing_claim::is_same_address;
use super::spec_endpoint::{Derived, last_derived, spec_endpoint};
use crate::data::release::Release;

/// A claim with this controller's finalizer.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldClaim {
    /// Whether it is on an IPPool.
    pub is_metal3: bool,
    /// Removes the finalizer.
    pub let_go: Release,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its address. Absent when it names none.
    pub granted: Observed<String>,
}

/// The claims under the name derived from an object that have this controller's finalizer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeldClaims {
    /// At most one per kind.
    pub all: Vec<HeldClaim>,
    /// The reason why there may be more: an unreadable claim.
    pub unreadable: Option<String>,
}

impl HeldClaim {
    /// A claim, if it has the finalizer.
    pub fn of<K: Kind>(claim: &K, granted: Observed<String>) -> Option<Self> {
        Some(Self {
            is_metal3: K::KIND == IPClaim::KIND,
            let_go: Release::of(claim, CLUSTER_FINALIZER, false)?,
            is_deleting: claim.meta().deletion_timestamp.is_some(),
            granted,
        })
    }

    /// Whether the effective endpoint is the address of the claim.
    fn is_in_use(&self, object: &Metal3Cluster, cluster: Option<&Cluster>) -> bool {
        let stated = || spec_endpoint(object).address().cloned();
        let Some(counts) = cluster.and_then(Address::of_cluster).or_else(stated) else {
            return false;
        };
        let was_granted = |derived: Derived| derived.origin == EndpointOrigin::IPPool && derived.address == counts;
        let is_from_pool = last_derived(object).is_some_and(was_granted);
        match &self.granted {
            Observed::Present(address) => is_same_address(address, &counts.host),
            // It was granted before a move or restore, which lost the status.
            Observed::Absent => is_from_pool,
            Observed::Unknown(_) => is_from_pool || asks_for_pool(object),
        }
    }
}

impl HeldClaims {
    /// The claims to release while the object exists: deleted ones whose address is not the endpoint.
    #[must_use]
    pub fn releasable(&self, object: &Metal3Cluster, cluster: Option<&Cluster>) -> Vec<HeldClaim> {
        self.deleting()
            .filter(|hold| !hold.is_in_use(object, cluster))
            .cloned()
            .collect()
    }

    /// The claims to release when the object does not exist.
    #[must_use]
    pub fn of_deleted_object(&self) -> Vec<HeldClaim> {
        self.deleting().cloned().collect()
    }

    /// Whether a deleted claim is kept for the endpoint of an object.
    #[must_use]
    pub fn keeps_deleted(&self, object: &Metal3Cluster, cluster: &Cluster) -> bool {
        self.deleting().any(|hold| hold.is_in_use(object, Some(cluster)))
    }

    fn deleting(&self) -> impl Iterator<Item = &HeldClaim> {
        self.all.iter().filter(|hold| hold.is_deleting)
    }
}

fn asks_for_pool(object: &Metal3Cluster) -> bool {
    let source = object.spec.control_plane_endpoint_source.as_ref();
    source.is_some_and(|source| source.type_ == Some(EndpointSourceType::IPPool))
}
