//! What holds the claims on the address of an endpoint: what is known of it, and giving them back.

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
use crate::controller::data::caches::Caches as Pools;
use crate::controller::data::grants::is_uid_match;
use crate::data::release::Release;
use crate::endpoint::hold::{Granted, Hold, Holds};
use crate::endpoint::pool::claim_name;
use crate::needs::Machines as Role;

impl Clusters {
    /// The claims by the name of an object's that our finalizer holds.
    pub(super) fn holds(&self, key: &Key) -> Holds {
        let (pools, name) = (&self.pools, key.sibling(&claim_name(&key.name)));
        let mut holds = Holds::default();
        let metal3 = |claim: &IPClaim| Hold::metal3(claim, metal3_address(pools, claim));
        note(&mut holds, pools.metal3_claims.find(&name), &name, metal3);
        let general = |claim: &IPAddressClaim| Hold::general(claim, general_address(pools, claim));
        note(&mut holds, pools.general_claims.find(&name), &name, general);
        holds
    }

    /// Gives claims back: takes our finalizer off, at the version that was seen.
    pub(super) async fn give_back(&self, holds: Vec<Hold>, writer: &Writer<Role>) -> Result<(), Fault> {
        for Hold { is_metal3, let_go, .. } in holds {
            let Release {
                observed: seen, patch, ..
            } = let_go;
            let Some(patch) = patch else { continue };
            if is_metal3 {
                writer.patch(&self.pools.metal3_claims, &seen.key, patch).await?;
            } else {
                writer.patch(&self.pools.general_claims, &seen.key, patch).await?;
            }
        }
        Ok(())
    }

    /// Gives back what is left of an object that is gone; whether there was any. That it is, the server itself has to say.
    pub(super) async fn give_back_left(&self, key: &Key, writer: &Writer<Role>) -> Result<bool, Fault> {
        let left = self.holds(key).left_behind();
        if left.is_empty() {
            return Ok(false);
        }
        let there: Option<Metal3Cluster> = writer.read(&self.caches.metal3_clusters, key).await?;
        if there.is_some() {
            return Ok(false);
        }
        self.give_back(left, writer).await?;
        Ok(true)
    }
}

fn note<K: Kind>(holds: &mut Holds, found: Observed<Arc<K>>, name: &Key, held: impl Fn(&K) -> Option<Hold>) {
    let why = match found {
        Observed::Present(claim) => return holds.all.extend(held(&claim)),
        Observed::Absent => return,
        Observed::Unknown(why) => why,
    };
    holds.hidden = Some(format!("{} {name}: {why}", K::KIND));
}

fn metal3_address(pools: &Pools, claim: &IPClaim) -> Granted {
    let named = claim
        .status
        .address
        .as_ref()
        .and_then(|address| address.name.as_deref());
    let text = |address: &IPAddress| address.spec.address.to_string();
    address(&pools.metal3_addresses, claim, named, text)
}

fn general_address(pools: &Pools, claim: &IPAddressClaim) -> Granted {
    let named = claim.status.address_ref.as_ref().map(|address| address.name.as_str());
    let text = |address: &cluster::IPAddress| address.spec.address.clone();
    address(&pools.general_addresses, claim, named, text)
}

/// What was granted to a claim. An address that is going counts: it is in use as long as the claim is held.
fn address<A: Kind, C: Kind>(
    cache: &SharedCache<A>,
    claim: &C,
    named: Option<&str>,
    text: impl Fn(&A) -> String,
) -> Granted {
    let Some(named) = named.filter(|named| !named.is_empty()) else {
        return Granted::Nothing;
    };
    let is_its = |address: &A| owner::first::<C>(address.meta()).is_none_or(|owner| is_uid_match(owner, claim.meta()));
    match cache.find(&Key::of(claim).sibling(named)) {
        Observed::Present(address) if is_its(&address) => Granted::Address(text(&address)),
        Observed::Present(_) | Observed::Absent | Observed::Unknown(_) => Granted::Unseen,
    }
}
