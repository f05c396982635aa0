//! The documents that are written: address objects and patches.
//!
//! Pure. A patch names only what changes and carries the version it was computed from.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::cluster::{self, AddressName, ContractReference};
use metal3_api::ipam::names;
use metal3_api::ipam::v1alpha1::{IPAddress, IPAddressSpec};
use metal3_api::meta::{Condition, ConditionStatus, IpText, ObjectReference, Time};
use metal3_domain::ip::address_text;
use metal3_runtime::cache::Key;
use metal3_runtime::patch::{Changes, ConditionMerge, MergePatch, merge_conditions};
use metal3_runtime::reason::Reason;
use metal3_runtime::version::ResourceVersion;
use serde_json::{Value, json};

use crate::action::NewAddress;
use crate::choice::{Grant, Refusal};
use crate::claim::{Claim, ClaimKind};
use crate::held::Held;
use crate::names::{condition, reason};
use crate::ranges::Settings;

/// The pool that owns an address.
#[derive(Debug, Clone, Copy)]
pub struct PoolOwner<'a> {
    /// Namespace and name.
    pub key: &'a Key,
    /// UID.
    pub uid: &'a str,
}

/// The object of a grant, complete from the start.
#[must_use]
pub fn address_of(
    grant: &Grant,
    labels: &BTreeMap<String, String>,
    pool: PoolOwner<'_>,
    settings: &Settings,
) -> NewAddress {
    let kind = grant.claim.kind;
    let metadata = ObjectMeta {
        name: Some(grant.object.clone()),
        namespace: Some(pool.key.namespace.clone()),
        labels: Some(labels.clone()).filter(|labels| !labels.is_empty()),
        finalizers: Some(vec![kind.address_finalizer().to_owned()]),
        owner_references: Some(owners(kind, pool, (&grant.claim.name, &grant.uid))),
        ..ObjectMeta::default()
    };
    let address = address_text(grant.address);
    match kind {
        ClaimKind::Metal3 => NewAddress::Metal3(Box::new(IPAddress {
            metadata,
            spec: IPAddressSpec {
                claim: reference(&grant.claim.name, &pool.key.namespace),
                pool: reference(&pool.key.name, &pool.key.namespace),
                address: IpText(address),
                prefix: settings.prefix,
                gateway: settings.gateway.clone().map(IpText),
                dns_servers: settings.dns_servers.iter().cloned().map(IpText).collect(),
            },
        })),
        ClaimKind::ClusterApi => NewAddress::ClusterApi(Box::new(cluster::IPAddress {
            metadata,
            spec: cluster::IPAddressSpec {
                claim_ref: AddressName {
                    name: grant.claim.name.clone(),
                },
                pool_ref: ContractReference {
                    api_group: names::GROUP.to_owned(),
                    kind: "IPPool".to_owned(),
                    name: pool.key.name.clone(),
                },
                address,
                // The schema asks for it. Longer ones were refused when the address was chosen.
                prefix: Some(
                    settings
                        .prefix
                        .and_then(|length| i32::try_from(length).ok())
                        .unwrap_or(0),
                ),
                gateway: settings.gateway.clone(),
            },
        })),
    }
}

/// The pool first, then the claim, as the Go manager writes them.
fn owners(kind: ClaimKind, pool: PoolOwner<'_>, claim: (&str, &str)) -> Vec<OwnerReference> {
    // differs: ipam-owner-references. The contract asks for these two members; the Go manager leaves them out.
    let by_contract = kind == ClaimKind::ClusterApi;
    let owner = |api_version: &str, kind: &str, (name, uid): (&str, &str), controls: bool| OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: by_contract.then_some(controls),
        block_owner_deletion: by_contract.then_some(true),
    };
    vec![
        owner(
            ClaimKind::Metal3.api_version(),
            "IPPool",
            (&pool.key.name, pool.uid),
            false,
        ),
        owner(kind.api_version(), kind.name(), claim, true),
    ]
}

fn reference(name: &str, namespace: &str) -> ObjectReference {
    ObjectReference {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectReference::default()
    }
}

/// Puts owners and finalizer of an adopted address object right. Owners that are none of ours stay.
#[must_use]
pub fn repaired(held: &Held, claim: &Claim, pool: PoolOwner<'_>) -> Option<MergePatch> {
    let kind = held.id.kind;
    let ours = owners(kind, pool, (&claim.id.name, &claim.uid));
    let is_ours = |owner: &OwnerReference| owner.kind == "IPPool" || kind.owns(&owner.api_version, &owner.kind);
    let rest = held.owners.iter().filter(|owner| !is_ours(owner)).cloned();
    let mut finalizers = held.finalizers.clone();
    let finalizer = kind.address_finalizer().to_owned();
    // A finalizer cannot be added to an object on its way out.
    if !held.deleting && !finalizers.contains(&finalizer) {
        finalizers.push(finalizer);
    }
    let before = json!({ "metadata": { "ownerReferences": held.owners, "finalizers": held.finalizers } });
    let owners: Vec<OwnerReference> = ours.into_iter().chain(rest).collect();
    let after = json!({ "metadata": { "ownerReferences": owners, "finalizers": finalizers } });
    Changes::between(&before, &after)
        .main
        .map(|patch| patch.with_precondition(&held.version))
}

/// What the status of a claim is to say.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// The address object it has.
    Granted(&'a str),
    /// Why it has none.
    Refused(&'a Refusal),
}

/// The patch that makes a claim's status say so; nothing when it does.
#[must_use]
pub fn answered(claim: &Claim, namespace: &str, answer: Answer<'_>, now: Time) -> Option<MergePatch> {
    let (names, error, ready) = match answer {
        // differs: ipam-claim-ready. The Go manager's reason is empty, which the server refuses.
        Answer::Granted(object) => (Some(object), None, ready(ConditionStatus::True, reason::READY, "")),
        Answer::Refused(refusal) => (
            claim.names.as_deref(),
            Some(refusal.message.as_str()).filter(|_| refusal.is_error),
            ready(ConditionStatus::False, refusal.reason, &refusal.message),
        ),
    };
    let ready = Condition {
        observed_generation: claim.generation,
        ..ready
    };
    let conditions = merged(&claim.conditions, vec![ready], &[condition::READY], now);
    let before = claim_status(
        claim,
        namespace,
        claim.names.as_deref(),
        claim.error.as_deref(),
        &claim.conditions,
    );
    let after = claim_status(claim, namespace, names, error, &conditions);
    Changes::between(&before, &after)
        .status
        .map(|patch| patch.with_precondition(&claim.version))
}

fn ready(status: ConditionStatus, reason: Reason, message: &str) -> Condition {
    Condition {
        type_: condition::READY.to_owned(),
        status,
        reason: reason.as_str().to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

/// The list with ours in it: other writers' conditions stay as they are, and so does the order.
#[must_use]
pub fn merged(latest: &[Condition], ours: Vec<Condition>, owned: &[&str], now: Time) -> Vec<Condition> {
    let others = latest
        .iter()
        .filter(|condition| !owned.contains(&condition.type_.as_str()));
    let after: Vec<Condition> = others.cloned().chain(ours).collect();
    let ours = ConditionMerge {
        before: latest,
        after: &after,
        owned,
    };
    // Only a type that two changed can conflict, and here only those that we own change.
    merge_conditions(latest, &ours, now).unwrap_or(after)
}

fn claim_status(
    claim: &Claim,
    namespace: &str,
    names: Option<&str>,
    error: Option<&str>,
    conditions: &[Condition],
) -> Value {
    match claim.id.kind {
        ClaimKind::Metal3 => json!({ "status": {
            "address": names.map(|name| json!({ "name": name, "namespace": namespace })),
            "errorMessage": error,
            "conditions": conditions,
        }}),
        ClaimKind::ClusterApi => json!({ "status": {
            "addressRef": names.map(|name| json!({ "name": name })),
            "conditions": conditions,
        }}),
    }
}

/// Our finalizer, added to a claim.
#[must_use]
pub fn protected(claim: &Claim) -> Option<MergePatch> {
    metal3_runtime::patch::add_finalizer(&claim.finalizers, claim.id.kind.claim_finalizer(), &claim.version)
}

/// Our finalizer, taken from a claim.
#[must_use]
pub fn let_go(claim: &Claim) -> Option<MergePatch> {
    metal3_runtime::patch::remove_finalizer(&claim.finalizers, claim.id.kind.claim_finalizer(), &claim.version)
}

/// Our finalizer, taken from an address object.
#[must_use]
pub fn stripped(held: &Held) -> Option<MergePatch> {
    let at: &ResourceVersion = &held.version;
    metal3_runtime::patch::remove_finalizer(&held.finalizers, held.id.kind.address_finalizer(), at)
}
