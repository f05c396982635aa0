//! An address that is claimed from a pool, for an API server that somebody announces on the machines themselves.
//!
//! There is one claim for an object, by a name that follows from it: another leader, and this program on another
//! management cluster, find the first. The object owns it, so garbage collection deletes it when the object is gone; until
//! then our finalizer [holds](super::hold) it, from its birth. Once the Cluster has an endpoint none is claimed.

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
use super::claimed::{Claims, Existing, filled, is_same_address};
use super::reading::{Heard, Reading};
use crate::data::claims::{ClaimState, NewClaim};
use crate::data::pools::PoolRef;

const SUFFIX: &str = "-control-plane-endpoint";
pub(super) const FIELD: &str = "spec.controlPlaneEndpointSource.ipPool";
/// How to come by another claim. While the endpoint is in the object, Cluster API may take it any moment.
pub(super) const ANOTHER: &str = "as long as the Cluster has no endpoint, delete the claim and remove \
                                  spec.controlPlaneEndpoint to have another made";
/// What is said of a claim that was deleted and stays.
const HELD: &str = "it is deleted, and held while the endpoint is its address: it goes with the Metal3Cluster, or once \
                    the endpoint is another";

/// The claim of an object.
#[must_use]
pub fn claim_name(object: &str) -> String {
    format!("{object}{SUFFIX}")
}

/// The object whose claim this would be, by its name.
#[must_use]
pub fn object_of(claim: &str) -> Option<&str> {
    claim.strip_suffix(SUFFIX).filter(|name| !name.is_empty())
}

/// The pool that is asked for.
///
/// # Errors
/// What is wrong with its name, in words for people.
pub fn pool_of(wanted: &EndpointPool) -> Result<PoolRef, String> {
    let reference = IPPoolReference {
        name: wanted.name.clone(),
        kind: wanted.kind.clone(),
        api_group: wanted.api_group.clone(),
    };
    PoolRef::of_reference(&reference, FIELD).map_err(|error| error.to_string())
}

/// What the claim says of the endpoint. Without one it is made, or was made and is gone. `is_held`: whether one that is
/// deleted stays because the endpoint is its address.
#[must_use]
pub fn reading(object: &Metal3Cluster, wanted: &EndpointPool, claims: &Claims, is_held: bool) -> Reading {
    let name = claim_name(object.metadata.name.as_deref().unwrap_or_default());
    let (kind, heard) = match pool_of(wanted) {
        Ok(pool) => match claims.on(&pool) {
            Some(claim) if is_held && claim.is_going() => (claim.kind, Heard::Pending(HELD.to_owned())),
            Some(claim) => (claim.kind, heard(object, wanted, &pool, claim)),
            None if pool.is_metal3() => (IPClaim::KIND, Heard::Absent),
            None => (IPAddressClaim::KIND, Heard::Absent),
        },
        Err(error) => (IPClaim::KIND, Heard::Invalid(error)),
    };
    Reading {
        from: format!("{kind} {name}"),
        heard,
        sleeper: None,
    }
}

fn heard(object: &Metal3Cluster, wanted: &EndpointPool, pool: &PoolRef, claim: &Existing) -> Heard {
    let differs = || claim.difference(wanted, pool).map(Heard::Invalid);
    match &claim.state {
        ClaimState::Deleting { .. } => {
            Heard::Pending("it is being deleted, and can be made again when it is gone".to_owned())
        }
        ClaimState::Foreign { owner } => Heard::Invalid(format!(
            "a claim of that name belongs to {owner}; delete it there, or choose another source"
        )),
        ClaimState::Pending => {
            differs().unwrap_or_else(|| Heard::Pending(format!("pool {} has not granted an address yet", wanted.name)))
        }
        ClaimState::Failed { message } => differs().unwrap_or_else(|| {
            Heard::Pending(format!(
                "pool {} grants none: {message}; make room in the pool, and it goes on by itself",
                wanted.name
            ))
        }),
        ClaimState::Granted(grant) => differs().unwrap_or_else(|| granted(object, wanted, &grant.address)),
    }
}

fn granted(object: &Metal3Cluster, wanted: &EndpointPool, address: &str) -> Heard {
    let asked = filled(wanted.address.as_deref());
    if let Some(asked) = asked.filter(|asked| !is_same_address(asked, address)) {
        return Heard::Invalid(format!(
            "{FIELD}.address asks for {asked}, the pool granted {address}; correct the pool, or {ANOTHER}"
        ));
    }
    let hint = object
        .spec
        .control_plane_endpoint
        .as_ref()
        .and_then(|own| stated_port(own.port));
    let port = stated_port(wanted.port).or(hint).unwrap_or(API_SERVER_PORT);
    match Address::stated(Some(address), Some(i32::from(port)), None) {
        Some(address) => Heard::Address(address),
        None => Heard::Invalid(format!(
            "the pool granted {address:?}, which is no address; correct the pool"
        )),
    }
}

/// The claim to make, complete: what holds it, who owns it, where it belongs, and which address it asks for.
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
        // differs (`endpoint-claim-held`): the Go manager makes no such claim, and gives none back.
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
