//! Writes said by two states of an object: as it was read, and as it is to be.

use crate::access::{Permits, Role, Verb, verb};
use crate::cache::{Identity, Key};
use crate::patch::{Changes, MergePatch};
use crate::version::ResourceVersion;

use super::error::WriteError;
use super::target::WriteTarget;
use super::writer::{Writable, Writer, Written, malformed};

impl<R: Role> Writer<R> {
    /// Writes the status of `after` in place of that of `before`, the object as it was read; nothing where they say the
    /// same. Where a list changes, as conditions do, the object must still be at the version of `before`.
    ///
    /// # Errors
    /// When the server refuses, or nobody knows.
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

    /// Writes all that differs between `before`, the object as it was read, and `after`: first what it is, then its
    /// status, at most two requests. Where a list changes, in either, the object must still be at the version of
    /// `before`; the second write goes on from the version that the first one left.
    ///
    /// What the first write returned is lost where the second one fails: the next pass sees it in the cache.
    ///
    /// # Errors
    /// When the server refuses one of them, or nobody knows.
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
            // Who only looks wants to see the other half too.
            Written::DryRun => self.patch_status(target, &key, status).await,
            Written::Deleted | Written::Unchanged => Ok(main),
        }
    }
}

fn version<V: Verb, K: Writable>(key: &Key, object: &K) -> Result<ResourceVersion, WriteError> {
    let identity = Identity::of(object).map_err(|error| malformed::<V, K>(key, error))?;
    Ok(identity.version)
}
