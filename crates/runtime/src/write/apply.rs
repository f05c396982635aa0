//! Server-side apply of the fields of one field manager.
//!
//! It is never forced: where another field manager owns a field with another value, nothing is written and the result
//! is [`WriteErrorKind::Contested`](super::WriteErrorKind::Contested).

use kube::core::params::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::access::{Permits, Role, verb};
use crate::cache::Key;
use crate::patch::apply;
use crate::version::ResourceVersion;

use super::error::WriteError;
use super::target::{Writable, WriteTarget};
use super::writer::{Writer, Written, path};

impl<R: Role> Writer<R> {
    /// Applies `members` to an existing object as `manager`, if the object is still at version `at`. Fields that the
    /// manager applied before and `members` does not contain are removed, unless another manager owns them.
    ///
    /// # Errors
    /// When the server rejects the request, or the outcome is unknown.
    pub async fn apply<K: Writable>(
        &self,
        target: &impl WriteTarget<K>,
        object: &Key,
        at: &ResourceVersion,
        (manager, members): (&str, &Value),
    ) -> Result<Written<K>, WriteError>
    where
        R: Permits<verb::Patch, K>,
    {
        let mut metadata = json!({ "name": object.name, "resourceVersion": at.as_str() });
        if !object.namespace.is_empty() {
            apply(&json!({ "namespace": object.namespace }), &mut metadata);
        }
        let mut body = json!({ "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata });
        apply(members, &mut body);
        let request = path::<K>(object).patch(&object.name, &PatchParams::apply(manager), &Patch::Apply(&body));
        self.send_patch::<verb::Patch, K>(target, object, &body, request).await
    }
}
