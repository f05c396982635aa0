//! Release of the claims on pools, and of a Metal3Data.
//!
//! Claims are found by their owner, so releasing needs neither template nor machine nor host. The addresses are kept
//! until the Metal3DataClaim is deleted, because until then the host may use them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;
use metal3_api::infrastructure::names::DATA_FINALIZER;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_capi::owner;
use metal3_runtime::cache::Identity;
use metal3_runtime::patch::{MergePatch, remove_finalizer};

use super::claims;

/// The release of an object at its observed version: a changed object is not touched.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// The observed version.
    pub observed: Identity,
    /// Removes the finalizer, if it is present.
    pub patch: Option<MergePatch>,
    /// Whether to delete the object after that, unless it is in deletion.
    pub delete: bool,
}

impl Release {
    /// Removes a finalizer from an object, and deletes it if `delete` is set; `None` when both are done.
    pub fn of<K: Resource>(object: &K, finalizer: &str, delete: bool) -> Option<Self> {
        let observed = Identity::of(object).ok()?;
        let present = object.meta().finalizers.as_deref().unwrap_or_default();
        let patch = remove_finalizer(present, finalizer, &observed.version);
        let delete = delete && object.meta().deletion_timestamp.is_none();
        (patch.is_some() || delete).then_some(Self {
            observed,
            patch,
            delete,
        })
    }
}

/// The release of a claim on a pool whose Metal3Data is in deletion or does not exist. `data`: the UID of the
/// Metal3Data in deletion.
pub fn of_claim<K: Resource>(claim: &K, data: Option<&str>) -> Option<Release> {
    if owner::is_owned_by(claim.meta(), data) {
        return Release::of(claim, DATA_FINALIZER, true);
    }
    of_orphan(claim, data)
}

/// The release of a claim that may remain of an earlier Metal3Data. `data`: the UID of the existing one. A claim that
/// is not in deletion is left to the garbage collector.
pub fn of_orphan<K: Resource>(claim: &K, data: Option<&str>) -> Option<Release> {
    let orphan = claims::is_orphan(claim.meta(), |uid| Some(uid) == data);
    orphan.then(|| Release::of(claim, DATA_FINALIZER, false)).flatten()
}

/// Whether the claim found is the one that the Metal3Data was created for.
#[must_use]
pub fn is_held_by(data: &Metal3Data, found: Option<&ObjectMeta>) -> bool {
    let Some(found) = found else { return false };
    let made_for = owner::first::<Metal3DataClaim>(&data.metadata);
    made_for.is_none_or(|owner| Some(owner.uid.as_str()) == found.uid.as_deref())
}
