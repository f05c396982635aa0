//! Release of the claims on pools, and of a Metal3Data.
//!
//! Claims are found by their owner, so releasing needs neither template nor machine nor host. The addresses are kept
//! until the Metal3DataClaim is deleted, because until then the host may use them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::infrastructure::names::DATA_FINALIZER;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_capi::owner;
use metal3_runtime::patch::{has_finalizer, remove_finalizer};
use metal3_runtime::plan::Observed;

use crate::data::claims;
use crate::data::index::referred;
use crate::data::object::action::{Action, Plan, Read, only, then_requeue};
use crate::data::object::facts::{Facts, PoolClaim};
use crate::data::reason;
use crate::data::release::Release;
use crate::diff::version;

/// The plan for a Metal3Data in deletion: releases its claims once the claim it was created for is deleted.
pub(super) fn plan(facts: &Facts<'_>, data: &Metal3Data) -> Plan {
    if !has_finalizer(data, DATA_FINALIZER) {
        return orphans(facts);
    }
    let claim = referred(data.spec.claim.as_ref());
    if !claim.is_empty() {
        match is_held(facts, data) {
            Some(false) => {}
            Some(true) => {
                let message = format!("waiting for Metal3DataClaim {claim} to be deleted");
                return Plan::waiting(reason::CLAIM_EXISTS, message);
            }
            None => return Plan::reading(vec![Read::Claim(facts.key.sibling(claim))]),
        }
    }
    if let Some(unreadable) = &facts.unreadable {
        return only(unreadable);
    }
    let uid = data.metadata.uid.as_deref();
    let releases: Vec<Action> = facts.owned.iter().filter_map(|claim| of_owned(claim, uid)).collect();
    if !releases.is_empty() {
        return then_requeue(releases);
    }
    let present = data.metadata.finalizers.as_deref().unwrap_or_default();
    let patch = version(&data.metadata).and_then(|at| remove_finalizer(present, DATA_FINALIZER, &at));
    Plan {
        actions: patch.map(Action::Patch).into_iter().collect(),
        ..Plan::default()
    }
}

/// The plan that removes the finalizer from claims of an earlier Metal3Data of this name.
pub(super) fn orphans(facts: &Facts<'_>) -> Plan {
    if let Some(unreadable) = &facts.unreadable {
        return only(unreadable);
    }
    let left = |data: Option<&ObjectMeta>| -> Vec<Action> {
        let uid = data.and_then(|data| data.uid.as_deref());
        facts.owned.iter().filter_map(|claim| of_orphan(claim, uid)).collect()
    };
    let releases = match &facts.responses.data {
        Observed::Unknown(_) if left(facts.data.map(|data| &data.metadata)).is_empty() => return Plan::default(),
        // The cache may be outdated.
        Observed::Unknown(_) => return Plan::reading(vec![Read::Data]),
        Observed::Present(data) => left(Some(data)),
        Observed::Absent => left(None),
    };
    if releases.is_empty() {
        return Plan::default();
    }
    then_requeue(releases)
}

/// Whether the claim that a Metal3Data was created for exists. `None`: only a live read can confirm its absence.
fn is_held(facts: &Facts<'_>, data: &Metal3Data) -> Option<bool> {
    match &facts.claim {
        Observed::Unknown(_) => return Some(true),
        Observed::Present(found) if is_made_for(data, &found.metadata) => return Some(true),
        Observed::Present(_) | Observed::Absent => {}
    }
    match &facts.responses.claim {
        Observed::Unknown(_) => None,
        Observed::Present(found) => Some(is_made_for(data, found)),
        Observed::Absent => Some(false),
    }
}

/// Whether the claim found is the one that the Metal3Data was created for.
fn is_made_for(data: &Metal3Data, found: &ObjectMeta) -> bool {
    let made_for = owner::first::<Metal3DataClaim>(&data.metadata);
    made_for.is_none_or(|owner| Some(owner.uid.as_str()) == found.uid.as_deref())
}

/// The release of a claim whose Metal3Data is in deletion. `data`: its UID.
fn of_owned(claim: &PoolClaim, data: Option<&str>) -> Option<Action> {
    if owner::is_owned_by(claim.metadata(), data) {
        return release(claim, true);
    }
    of_orphan(claim, data)
}

/// The release of a claim that may be left from an earlier Metal3Data. `data`: the UID of the existing one. The garbage
/// collector handles a claim that is not in deletion.
fn of_orphan(claim: &PoolClaim, data: Option<&str>) -> Option<Action> {
    let orphan = claims::is_orphan(claim.metadata(), |uid| Some(uid) == data);
    orphan.then(|| release(claim, false)).flatten()
}

/// Removes this controller's finalizer from a claim, and deletes it if `delete` is set; `None` when both are done.
pub(super) fn release(claim: &PoolClaim, delete: bool) -> Option<Action> {
    let (is_metal3, release) = match claim {
        PoolClaim::Metal3(claim) => (true, Release::of(&**claim, DATA_FINALIZER, delete)),
        PoolClaim::General(claim) => (false, Release::of(&**claim, DATA_FINALIZER, delete)),
    };
    release.map(|release| Action::Release { is_metal3, release })
}
