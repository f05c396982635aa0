//! A status write as the difference of two states of an object.

use crate::access::{Permits, Role, verb};
use crate::cache::{Identity, Key};
use crate::patch::Changes;

use super::error::WriteError;
use super::target::{Writable, WriteTarget};
use super::writer::{Writer, Written, malformed};

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
        let Some(mut patch) = Changes::between(&document(before)?, &document(after)?).status else {
            return Ok(Written::Unchanged);
        };
        if patch.replaces_list() {
            let read = Identity::of(before).map_err(|error| malformed::<verb::PatchStatus, K>(&key, error))?;
            patch = patch.with_precondition(&read.version);
        }
        self.patch_status(target, &key, patch).await
    }
}
