//! The claims with this controller's finalizer, and their release.

use std::sync::Arc;

use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use metal3_capi::owner;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Fault;
use metal3_runtime::write::Writer;

use super::Clusters;
use crate::data::reconciler::caches::Caches as Pools;
use crate::data::reconciler::grants::is_uid_match;
use crate::data::release::Release;
use crate::endpoint::held_claims::{GrantedAddress, HeldClaim, HeldClaims};
use crate::endpoint::pool::claim_name;
use crate::needs::Machines as Role;

impl Clusters {
    /// The claims by the name for an object with this controller's finalizer.
    pub(super) fn held_claims(&self, key: &Key) -> HeldClaims {
        let (pools, name) = (&self.pools, key.sibling(&claim_name(&key.name)));
        let mut held_claims = HeldClaims::default();
        let metal3 = |claim: &IPClaim| HeldClaim::metal3(claim, metal3_address(pools, claim));
        collect(&mut held_claims, pools.metal3_claims.find(&name), &name, metal3);
        let general = |claim: &IPAddressClaim| HeldClaim::general(claim, general_address(pools, claim));
        collect(&mut held_claims, pools.general_claims.find(&name), &name, general);
        held_claims
    }

    /// Removes the finalizer of claims at the observed version.
    pub(super) async fn release_claims(&self, held_claims: Vec<HeldClaim>, writer: &Writer<Role>) -> Result<(), Fault> {
        for HeldClaim { is_metal3, let_go, .. } in held_claims {
            let Release {
                observed: identity,
                patch,
                ..
            } = let_go;
            let Some(patch) = patch else { continue };
            if is_metal3 {
                writer.patch(&self.pools.metal3_claims, &identity.key, patch).await?;
            } else {
                writer.patch(&self.pools.general_claims, &identity.key, patch).await?;
            }
        }
        Ok(())
    }

    /// Releases the claims of a deleted object; returns whether there were any. A live read confirms the deletion.
    pub(super) async fn release_leftover_claims(&self, key: &Key, writer: &Writer<Role>) -> Result<bool, Fault> {
        let leftover = self.held_claims(key).of_deleted_object();
        if leftover.is_empty() {
            return Ok(false);
        }
        let existing: Option<Metal3Cluster> = writer.read(&self.caches.metal3_clusters, key).await?;
        if existing.is_some() {
            return Ok(false);
        }
        self.release_claims(leftover, writer).await?;
        Ok(true)
    }
}

fn collect<K: Kind>(
    held_claims: &mut HeldClaims,
    found: Observed<Arc<K>>,
    name: &Key,
    convert: impl Fn(&K) -> Option<HeldClaim>,
) {
    let why = match found {
        Observed::Present(claim) => return held_claims.all.extend(convert(&claim)),
        Observed::Absent => return,
        Observed::Unknown(why) => why,
    };
    held_claims.unreadable = Some(format!("{} {name}: {why}", K::KIND));
}

fn metal3_address(pools: &Pools, claim: &IPClaim) -> GrantedAddress {
    let named = claim
        .status
        .address
        .as_ref()
        .and_then(|address| address.name.as_deref());
    let text = |address: &IPAddress| address.spec.address.to_string();
    address(&pools.metal3_addresses, claim, named, text)
}

fn general_address(pools: &Pools, claim: &IPAddressClaim) -> GrantedAddress {
    let named = claim.status.address_ref.as_ref().map(|address| address.name.as_str());
    let text = |address: &cluster::IPAddress| address.spec.address.clone();
    address(&pools.general_addresses, claim, named, text)
}

/// The address of a claim. An address that is being deleted counts: it is in use while the claim is held.
fn address<A: Kind, C: Kind>(
    cache: &SharedCache<A>,
    claim: &C,
    named: Option<&str>,
    text: impl Fn(&A) -> String,
) -> GrantedAddress {
    let Some(named) = named.filter(|named| !named.is_empty()) else {
        return GrantedAddress::None;
    };
    let is_its = |address: &A| owner::first::<C>(address.meta()).is_none_or(|owner| is_uid_match(owner, claim.meta()));
    match cache.find(&Key::of(claim).sibling(named)) {
        Observed::Present(address) if is_its(&address) => GrantedAddress::Address(text(&address)),
        Observed::Present(_) | Observed::Absent | Observed::Unknown(_) => GrantedAddress::Unknown,
    }
}
