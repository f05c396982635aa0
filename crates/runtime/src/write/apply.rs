//! Server-side apply: members that one of our field managers looks after, where nobody else does.
//!
//! It is never forced. Where somebody else looks after a member and says something else, nothing is written, and the
//! caller hears [`WriteErrorKind::Contested`](super::WriteErrorKind::Contested).

use kube::core::params::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::access::{Permits, Role, verb};
use crate::cache::Key;
use crate::patch::apply;
use crate::version::ResourceVersion;

use super::effect::Effect;
use super::error::WriteError;
use super::target::{Expected, WriteTarget};
use super::writer::{Writable, Writer, Written, path};

impl<R: Role> Writer<R> {
    /// Makes `members` what an existing object says, in the name of `manager`, if the object is still at version `at`.
    /// What the same manager applied before and `members` does not name goes, if nobody else looks after it.
    ///
    /// # Errors
    /// When the server refuses, or nobody knows.
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
        let effect = Effect::of::<verb::Patch, K>(object, &body);
        let expected = self.has_source().then(|| Expected::of(target, object, &body));
        let request = path::<K>(object).patch(&object.name, &PatchParams::apply(manager), &Patch::Apply(body));
        self.send(target, (effect, expected), object, request).await
    }
}
