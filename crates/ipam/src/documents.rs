//! Address objects and patches. A patch contains only changes and the version it was computed from.

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
use serde_json::{Value, json};

use crate::action::NewAddress;
use crate::address::AddressObject;
use crate::allocator::{Allocation, Refusal};
use crate::claim::{Claim, ClaimKind};
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

/// The complete address object of an allocation.
#[must_use]
pub fn address_of(
    allocation: &Allocation,
    labels: &BTreeMap<String, String>,
    pool: PoolOwner<'_>,
    settings: &Settings,
) -> NewAddress {
    let kind = allocation.claim.kind;
    let metadata = ObjectMeta {
        name: Some(allocation.object.clone()),
        namespace: Some(pool.key.namespace.clone()),
        labels: Some(labels.clone()).filter(|labels| !labels.is_empty()),
        finalizers: Some(vec![kind.address_finalizer().to_owned()]),
        owner_references: Some(owners(kind, pool, (&allocation.claim.name, &allocation.uid))),
        ..ObjectMeta::default()
    };
    let address = address_text(allocation.address);
    match kind {
        ClaimKind::Metal3 => NewAddress::Metal3(Box::new(IPAddress {
            metadata,
            spec: IPAddressSpec {
                claim: reference(&allocation.claim.name, &pool.key.namespace),
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
                    name: allocation.claim.name.clone(),
                },
                pool_ref: ContractReference {
                    api_group: names::GROUP.to_owned(),
                    kind: "IPPool".to_owned(),
                    name: pool.key.name.clone(),
                },
                address,
                // The schema requires it. The allocator refuses longer prefixes.
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
    // differs: ipam-owner-references. The contract requires these two members; the Go manager omits them.
    let by_contract = kind == ClaimKind::ClusterApi;
    let owner = |api_version: &str, kind: &str, (name, uid): (&str, &str), is_controller: bool| OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: by_contract.then_some(is_controller),
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

/// Corrects owner references and finalizer of an adopted address object. Other owners are kept, but an object has one
/// controller: IP address managers 1.10 to 1.12 copied the Metal3Data as controller from its claim.
#[must_use]
pub fn address_repaired(object: &AddressObject, claim: &Claim, pool: PoolOwner<'_>) -> Option<MergePatch> {
    let kind = object.id.kind;
    let required = owners(kind, pool, (&claim.id.name, &claim.uid));
    let is_required = |owner: &OwnerReference| owner.kind == "IPPool" || kind.owns(&owner.api_version, &owner.kind);
    let has_controller = required.iter().any(|owner| owner.controller == Some(true));
    let rest = object.owners.iter().filter(|owner| !is_required(owner)).cloned();
    let rest = rest.map(|owner| OwnerReference {
        controller: owner.controller.filter(|_| !has_controller),
        ..owner
    });
    let mut finalizers = object.finalizers.clone();
    let finalizer = kind.address_finalizer().to_owned();
    // The API server rejects new finalizers on an object that is being deleted.
    if !object.deleting && !finalizers.contains(&finalizer) {
        finalizers.push(finalizer);
    }
    let before = json!({ "metadata": { "ownerReferences": object.owners, "finalizers": object.finalizers } });
    let owners: Vec<OwnerReference> = required.into_iter().chain(rest).collect();
    let after = json!({ "metadata": { "ownerReferences": owners, "finalizers": finalizers } });
    Changes::between(&before, &after)
        .main
        .map(|patch| patch.with_precondition(&object.version))
}

/// Content of the status of a claim.
#[derive(Debug, Clone, Copy)]
pub enum ClaimOutcome<'a> {
    /// The address object.
    Allocated(&'a str),
    /// The reason why there is none.
    Refused(&'a Refusal),
}

/// The status patch of a claim; `None` when the status is current.
#[must_use]
pub fn claim_status_patch(claim: &Claim, namespace: &str, answer: ClaimOutcome<'_>, now: Time) -> Option<MergePatch> {
    let (address_name, error, ready) = match answer {
        // differs: ipam-claim-ready. The Go manager's reason is empty, which the API server rejects.
        ClaimOutcome::Allocated(object) => (Some(object), None, ready(ConditionStatus::True, reason::READY, "")),
        ClaimOutcome::Refused(refusal) => (
            claim.address_name.as_deref(),
            Some(refusal.message.as_str()).filter(|_| refusal.is_error),
            ready(ConditionStatus::False, refusal.reason, &refusal.message),
        ),
    };
    let ready = Condition {
        observed_generation: claim.generation,
        ..ready
    };
    let conditions = merged_conditions(&claim.conditions, vec![ready], &[condition::READY], now);
    let before = claim_status(
        claim,
        namespace,
        claim.address_name.as_deref(),
        claim.error.as_deref(),
        &claim.conditions,
    );
    let after = claim_status(claim, namespace, address_name, error, &conditions);
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

/// The conditions with `conditions` replacing those of the `owned` types. Other conditions and the order are kept.
#[must_use]
pub fn merged_conditions(
    latest: &[Condition],
    conditions: Vec<Condition>,
    owned: &[&str],
    now: Time,
) -> Vec<Condition> {
    let others = latest
        .iter()
        .filter(|condition| !owned.contains(&condition.type_.as_str()));
    let after: Vec<Condition> = others.cloned().chain(conditions).collect();
    let merge = ConditionMerge {
        before: latest,
        after: &after,
        owned,
    };
    // Only the owned types change, so there is no conflict.
    merge_conditions(latest, &merge, now).unwrap_or(after)
}

fn claim_status(
    claim: &Claim,
    namespace: &str,
    address_name: Option<&str>,
    error: Option<&str>,
    conditions: &[Condition],
) -> Value {
    match claim.id.kind {
        ClaimKind::Metal3 => json!({ "status": {
            "address": address_name.map(|name| json!({ "name": name, "namespace": namespace })),
            "errorMessage": error,
            "conditions": conditions,
        }}),
        ClaimKind::ClusterApi => json!({ "status": {
            "addressRef": address_name.map(|name| json!({ "name": name })),
            "conditions": conditions,
        }}),
    }
}

/// Adds the finalizer to a claim.
#[must_use]
pub fn claim_finalizer_added(claim: &Claim) -> Option<MergePatch> {
    metal3_runtime::patch::add_finalizer(&claim.finalizers, claim.id.kind.claim_finalizer(), &claim.version)
}

/// Removes the finalizer from a claim.
#[must_use]
pub fn claim_finalizer_removed(claim: &Claim) -> Option<MergePatch> {
    metal3_runtime::patch::remove_finalizer(&claim.finalizers, claim.id.kind.claim_finalizer(), &claim.version)
}

/// Removes the finalizer from an address object.
#[must_use]
pub fn address_finalizer_removed(object: &AddressObject) -> Option<MergePatch> {
    metal3_runtime::patch::remove_finalizer(&object.finalizers, object.id.kind.address_finalizer(), &object.version)
}
