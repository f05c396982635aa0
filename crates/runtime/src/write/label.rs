//! A label of an object that must have other labels, compared by the server in the same request.
//!
//! Neither request nor response contains more than metadata. The response is overwritten undecoded: an annotation of
//! `kubectl apply` holds the content of a Secret.

use std::collections::BTreeMap;

use kube::core::params::{Patch, PatchParams};
use secrecy::zeroize::Zeroizing;
use serde_json::{Value, json};

use crate::access::{Permits, Role, verb};
use crate::cache::Key;

use super::effect::Effect;
use super::error::{WriteError, WriteErrorKind};
use super::target::Writable;
use super::writer::{Writer, malformed, path};

/// A change of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelChange {
    /// The labels that the object must have for it.
    pub required: BTreeMap<String, String>,
    /// The label.
    pub label: String,
    /// Its new value; `None` removes it, which needs it among the required ones.
    pub value: Option<String>,
}

impl LabelChange {
    /// As JSON patch. The server rejects it as a whole when a test fails.
    fn steps(&self) -> Value {
        let path = |label: &str| format!("/metadata/labels/{}", label.replace('~', "~0").replace('/', "~1"));
        let tests = self
            .required
            .iter()
            .map(|(label, value)| json!({ "op": "test", "path": path(label), "value": value }));
        let last = match &self.value {
            Some(value) => json!({ "op": "add", "path": path(&self.label), "value": value }),
            None => json!({ "op": "remove", "path": path(&self.label) }),
        };
        tests.chain([last]).collect()
    }
}

impl<R: Role> Writer<R> {
    /// Changes a label of an object that no cache contains. Nothing changes, without an error, when the object does not
    /// exist or lacks a required label.
    ///
    /// # Errors
    /// When the server rejects the request for another reason, or the outcome is unknown.
    pub async fn label<K: Writable>(&self, object: &Key, change: &LabelChange) -> Result<(), WriteError>
    where
        R: Permits<verb::Patch, K>,
    {
        let steps = change.steps();
        let effect = Effect::of::<verb::Patch, K>(object, &steps);
        let patch = serde_json::from_value(steps).map_err(|error| malformed::<verb::Patch, K>(object, error))?;
        let request =
            path::<K>(object).patch_metadata(&object.name, &PatchParams::default(), &Patch::<()>::Json(patch));
        let Some(request) = self.unless_dry_run(&effect, request)? else {
            return Ok(());
        };
        match self.client.request_text(request).await.map(Zeroizing::new) {
            Ok(_) => Ok(()),
            Err(error) => match WriteError::of(&effect, error) {
                // 422 is the answer to a failed test.
                error if matches!(error.kind, WriteErrorKind::NotFound | WriteErrorKind::Invalid) => {
                    tracing::debug!(%object, label = change.label, "the label does not apply");
                    Ok(())
                }
                error => Err(error),
            },
        }
    }
}
