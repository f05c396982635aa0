//! The state of claims on pools, from the caches.
//!
//! An address belongs to a claim only if the claim owns it or it has no owner: no claim gets the address of an earlier
//! claim of its name.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use metal3_capi::owner;
use metal3_runtime::cache::{Indexes, Key, SharedCache};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::caches::Caches;

use super::related_keys::sibling;
use crate::data::claims::{ClaimState, general_state, metal3_state};
use crate::data::reason;
pub(crate) use crate::data::subject::is_uid_match;

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

/// The state of this claim on another pool for `owner`.
pub(crate) fn of_general(caches: &Caches, owner: &ObjectMeta, claim: &IPAddressClaim) -> Result<ClaimState, Next> {
    let named = claim.status.address_ref.as_ref().map(|address| address.name.as_str());
    let named = named.filter(|name| !name.is_empty());
    let address = named.map(|name| find(&caches.general_addresses, &sibling(claim, name)));
    let address = address.transpose()?.flatten();
    let address = address.filter(|address| answers::<cluster::IPAddress, IPAddressClaim>(address, claim));
    Ok(general_state(owner, claim, address.as_deref()))
}

/// Whether an address is not in deletion and belongs to this claim, and not to an earlier one of its name.
fn answers<A: Kind, C: Kind>(address: &A, claim: &C) -> bool {
    let owner = owner::first::<C>(address.meta());
    address.meta().deletion_timestamp.is_none() && owner.is_none_or(|owner| is_uid_match(owner, claim.meta()))
}

/// The cached object, or a wait when its state is unknown.
pub(crate) fn find<K: Kind, I: Indexes<K>>(cache: &SharedCache<K, I>, key: &Key) -> Result<Option<Arc<K>>, Next> {
    match cache.find(key) {
        Observed::Present(object) => Ok(Some(object)),
        Observed::Absent => Ok(None),
        Observed::Unknown(why) => Err(reason::unreadable(K::KIND, key, &why)),
    }
}
