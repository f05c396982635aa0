//! Access to JSON documents. A missing member is null.

use serde_json::Value;

/// A member.
pub(crate) fn part(document: &Value, name: &str) -> Value {
    document.get(name).cloned().unwrap_or_default()
}

/// The document with additional members.
pub(crate) fn with(mut document: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (document.as_object_mut(), more) {
        members.extend(more);
    }
    document
}
