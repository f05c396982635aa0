//! Claims on pools: their names, their content, and what has become of one.
//!
//! A claim is looked for under every name it may have and made under one. Names are plain concatenations and may coincide
//! with somebody else's, so a claim counts only if the Metal3Data owns it: nobody's address is used because of a name.
//! Which addresses a pool grants is its provider's business.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{self, ContractReference, IPAddressClaim, IPAddressClaimSpec};
use metal3_api::infrastructure::names::{DATA_FINALIZER, DATA_NAME_LABEL, POOL_NAME_LABEL};
use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPClaimSpec};
use metal3_api::meta::ObjectReference;
use metal3_capi::owner;
use metal3_domain::derived::address_claim;
use metal3_domain::names::{NameError, ObjectName};

use super::pools::{Grant, PoolRef};
use super::subject::name_of;
use super::{DataError, Problem};

/// After what claims on IPPools are named when they are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Naming {
    /// The Metal3Data.
    #[default]
    Data,
    /// The host, so that a pool can pre-allocate for it.
    Host,
}

/// The names a claim on one pool may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    /// Names to look for, in this order.
    pub known: Vec<ObjectName>,
    /// Name of a claim that has to be made.
    pub made: ObjectName,
}

/// A claim to make.
#[derive(Debug, Clone, PartialEq)]
pub enum NewClaim {
    /// On an IPPool of ours.
    Metal3(Box<IPClaim>),
    /// On any other pool.
    General(Box<IPAddressClaim>),
}

/// What has become of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimState {
    /// It is ours and has no address yet.
    Open,
    /// It is being deleted: its address may be somebody else's next. A new one can be made when it is gone.
    Leaving {
        /// Whether only our finalizer is to go before it does.
        ours: bool,
    },
    /// It is somebody else's.
    Taken {
        /// Kind and name of the owner.
        owner: String,
    },
    /// The pool's provider refused.
    Refused {
        /// What it says.
        message: String,
    },
    /// It has an address.
    Granted(Grant),
}

/// The names of the claim on a pool, one of those that a machine needs.
///
/// # Errors
/// When a name that follows from Metal3Data, host and pool is too long.
pub fn names(
    data: &str,
    host: &str,
    pool: &PoolRef,
    needed: &BTreeSet<PoolRef>,
    naming: Naming,
) -> Result<ClaimNames, DataError> {
    let field = format!("the claim on pool {pool}");
    let joined = |first: &str| {
        let name = |error: NameError| {
            Problem::MadeName {
                name: format!("{first}-{}", pool.name),
                error,
            }
            .of(&field)
        };
        ObjectName::parse(first)
            .and_then(|first| address_claim(&first, &pool.name))
            .map_err(name)
    };
    let by_data = joined(data)?;
    if pool.is_metal3() {
        // A host's name that makes no claim name is no hindrance unless claims are to be named after it.
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
        // differs (`pools-of-one-name`): the Go manager refuses a template with two such pools.
        let name = format!("{by_data}-{}.{}", pool.kind.to_lowercase(), pool.group);
        ObjectName::parse(name.clone()).map_err(|error| Problem::MadeName { name, error }.of(&field))?
    } else {
        by_data
    };
    Ok(ClaimNames {
        known: vec![made.clone()],
        made,
    })
}

/// A claim on a pool, complete: with what protects it, who owns it and where it belongs.
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
            // The name no longer tells whose claim it is; the labels do.
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

/// What has become of a claim on an IPPool that `owner` may have made. `address`: the object it refers to, if that is
/// known.
#[must_use]
pub fn metal3_state(owner: &ObjectMeta, claim: &IPClaim, address: Option<&IPAddress>) -> ClaimState {
    if let Some(state) = not_ours(owner, &claim.metadata) {
        return state;
    }
    let refused = claim
        .status
        .error_message
        .as_ref()
        .filter(|message| !message.is_empty());
    if let Some(message) = refused {
        return ClaimState::Refused {
            message: message.clone(),
        };
    }
    match (&claim.status.address, address) {
        (Some(_), Some(address)) => ClaimState::Granted(Grant {
            address: address.spec.address.to_string(),
            // A pool without prefix counts as one of length 0.
            prefix: Some(address.spec.prefix.unwrap_or(0)),
            gateway: address
                .spec
                .gateway
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            dns_servers: address.spec.dns_servers.iter().map(ToString::to_string).collect(),
        }),
        _ => ClaimState::Open,
    }
}

/// What has become of a claim on any other pool that `owner` may have made. `address`: the object it refers to, if that
/// is known.
#[must_use]
pub fn general_state(owner: &ObjectMeta, claim: &IPAddressClaim, address: Option<&cluster::IPAddress>) -> ClaimState {
    if let Some(state) = not_ours(owner, &claim.metadata) {
        return state;
    }
    let is_answered = claim
        .status
        .address_ref
        .as_ref()
        .is_some_and(|address| !address.name.is_empty());
    match address.filter(|_| is_answered) {
        Some(address) => ClaimState::Granted(Grant {
            address: address.spec.address.clone(),
            prefix: address.spec.prefix.map(i64::from),
            gateway: address.spec.gateway.clone().unwrap_or_default(),
            dns_servers: Vec::new(),
        }),
        None => ClaimState::Open,
    }
}

/// Whether a claim keeps existing only for a Metal3Data that is gone, so that our finalizer may be taken off it.
/// `lives`: whether there is a Metal3Data with a UID; it must know of all of the namespace.
#[must_use]
pub fn is_orphan(claim: &ObjectMeta, lives: impl Fn(&str) -> bool) -> bool {
    let is_ours = claim
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == DATA_FINALIZER);
    let owned = owner::first::<Metal3Data>(claim).is_some_and(|owner| lives(&owner.uid));
    claim.deletion_timestamp.is_some() && is_ours && !owned
}

fn not_ours(owner: &ObjectMeta, claim: &ObjectMeta) -> Option<ClaimState> {
    // differs (`claim-ownership`): the Go manager uses the address of anybody's IPAddressClaim, and waits for somebody
    // else's IPClaim without a word.
    let ours = owner::is_owned_by(claim, owner.uid.as_deref());
    match (claim.deletion_timestamp.is_some(), ours) {
        // differs (`claim-being-deleted`): the Go manager goes on with the address of an IPClaim that is being deleted,
        // and waits for ever with an IPAddressClaim.
        (true, _) => Some(ClaimState::Leaving { ours }),
        (false, true) => None,
        (false, false) => {
            let first = claim.owner_references.iter().flatten().next();
            let owner = first.map_or_else(|| "nobody".to_owned(), |owner| format!("{} {}", owner.kind, owner.name));
            Some(ClaimState::Taken { owner })
        }
    }
}
