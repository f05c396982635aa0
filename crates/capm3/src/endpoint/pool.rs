//! An address claimed from a pool, for an API server that the control plane machines announce.
//!
//! There is one claim per object, with a name derived from it: another leader, and this program on another management
//! cluster, find the same claim. The object owns the claim, so garbage collection deletes it with the object; until
//! then it has this controller's [finalizer](super::held_claims), from its creation on. Once the Cluster has an
//! endpoint, none is created.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::cluster::{Cluster, ContractReference, IPAddressClaim, IPAddressClaimSpec};
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{EndpointPool, IPPoolReference, Metal3Cluster};
use metal3_api::ipam::names::REQUESTED_ADDRESS_ANNOTATION;
use metal3_api::ipam::v1alpha1::{IPClaim, IPClaimSpec};
use metal3_api::kind::Kind as _;
use metal3_api::meta::ObjectReference;
use metal3_capi::owner;

use super::address::{API_SERVER_PORT, Address, stated_port};
use super::existing_claim::{ExistingClaim, ExistingClaims, FIELD, REPLACE_CLAIM_HINT, is_same_address, non_empty};
use super::source::{SourceState, SourceValue};
use crate::data::claims::{ClaimState, NewClaim};
use crate::data::pools::PoolRef;

const SUFFIX: &str = "-control-plane-endpoint";
/// Message for a deleted claim with the finalizer.
const HELD_MESSAGE: &str = "it is deleted, and held while the endpoint is its address: it is released with the Metal3Cluster, or once \
                    the endpoint changes";

/// The claim name for an object.
#[must_use]
pub fn claim_name(object: &str) -> String {
    format!("{object}{SUFFIX}")
}

/// The object for a claim name.
#[must_use]
pub fn object_of(claim: &str) -> Option<&str> {
    claim.strip_suffix(SUFFIX).filter(|name| !name.is_empty())
}

/// The requested pool.
///
/// # Errors
/// The invalid field.
pub fn pool_of(wanted: &EndpointPool) -> Result<PoolRef, String> {
    let reference = IPPoolReference {
        name: wanted.name.clone(),
        kind: wanted.kind.clone(),
        api_group: wanted.api_group.clone(),
    };
    PoolRef::of_reference(&reference, FIELD).map_err(|error| error.to_string())
}

/// The value of the claim. Without one, the claim is created. `is_held`: whether a deleted claim is kept because the
/// endpoint is its address.
#[must_use]
pub fn source_value(
    object: &Metal3Cluster,
    wanted: &EndpointPool,
    claims: &ExistingClaims,
    is_held: bool,
) -> SourceValue {
    let name = claim_name(object.metadata.name.as_deref().unwrap_or_default());
    let (kind, state) = match pool_of(wanted) {
        Ok(pool) => match claims.on(&pool) {
            Some(claim) if is_held && claim.is_deleting() => {
                (claim.kind, SourceState::Pending(HELD_MESSAGE.to_owned()))
            }
            Some(claim) => (claim.kind, source_state(object, wanted, &pool, claim)),
            None if pool.is_metal3() => (IPClaim::KIND, SourceState::Absent),
            None => (IPAddressClaim::KIND, SourceState::Absent),
        },
        Err(error) => (IPClaim::KIND, SourceState::Invalid(error)),
    };
    SourceValue {
        from: format!("{kind} {name}"),
        state,
        idle: None,
    }
}

fn source_state(object: &Metal3Cluster, wanted: &EndpointPool, pool: &PoolRef, claim: &ExistingClaim) -> SourceState {
    let differs = || claim.difference(wanted, pool).map(SourceState::Invalid);
    match &claim.state {
        ClaimState::Deleting { .. } => {
            SourceState::Pending("it is being deleted, and is created again afterwards".to_owned())
        }
        ClaimState::Foreign { owner } => SourceState::Invalid(format!(
            "a claim of that name belongs to {owner}; delete it there, or choose another source"
        )),
        ClaimState::Pending => differs()
            .unwrap_or_else(|| SourceState::Pending(format!("pool {} has not granted an address yet", wanted.name))),
        ClaimState::Failed { message } => differs().unwrap_or_else(|| {
            SourceState::Pending(format!(
                "pool {} grants none: {message}; it is granted once the pool has a free address",
                wanted.name
            ))
        }),
        ClaimState::Granted(grant) => differs().unwrap_or_else(|| granted(object, wanted, &grant.address)),
    }
}

fn granted(object: &Metal3Cluster, wanted: &EndpointPool, address: &str) -> SourceState {
    let asked = non_empty(wanted.address.as_deref());
    if let Some(asked) = asked.filter(|asked| !is_same_address(asked, address)) {
        return SourceState::Invalid(format!(
            "{FIELD}.address requests {asked}, the pool granted {address}; correct the pool, or {REPLACE_CLAIM_HINT}"
        ));
    }
    let hint = object
        .spec
        .control_plane_endpoint
        .as_ref()
        .and_then(|spec_endpoint| stated_port(spec_endpoint.port));
    let port = stated_port(wanted.port).or(hint).unwrap_or(API_SERVER_PORT);
    match Address::stated(Some(address), Some(i32::from(port)), None) {
        Some(address) => SourceState::Address(address),
        None => SourceState::Invalid(format!(
            "the pool granted {address:?}, which is not an address; correct the pool"
        )),
    }
}

/// The complete claim to create: finalizer, owner, labels, requested address.
#[must_use]
pub fn new_claim(object: &Metal3Cluster, cluster: &Cluster, wanted: &EndpointPool) -> Option<NewClaim> {
    let pool = pool_of(wanted).ok()?;
    let cluster_name = cluster.metadata.name.clone().unwrap_or_default();
    let asked = wanted.address.clone().filter(|asked| !asked.is_empty());
    let metadata = ObjectMeta {
        name: Some(claim_name(object.metadata.name.as_deref()?)),
        namespace: object.metadata.namespace.clone(),
        labels: Some(BTreeMap::from([(CLUSTER_NAME_LABEL.to_owned(), cluster_name.clone())])),
        annotations: asked.map(|asked| BTreeMap::from([(REQUESTED_ADDRESS_ANNOTATION.to_owned(), asked)])),
        // differs (`endpoint-claim-held`): the Go manager neither creates nor releases such a claim.
        finalizers: Some(vec![CLUSTER_FINALIZER.to_owned()]),
        owner_references: Some(vec![OwnerReference {
            block_owner_deletion: Some(true),
            ..owner::reference::<Metal3Cluster>(&object.metadata)
        }]),
        ..ObjectMeta::default()
    };
    if pool.is_metal3() {
        let pool = ObjectReference {
            name: Some(pool.name.to_string()),
            namespace: object.metadata.namespace.clone(),
            ..ObjectReference::default()
        };
        return Some(NewClaim::Metal3(Box::new(IPClaim {
            metadata,
            spec: IPClaimSpec { pool },
            ..IPClaim::default()
        })));
    }
    let spec = IPAddressClaimSpec {
        cluster_name: Some(cluster_name),
        pool_ref: ContractReference {
            api_group: pool.group,
            kind: pool.kind,
            name: pool.name.to_string(),
        },
    };
    Some(NewClaim::General(Box::new(IPAddressClaim {
        metadata,
        spec,
        ..IPAddressClaim::default()
    })))
}
