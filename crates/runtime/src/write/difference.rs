//! Writes as the difference of two states of an object.

use crate::access::{Permits, Role, Verb, verb};
use crate::cache::{Identity, Key};
use crate::patch::{Changes, MergePatch};
use crate::version::ResourceVersion;

use super::error::WriteError;
use super::target::WriteTarget;
use super::writer::{Writable, Writer, Written, malformed};

impl<R: Role> Writer<R> {
    /// Patches the status from that of `before`, the object as it was read, to that of `after`; sends nothing if they
    /// are equal. Where a list changes, as conditions do, the object must still be at the version of `before`.
    ///
    /// # Errors
    /// When the server rejects the request, or the outcome is unknown.
    pub async fn status<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        before: &K,
        after: &K,
    ) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::PatchStatus, K>,
    {
        let key = Key::of(before);
        let document =
            |object: &K| serde_json::to_value(object).map_err(|error| malformed::<verb::PatchStatus, K>(&key, error));
        let Some(patch) = Changes::between(&document(before)?, &document(after)?).status else {
            return Ok(Written::Unchanged);
        };
        let patch = if patch.replaces_list() {
            patch.with_precondition(&version::<verb::PatchStatus, K>(&key, before)?)
        } else {
            patch
        };
        self.patch_status(target, &key, patch).await
    }

    /// Patches the difference between `before`, the object as it was read, and `after`: first spec and metadata, then
    /// the status, at most two requests. Where a list changes, the object must still be at the version of `before`; the
    /// second write expects the version that the first one returned.
    ///
    /// If the second write fails, the result of the first is lost: the next reconcile finds it in the cache.
    ///
    /// # Errors
    /// When the server rejects one of the requests, or an outcome is unknown.
    pub async fn change<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        before: &K,
        after: &K,
    ) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::Patch, K> + Permits<verb::PatchStatus, K>,
    {
        let key = Key::of(before);
        let document =
            |object: &K| serde_json::to_value(object).map_err(|error| malformed::<verb::Patch, K>(&key, error));
        let Changes { main, status } = Changes::between(&document(before)?, &document(after)?);
        let lists = [&main, &status].into_iter().flatten().any(MergePatch::replaces_list);
        let guarded = |patch: MergePatch, at: &K| {
            if lists {
                version::<verb::Patch, K>(&key, at).map(|at| patch.with_precondition(&at))
            } else {
                Ok(patch)
            }
        };
        let (status, main) = match (main, status) {
            (None, None) => return Ok(Written::Unchanged),
            (Some(main), None) => return self.patch(target, &key, guarded(main, before)?).await,
            (None, Some(status)) => return self.patch_status(target, &key, guarded(status, before)?).await,
            (Some(main), Some(status)) => (status, self.patch(target, &key, guarded(main, before)?).await?),
        };
        match main {
            Written::Object(now) => self.patch_status(target, &key, guarded(status, &now)?).await,
            // A dry run shows the other half, too.
            Written::DryRun => self.patch_status(target, &key, status).await,
            Written::Deleted | Written::Unchanged => Ok(main),
        }
    }
}

fn version<V: Verb, K: Writable>(key: &Key, object: &K) -> Result<ResourceVersion, WriteError> {
    let identity = Identity::of(object).map_err(|error| malformed::<V, K>(key, error))?;
    Ok(identity.version)
}
