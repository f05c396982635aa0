//! Claims on pools: names, content and state.
//!
//! A claim is searched under every name it may have, and created under one. Names are concatenations and may collide
//! with those of other objects, so a claim counts only if the Metal3Data owns it. The pool's provider chooses the
//! address.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{self, ContractReference, IPAddressClaim, IPAddressClaimSpec};
use metal3_api::infrastructure::names::{DATA_FINALIZER, DATA_NAME_LABEL, POOL_NAME_LABEL};
use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPClaimSpec};
use metal3_api::meta::ObjectReference;
use metal3_capi::owner;
use metal3_domain::derived::address_claim;
use metal3_domain::names::ObjectName;

use super::DataError;
use super::pools::{Grant, PoolRef};
use super::subject::name_of;

/// The prefix of the names of new claims on IPPools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Naming {
    /// The Metal3Data's name.
    #[default]
    Data,
    /// The host's name, so that a pool can pre-allocate its address.
    Host,
}

/// The possible names of a claim on one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    /// Names to search, in order.
    pub known: Vec<ObjectName>,
    /// Name of a new claim.
    pub made: ObjectName,
}

/// A claim to create.
#[derive(Debug, Clone, PartialEq)]
pub enum NewClaim {
    /// On an IPPool of `ipam.metal3.io`.
    Metal3(Box<IPClaim>),
    /// On a pool of another provider.
    General(Box<IPAddressClaim>),
}

/// The state of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// It has no address yet.
    Pending,
    /// It is in deletion, and its address may be assigned to another claim. A new one can be created once it is
    /// deleted.
    Deleting {
        /// Whether it is owned by the Metal3Data, so that only this controller's finalizer may remain.
        is_owned: bool,
    },
    /// It has another owner.
    Foreign {
        /// Kind and name of the owner.
        owner: String,
    },
    /// The pool's provider reports an error.
    Failed {
        /// The error.
        message: String,
    },
    /// It has an address.
    Granted(Grant),
}

/// The names of the claim on one of the pools that a machine needs.
///
/// # Errors
/// When a name derived from Metal3Data, host and pool is too long.
pub fn names(
    data: &str,
    host: &str,
    pool: &PoolRef,
    needed: &BTreeSet<PoolRef>,
    naming: Naming,
) -> Result<ClaimNames, DataError> {
    let field = format!("the claim on pool {pool}");
    let joined = |first: &str| {
        let name = ObjectName::parse(first).and_then(|first| address_claim(&first, &pool.name));
        name.map_err(|error| DataError::made_name(format!("{first}-{}", pool.name), error, &field))
    };
    let by_data = joined(data)?;
    if pool.is_metal3() {
        // A host name that is no valid prefix is an error only when new claims are named after it.
        let by_host = joined(host);
        let made = match naming {
            Naming::Data => by_data.clone(),
            Naming::Host => by_host.clone()?,
        };
        let known = std::iter::once(by_data).chain(by_host).collect();
        return Ok(ClaimNames { known, made });
    }
    let shares_name = |other: &&PoolRef| !other.is_metal3() && other.name == pool.name && *other != pool;
    let made = if needed.iter().any(|other| shares_name(&other)) {
        // differs (`pools-of-one-name`): the Go manager rejects a template with two such pools.
        let name = format!("{by_data}-{}.{}", pool.kind.to_lowercase(), pool.group);
        ObjectName::parse(name.clone()).map_err(|error| DataError::made_name(name, error, &field))?
    } else {
        by_data
    };
    Ok(ClaimNames {
        known: vec![made.clone()],
        made,
    })
}

/// A new claim on a pool, with finalizer, owner and labels.
#[must_use]
pub fn new_claim(data: &Metal3Data, pool: &PoolRef, name: &ObjectName, naming: Naming) -> NewClaim {
    let metadata = ObjectMeta {
        name: Some(name.to_string()),
        namespace: data.metadata.namespace.clone(),
        labels: data.metadata.labels.clone(),
        finalizers: Some(vec![DATA_FINALIZER.to_owned()]),
        owner_references: Some(vec![owner::reference::<Metal3Data>(&data.metadata)]),
        ..ObjectMeta::default()
    };
    if pool.is_metal3() {
        let pool_reference = ObjectReference {
            name: Some(pool.name.to_string()),
            namespace: data.metadata.namespace.clone(),
            ..ObjectReference::default()
        };
        let mut metadata = metadata;
        if naming == Naming::Host {
            // The name does not identify the Metal3Data; the labels do.
            let labels = metadata.labels.get_or_insert_default();
            labels.insert(DATA_NAME_LABEL.to_owned(), name_of(&data.metadata).to_owned());
            labels.insert(POOL_NAME_LABEL.to_owned(), pool.name.to_string());
        }
        let spec = IPClaimSpec { pool: pool_reference };
        return NewClaim::Metal3(Box::new(IPClaim {
            metadata,
            spec,
            ..IPClaim::default()
        }));
    }
    let spec = IPAddressClaimSpec {
        cluster_name: None,
        pool_ref: ContractReference {
            api_group: pool.group.clone(),
            kind: pool.kind.clone(),
            name: pool.name.to_string(),
        },
    };
    NewClaim::General(Box::new(IPAddressClaim {
        metadata,
        spec,
        ..IPAddressClaim::default()
    }))
}

/// The state of a claim on an IPPool. `address` is the object that its status references, if it exists.
#[must_use]
pub fn metal3_state(owner: &ObjectMeta, claim: &IPClaim, address: Option<&IPAddress>) -> ClaimState {
    if let Some(state) = unusable(owner, &claim.metadata) {
        return state;
    }
    let error = claim
        .status
        .error_message
        .as_ref()
        .filter(|message| !message.is_empty());
    if let Some(message) = error {
        return ClaimState::Failed {
            message: message.clone(),
        };
    }
    match (&claim.status.address, address) {
        (Some(_), Some(address)) => ClaimState::Granted(Grant {
            address: address.spec.address.to_string(),
            // A missing prefix counts as length 0.
            prefix: Some(address.spec.prefix.unwrap_or(0)),
            gateway: address
                .spec
                .gateway
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            dns_servers: address.spec.dns_servers.iter().map(ToString::to_string).collect(),
        }),
        _ => ClaimState::Pending,
    }
}

/// The state of a claim on a pool of another provider. `address` is the object that its status references, if it
/// exists.
#[must_use]
pub fn general_state(owner: &ObjectMeta, claim: &IPAddressClaim, address: Option<&cluster::IPAddress>) -> ClaimState {
    if let Some(state) = unusable(owner, &claim.metadata) {
        return state;
    }
    let has_address = claim
        .status
        .address_ref
        .as_ref()
        .is_some_and(|address| !address.name.is_empty());
    match address.filter(|_| has_address) {
        Some(address) => ClaimState::Granted(Grant {
            address: address.spec.address.clone(),
            prefix: address.spec.prefix.map(i64::from),
            gateway: address.spec.gateway.clone().unwrap_or_default(),
            dns_servers: Vec::new(),
        }),
        None => ClaimState::Pending,
    }
}

/// Whether a claim in deletion has the finalizer only for a Metal3Data that does not exist. `exists` reports whether a
/// Metal3Data with a UID exists; it must cover the whole namespace.
#[must_use]
pub fn is_orphan(claim: &ObjectMeta, exists: impl Fn(&str) -> bool) -> bool {
    let has_finalizer = claim
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == DATA_FINALIZER);
    let is_owned = owner::first::<Metal3Data>(claim).is_some_and(|owner| exists(&owner.uid));
    claim.deletion_timestamp.is_some() && has_finalizer && !is_owned
}

fn unusable(owner: &ObjectMeta, claim: &ObjectMeta) -> Option<ClaimState> {
    // differs (`claim-ownership`): the Go manager uses the address of any IPAddressClaim, and waits for another owner's
    // IPClaim without a message.
    let is_owned = owner::is_owned_by(claim, owner.uid.as_deref());
    match (claim.deletion_timestamp.is_some(), is_owned) {
        // differs (`claim-being-deleted`): the Go manager uses the address of an IPClaim in deletion, and waits for
        // ever with an IPAddressClaim.
        (true, _) => Some(ClaimState::Deleting { is_owned }),
        (false, true) => None,
        (false, false) => {
            let first = claim.owner_references.iter().flatten().next();
            let owner = first.map_or_else(
                || "no owner".to_owned(),
                |owner| format!("{} {}", owner.kind, owner.name),
            );
            Some(ClaimState::Foreign { owner })
        }
    }
}
