//! What holds the claim on an address while the endpoint of a control plane is that address, and when it is given back.
//!
//! A claim is born with the finalizer of Metal3Clusters. Who deletes it by hand, or its Metal3Cluster in the foreground,
//! does not free the address under a living control plane: address management keeps an address while somebody else has
//! a finalizer on its claim. Managers of other pools may free it all the same.
//!
//! Invariants: a claim is given back when its object goes and has no machines any more, when it is deleted and the
//! endpoint is not its address, or when it is deleted and the server says that there is no object of its name. An address
//! that cannot be seen is not one that is free. Whose claim it says it is does not count: after a restore that gave new
//! UIDs the garbage collector deletes it, and the endpoint is its address as before.

use metal3_api::cluster::{Cluster, IPAddressClaim};
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, EndpointSourceType, Metal3Cluster};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind;

use super::address::Address;
use super::claimed::is_same_address;
use super::own::{Derived, Own, derived_last, own};
use crate::data::release::Release;

/// A claim that our finalizer holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Hold {
    /// Whether it is on an IPPool of ours.
    pub is_metal3: bool,
    /// Takes the finalizer off.
    pub let_go: Release,
    /// Whether it is being deleted.
    pub is_going: bool,
    /// What was granted to it.
    pub granted: Granted,
}

/// What was granted to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// It says nothing of an address.
    Nothing,
    /// This.
    Address(String),
    /// An address that nobody can see for now.
    Unseen,
}

/// The claims by the name of an object's that our finalizer holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Holds {
    /// One of each kind at most.
    pub all: Vec<Hold>,
    /// Why there may be more: a claim that cannot be read.
    pub hidden: Option<String>,
}

impl Hold {
    /// A claim on an IPPool of ours, if it is held.
    #[must_use]
    pub fn metal3(claim: &IPClaim, granted: Granted) -> Option<Self> {
        Self::of(claim, true, granted)
    }

    /// A claim on any other pool, if it is held.
    #[must_use]
    pub fn general(claim: &IPAddressClaim, granted: Granted) -> Option<Self> {
        Self::of(claim, false, granted)
    }

    fn of<K: Kind>(claim: &K, is_metal3: bool, granted: Granted) -> Option<Self> {
        Some(Self {
            is_metal3,
            let_go: Release::of(claim, CLUSTER_FINALIZER, false)?,
            is_going: claim.meta().deletion_timestamp.is_some(),
            granted,
        })
    }

    /// Whether the endpoint that counts is the address of the claim.
    fn is_in_use(&self, object: &Metal3Cluster, cluster: Option<&Cluster>) -> bool {
        let Some(counts) = cluster.and_then(Address::of_cluster).or_else(|| stated(object)) else {
            return false;
        };
        let was_granted = |derived: Derived| derived.origin == EndpointOrigin::IPPool && derived.address == counts;
        let is_from_pool = derived_last(object).is_some_and(was_granted);
        match &self.granted {
            Granted::Address(address) => is_same_address(address, &counts.host),
            // It was granted before, and not since the claim was moved or restored.
            Granted::Nothing => is_from_pool,
            Granted::Unseen => is_from_pool || asks_for_pool(object),
        }
    }
}

impl Holds {
    /// What is given back while an object lives: somebody wants it to go, and the endpoint does not need it.
    #[must_use]
    pub fn unused(&self, object: &Metal3Cluster, cluster: Option<&Cluster>) -> Vec<Hold> {
        self.going()
            .filter(|hold| !hold.is_in_use(object, cluster))
            .cloned()
            .collect()
    }

    /// What is left where there is no object any more.
    #[must_use]
    pub fn left_behind(&self) -> Vec<Hold> {
        self.going().cloned().collect()
    }

    /// Whether a claim that is deleted is held for the endpoint of an object.
    #[must_use]
    pub fn keeps(&self, object: &Metal3Cluster, cluster: &Cluster) -> bool {
        self.going().any(|hold| hold.is_in_use(object, Some(cluster)))
    }

    fn going(&self) -> impl Iterator<Item = &Hold> {
        self.all.iter().filter(|hold| hold.is_going)
    }
}

/// The endpoint that Cluster API is to take from an object.
fn stated(object: &Metal3Cluster) -> Option<Address> {
    match own(object) {
        Own::Typed(address) | Own::Derived(Derived { address, .. }) => Some(address),
        Own::Unset { .. } => None,
    }
}

fn asks_for_pool(object: &Metal3Cluster) -> bool {
    let source = object.spec.control_plane_endpoint_source.as_ref();
    source.is_some_and(|source| source.type_ == Some(EndpointSourceType::IPPool))
}
