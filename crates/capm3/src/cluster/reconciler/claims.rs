//! What a reconcile observes of the address claims of a Metal3Cluster.

use metal3_api::cluster::{self, IPAddressClaim};
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use metal3_capi::owner;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;

use super::Clusters;
use crate::data::reconciler::caches::Caches as Pools;
use crate::data::reconciler::grants;
use crate::endpoint::existing_claim::{ExistingClaim, ExistingClaims};
use crate::endpoint::held_claims::{HeldClaim, HeldClaims};
use crate::endpoint::pool::{claim_name, source_value};
use crate::endpoint::source::{SourceValue, WantedSources};

impl Clusters {
    /// The value of the claim of an object, if one is requested.
    pub(super) fn claimed(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        wanted: &WantedSources,
        is_held: bool,
    ) -> Result<Option<SourceValue>, Next> {
        let Some(wanted) = &wanted.pool else { return Ok(None) };
        Ok(Some(source_value(object, wanted, &self.claims(key, object)?, is_held)))
    }

    fn claims(&self, key: &Key, object: &Metal3Cluster) -> Result<ExistingClaims, Next> {
        let (pools, owner) = (&self.parts.pools, &object.metadata);
        let name = key.sibling(&claim_name(&key.name));
        let metal3 = grants::find(&pools.metal3_claims, &name)?;
        let metal3 = metal3.map(|claim| Ok(ExistingClaim::metal3(&claim, grants::of_metal3(pools, owner, &claim)?)));
        let general = grants::find(&pools.general_claims, &name)?;
        let general = general.map(|claim| {
            Ok(ExistingClaim::general(
                &claim,
                grants::of_general(pools, owner, &claim)?,
            ))
        });
        Ok(ExistingClaims {
            metal3: metal3.transpose()?,
            general: general.transpose()?,
        })
    }

    /// The claims under the name derived from an object that have this controller's finalizer.
    pub(super) fn held_claims(&self, key: &Key) -> HeldClaims {
        let (pools, name) = (&self.parts.pools, key.sibling(&claim_name(&key.name)));
        let mut held_claims = HeldClaims::default();
        collect(&mut held_claims, &pools.metal3_claims, &name, |claim| {
            metal3_address(pools, claim)
        });
        collect(&mut held_claims, &pools.general_claims, &name, |claim| {
            general_address(pools, claim)
        });
        held_claims
    }
}

fn collect<K: Kind>(
    held_claims: &mut HeldClaims,
    cache: &SharedCache<K>,
    name: &Key,
    granted: impl Fn(&K) -> Observed<String>,
) {
    match cache.find(name) {
        Observed::Present(claim) => held_claims.all.extend(HeldClaim::of(&*claim, granted(&claim))),
        Observed::Absent => {}
        Observed::Unknown(why) => held_claims.unreadable = Some(format!("{} {name}: {why}", K::KIND)),
    }
}

fn metal3_address(pools: &Pools, claim: &IPClaim) -> Observed<String> {
    let named = claim
        .status
        .address
        .as_ref()
        .and_then(|address| address.name.as_deref());
    let text = |address: &IPAddress| address.spec.address.to_string();
    address(&pools.metal3_addresses, claim, named, text)
}

fn general_address(pools: &Pools, claim: &IPAddressClaim) -> Observed<String> {
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
) -> Observed<String> {
    let Some(named) = named.filter(|named| !named.is_empty()) else {
        return Observed::Absent;
    };
    let is_its =
        |address: &A| owner::first::<C>(address.meta()).is_none_or(|owner| grants::is_uid_match(owner, claim.meta()));
    match cache.find(&Key::of(claim).sibling(named)) {
        Observed::Present(address) if is_its(&address) => Observed::Present(text(&address)),
        Observed::Present(_) | Observed::Absent => Observed::Unknown(UnknownReason::NotRead),
        Observed::Unknown(why) => Observed::Unknown(why),
    }
}
