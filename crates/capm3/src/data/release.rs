//! The removal of a finalizer from an object at its observed version.

use kube_core::Resource;
use metal3_runtime::cache::Identity;
use metal3_runtime::patch::{MergePatch, remove_finalizer};

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
