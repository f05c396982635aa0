//! What of the claims on pools is to go, and when a Metal3Data may.
//!
//! A claim is known by its owner, not by its name and not by what a template says, so releasing needs neither template
//! nor machine nor host. The addresses stay until the Metal3DataClaim is gone, because until then the host may run with
//! them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;
use metal3_api::infrastructure::names::DATA_FINALIZER;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_capi::owner;
use metal3_runtime::cache::Identity;
use metal3_runtime::patch::{MergePatch, remove_finalizer};

use super::claims;

/// Letting an object go, as it was seen: nothing happens to one that somebody changed since.
#[derive(Debug, Clone, PartialEq)]
pub struct LetGo {
    /// Which version of which object.
    pub seen: Identity,
    /// Takes our finalizer off, if it is there.
    pub patch: Option<MergePatch>,
    /// Whether it is to be deleted after that; it may be on its way already.
    pub delete: bool,
}

impl LetGo {
    /// Takes a finalizer off an object, and deletes it if `delete` says so; nothing where that is done.
    pub fn of<K: Resource>(object: &K, finalizer: &str, delete: bool) -> Option<Self> {
        let seen = Identity::of(object).ok()?;
        let present = object.meta().finalizers.as_deref().unwrap_or_default();
        let patch = remove_finalizer(present, finalizer, &seen.version);
        let delete = delete && object.meta().deletion_timestamp.is_none();
        (patch.is_some() || delete).then_some(Self { seen, patch, delete })
    }
}

/// What is to be done about a claim on a pool, whose Metal3Data is to go or is gone. `data`: the UID of the Metal3Data
/// that is there and is to go.
pub fn of_claim<K: Resource>(claim: &K, data: Option<&str>) -> Option<LetGo> {
    if owner::is_owned_by(claim.meta(), data) {
        return LetGo::of(claim, DATA_FINALIZER, true);
    }
    of_orphan(claim, data)
}

/// What is to be done about a claim that may be left of an earlier Metal3Data. `data`: the UID of the one that is there.
/// One that nobody deletes is left to the garbage collector.
pub fn of_orphan<K: Resource>(claim: &K, data: Option<&str>) -> Option<LetGo> {
    let orphan = claims::is_orphan(claim.meta(), |uid| Some(uid) == data);
    orphan.then(|| LetGo::of(claim, DATA_FINALIZER, false)).flatten()
}

/// Whether the claim that a Metal3Data was made for is the one that was found.
#[must_use]
pub fn is_held_by(data: &Metal3Data, found: Option<&ObjectMeta>) -> bool {
    let Some(found) = found else { return false };
    let made_for = owner::first::<Metal3DataClaim>(&data.metadata);
    made_for.is_none_or(|owner| Some(owner.uid.as_str()) == found.uid.as_deref())
}
