//! Changes of a node as a JSON patch.
//!
//! Only `add` and `remove` are used: `add` replaces an existing value, and `remove` is for existing keys only, since
//! Ironic rejects it for missing ones.

use serde_json::{Value, json};

use crate::text::{self, ControlCharacter};

/// A list of changes. `Debug` shows the paths only.
#[derive(Clone, Default, PartialEq)]
pub struct Patch(Vec<(String, Option<Value>)>);

impl Patch {
    /// An empty patch.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets a field: `["driver_info", "deploy_iso"]`.
    #[must_use]
    pub fn set(mut self, path: &[&str], value: impl Into<Value>) -> Self {
        self.0.push((pointer(path), Some(value.into())));
        self
    }

    /// Removes a field that is present.
    #[must_use]
    pub fn remove(mut self, path: &[&str]) -> Self {
        self.0.push((pointer(path), None));
        self
    }

    /// Whether the patch is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The request body.
    ///
    /// # Errors
    /// When a control character would get into a field of the node.
    pub fn into_body(self) -> Result<Value, ControlCharacter> {
        let mut body = Vec::with_capacity(self.0.len());
        for (path, value) in self.0 {
            body.push(match value {
                Some(value) => {
                    let field = path.trim_start_matches('/');
                    if text::CHECKED_FIELDS
                        .iter()
                        .any(|checked| field.split('/').next() == Some(checked))
                    {
                        text::check(field, &value)?;
                    }
                    json!({"op": "add", "path": path, "value": value})
                }
                None => json!({"op": "remove", "path": path}),
            });
        }
        Ok(Value::Array(body))
    }
}

impl std::fmt::Debug for Patch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(path, _)| path)).finish()
    }
}

fn pointer(path: &[&str]) -> String {
    path.iter()
        .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        .collect()
}
