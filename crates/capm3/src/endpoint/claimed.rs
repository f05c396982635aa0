//! A claim that exists by the name of an object's: what it asks for, and how that differs from what the object asks for.
//!
//! It may have been made for an earlier form of the object, or by a person. Nothing here changes or deletes one.

use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{ContractReference, IPAddressClaim};
use metal3_api::infrastructure::v1beta2::EndpointPool;
use metal3_api::ipam::names::{GROUP, REQUESTED_ADDRESS_ANNOTATION};
use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
use metal3_api::kind::Kind as _;

use super::pool::{ANOTHER, FIELD};
use crate::data::claims::ClaimState;
use crate::data::pools::PoolRef;

/// A claim that exists.
#[derive(Debug, Clone, PartialEq)]
pub struct Existing {
    /// Its kind.
    pub kind: &'static str,
    /// The pool it is on.
    pub pool: ContractReference,
    /// The address it asks for, if it asks for one.
    pub requested: Option<String>,
    /// What has become of it.
    pub state: ClaimState,
}

/// The claims by the name of an object's: one of each kind at most.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claims {
    /// On an IPPool of ours.
    pub metal3: Option<Existing>,
    /// On any other pool.
    pub general: Option<Existing>,
}

impl Claims {
    /// The claim that stands for one on this pool. One that an object made on a pool of another sort does too: two
    /// addresses would be one too many.
    #[must_use]
    pub fn on(&self, pool: &PoolRef) -> Option<&Existing> {
        let (same, other) = if pool.is_metal3() {
            (&self.metal3, &self.general)
        } else {
            (&self.general, &self.metal3)
        };
        let other = other.as_ref().filter(|other| other.is_ours());
        same.as_ref().or(other)
    }
}

impl Existing {
    /// A claim on an IPPool of ours.
    #[must_use]
    pub fn metal3(claim: &IPClaim, state: ClaimState) -> Self {
        let pool = &claim.spec.pool;
        let name = pool.name.clone().unwrap_or_default();
        let is_elsewhere =
            |namespace: &&String| !namespace.is_empty() && Some(*namespace) != claim.metadata.namespace.as_ref();
        let name = match pool.namespace.as_ref().filter(is_elsewhere) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        Self {
            kind: IPClaim::KIND,
            pool: ContractReference {
                api_group: GROUP.to_owned(),
                kind: IPPool::KIND.to_owned(),
                name,
            },
            requested: requested(&claim.metadata),
            state,
        }
    }

    /// A claim on any other pool.
    #[must_use]
    pub fn general(claim: &IPAddressClaim, state: ClaimState) -> Self {
        Self {
            kind: IPAddressClaim::KIND,
            pool: claim.spec.pool_ref.clone(),
            requested: requested(&claim.metadata),
            state,
        }
    }

    /// Whether the object made it.
    const fn is_ours(&self) -> bool {
        !matches!(
            self.state,
            ClaimState::Foreign { .. } | ClaimState::Deleting { is_owned: false }
        )
    }

    /// Whether it is being deleted.
    pub(super) const fn is_going(&self) -> bool {
        matches!(self.state, ClaimState::Deleting { .. })
    }

    /// In what the claim asks for something else than the object does: both are named, and the cure.
    #[must_use]
    pub fn difference(&self, wanted: &EndpointPool, pool: &PoolRef) -> Option<String> {
        let on = &self.pool;
        if (&on.api_group, &on.kind, &*on.name) != (&pool.group, &pool.kind, pool.name.as_str()) {
            let on = if (&*on.api_group, &*on.kind) == (GROUP, IPPool::KIND) {
                on.name.clone()
            } else {
                format!("{} ({}.{})", on.name, on.kind, on.api_group)
            };
            return Some(format!(
                "{FIELD} names pool {pool}, the claim is on pool {on}; name that, or {ANOTHER}"
            ));
        }
        let asked = filled(wanted.address.as_deref());
        let is_same = match (asked, self.requested.as_deref()) {
            (None, None) => true,
            (Some(asked), Some(requested)) => is_same_address(asked, requested),
            _ => false,
        };
        let (asked, requested) = (asked.unwrap_or("none"), self.requested.as_deref().unwrap_or("none"));
        (!is_same).then(|| {
            format!("{FIELD}.address asks for {asked}, the claim for {requested}; ask for the same, or {ANOTHER}")
        })
    }
}

fn requested(claim: &ObjectMeta) -> Option<String> {
    let annotations = claim.annotations.as_ref()?;
    filled(annotations.get(REQUESTED_ADDRESS_ANNOTATION).map(String::as_str)).map(str::to_owned)
}

/// What is stated, if it is not empty.
pub(super) fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Whether two texts mean the same address.
pub(super) fn is_same_address(one: &str, two: &str) -> bool {
    match (one.parse::<IpAddr>(), two.parse::<IpAddr>()) {
        (Ok(one), Ok(two)) => one == two,
        _ => one == two,
    }
}
