//! An existing claim under the name derived from an object, and its differences from what the object requests.
//!
//! It may be from an earlier state of the object, or created by a user. It is never changed or deleted here.

use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{ContractReference, IPAddressClaim};
use metal3_api::infrastructure::v1beta2::EndpointPool;
use metal3_api::ipam::names::{GROUP, REQUESTED_ADDRESS_ANNOTATION};
use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
use metal3_api::kind::Kind as _;

use crate::data::claims::ClaimState;
use crate::data::pools::PoolRef;

pub(super) const FIELD: &str = "spec.controlPlaneEndpointSource.ipPool";
/// How to replace the claim. While the endpoint is in the object, Cluster API may take it at any time.
pub(super) const REPLACE_CLAIM_HINT: &str = "as long as the Cluster has no endpoint, delete the claim and remove \
                                  spec.controlPlaneEndpoint to create another";

/// An existing claim.
#[derive(Debug, Clone, PartialEq)]
pub struct ExistingClaim {
    /// Its kind.
    pub kind: &'static str,
    /// Its pool.
    pub pool: ContractReference,
    /// The requested address, if any.
    pub requested: Option<String>,
    /// State.
    pub state: ClaimState,
}

/// The claims under the name derived from an object: at most one per kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExistingClaims {
    /// On an IPPool.
    pub metal3: Option<ExistingClaim>,
    /// On any other pool.
    pub general: Option<ExistingClaim>,
}

impl ExistingClaims {
    /// The claim to use for this pool. An owned claim on a pool of another kind counts too, since a second address must
    /// not be claimed.
    #[must_use]
    pub fn on(&self, pool: &PoolRef) -> Option<&ExistingClaim> {
        let (same, other) = if pool.is_metal3() {
            (&self.metal3, &self.general)
        } else {
            (&self.general, &self.metal3)
        };
        let other = other.as_ref().filter(|other| other.is_ours());
        same.as_ref().or(other)
    }
}

impl ExistingClaim {
    /// A claim on an IPPool.
    #[must_use]
    pub fn metal3(claim: &IPClaim, state: ClaimState) -> Self {
        let pool = &claim.spec.pool;
        let name = pool.name.clone().unwrap_or_default();
        let is_in_other_namespace =
            |namespace: &&String| !namespace.is_empty() && Some(*namespace) != claim.metadata.namespace.as_ref();
        let name = match pool.namespace.as_ref().filter(is_in_other_namespace) {
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

    /// Whether the object owns it.
    const fn is_ours(&self) -> bool {
        !matches!(
            self.state,
            ClaimState::Foreign { .. } | ClaimState::Deleting { is_owned: false }
        )
    }

    /// Whether it is being deleted.
    pub(super) const fn is_deleting(&self) -> bool {
        matches!(self.state, ClaimState::Deleting { .. })
    }

    /// The difference between claim and request, with the remedy.
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
                "{FIELD} names pool {pool}, the claim is on pool {on}; name that pool, or {REPLACE_CLAIM_HINT}"
            ));
        }
        let asked = non_empty(wanted.address.as_deref());
        let is_same = match (asked, self.requested.as_deref()) {
            (None, None) => true,
            (Some(asked), Some(requested)) => is_same_address(asked, requested),
            _ => false,
        };
        let (asked, requested) = (asked.unwrap_or("none"), self.requested.as_deref().unwrap_or("none"));
        (!is_same).then(|| {
            format!("{FIELD}.address requests {asked}, the claim requests {requested}; request the same, or {REPLACE_CLAIM_HINT}")
        })
    }
}

fn requested(claim: &ObjectMeta) -> Option<String> {
    let annotations = claim.annotations.as_ref()?;
    non_empty(annotations.get(REQUESTED_ADDRESS_ANNOTATION).map(String::as_str)).map(str::to_owned)
}

pub(super) fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Whether two texts denote the same address.
pub(super) fn is_same_address(one: &str, two: &str) -> bool {
    match (one.parse::<IpAddr>(), two.parse::<IpAddr>()) {
        (Ok(one), Ok(two)) => one == two,
        _ => one == two,
    }
}
