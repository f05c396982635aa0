//! The state of claims on pools, from the caches.
//!
//! An address belongs to a claim only if the claim owns it or it has no owner: no claim gets the address of an earlier
//! claim of its name.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use metal3_capi::owner;
use metal3_runtime::cache::{Indexes, Key, SharedCache};
use metal3_runtime::work::Next;

use super::caches::Caches;
use super::known;
use super::related_keys::sibling;
use crate::data::claims::{ClaimState, general_state, metal3_state};

/// The state of a claim on an IPPool for `owner`; `None` when it does not exist.
pub(crate) fn metal3(caches: &Caches, owner: &ObjectMeta, key: &Key) -> Result<Option<ClaimState>, Next> {
    let claim = find(&caches.metal3_claims, key)?;
    claim.map(|claim| of_metal3(caches, owner, &claim)).transpose()
}

/// The state of this claim on an IPPool for `owner`.
pub(crate) fn of_metal3(caches: &Caches, owner: &ObjectMeta, claim: &IPClaim) -> Result<ClaimState, Next> {
    let named = claim
        .status
        .address
        .as_ref()
        .and_then(|address| address.name.as_deref());
    let address = named.map(|name| find(&caches.metal3_addresses, &sibling(claim, name)));
    let address = address.transpose()?.flatten();
    let address = address.filter(|address| answers::<IPAddress, IPClaim>(address, claim));
    Ok(metal3_state(owner, claim, address.as_deref()))
}

/// The state of a claim on another pool for `owner`; `None` when it does not exist.
pub(crate) fn general(caches: &Caches, owner: &ObjectMeta, key: &Key) -> Result<Option<ClaimState>, Next> {
    let claim = find(&caches.general_claims, key)?;
    claim.map(|claim| of_general(caches, owner, &claim)).transpose()
}

/// The state of this claim on another pool for `owner`.
pub(crate) fn of_general(caches: &Caches, owner: &ObjectMeta, claim: &IPAddressClaim) -> Result<ClaimState, Next> {
    let named = claim.status.address_ref.as_ref().map(|address| address.name.as_str());
    let named = named.filter(|name| !name.is_empty());
    let address = named.map(|name| find(&caches.general_addresses, &sibling(claim, name)));
    let address = address.transpose()?.flatten();
    let address = address.filter(|address| answers::<cluster::IPAddress, IPAddressClaim>(address, claim));
    Ok(general_state(owner, claim, address.as_deref()))
}

/// Whether an address belongs to this claim, and not to an earlier one of its name.
fn answers<A: Kind, C: Kind>(address: &A, claim: &C) -> bool {
    let owner = owner::first::<C>(address.meta());
    address.meta().deletion_timestamp.is_none() && owner.is_none_or(|owner| is_uid_match(owner, claim.meta()))
}

pub(crate) fn is_uid_match(owner: &OwnerReference, found: &ObjectMeta) -> bool {
    owner.uid.is_empty() || found.uid.as_ref() == Some(&owner.uid)
}

pub(crate) fn find<K: Kind, I: Indexes<K>>(cache: &SharedCache<K, I>, key: &Key) -> Result<Option<Arc<K>>, Next> {
    known(cache.find(key), key)
}
