//! One untyped object from the API server. Absent fields read as empty.

use metal3_runtime::cache::Key;
use serde_json::Value;

/// An object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object(pub Value);

impl Object {
    /// A field, by its JSON pointer.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer).filter(|value| !value.is_null())
    }

    /// A string field.
    #[must_use]
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// A boolean field.
    #[must_use]
    pub fn flag(&self, pointer: &str) -> bool {
        self.at(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    /// An integer field.
    #[must_use]
    pub fn number(&self, pointer: &str) -> Option<i64> {
        self.at(pointer).and_then(Value::as_i64)
    }

    /// A copy of a field; null when absent.
    #[must_use]
    pub fn part(&self, pointer: &str) -> Value {
        self.at(pointer).cloned().unwrap_or_default()
    }

    /// Kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// Name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// UID.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> Key {
        Key {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
        }
    }

    /// Resource version as a number. Versions of one server are comparable.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.text("/metadata/resourceVersion").parse().unwrap_or_default()
    }

    /// Sort key: creation time, then name.
    #[must_use]
    pub fn creation_order(&self) -> (String, String) {
        (
            self.text("/metadata/creationTimestamp").to_owned(),
            self.name().to_owned(),
        )
    }

    /// Whether it is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    /// A label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.at("/metadata/labels")?.get(key)?.as_str()
    }

    /// An annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.at("/metadata/annotations")?.get(key)?.as_str()
    }

    /// Whether any annotation key has this prefix.
    #[must_use]
    pub fn has_annotation_of(&self, prefix: &str) -> bool {
        let all = self.at("/metadata/annotations").and_then(Value::as_object);
        all.is_some_and(|all| all.keys().any(|key| key.starts_with(prefix)))
    }

    /// Finalizers.
    #[must_use]
    pub fn finalizers(&self) -> Vec<&str> {
        let all = self.at("/metadata/finalizers").and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Owner references.
    #[must_use]
    pub fn owners(&self) -> &[Value] {
        let owners = self.at("/metadata/ownerReferences").and_then(Value::as_array);
        owners.map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the object with this UID owns it.
    #[must_use]
    pub fn is_owned_by(&self, uid: &str) -> bool {
        !uid.is_empty() && self.owners().iter().any(|owner| text_of(owner, "uid") == uid)
    }

    /// The name of its owner of a kind.
    #[must_use]
    pub fn owner(&self, kind: &str) -> Option<&str> {
        let owner = self.owners().iter().find(|owner| text_of(owner, "kind") == kind)?;
        Some(text_of(owner, "name"))
    }

    /// A condition.
    #[must_use]
    pub fn condition(&self, aspect: &str) -> Option<&Value> {
        let all = self.at("/status/conditions")?.as_array()?;
        all.iter().find(|condition| text_of(condition, "type") == aspect)
    }

    /// Whether a condition is false.
    #[must_use]
    pub fn is_false(&self, aspect: &str) -> bool {
        self.condition(aspect)
            .is_some_and(|condition| text_of(condition, "status") == "False")
    }

    /// Whether a condition is true.
    #[must_use]
    pub fn is_true(&self, aspect: &str) -> bool {
        self.condition(aspect)
            .is_some_and(|condition| text_of(condition, "status") == "True")
    }
}

/// A string member of a value.
#[must_use]
pub(crate) fn text_of<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}
