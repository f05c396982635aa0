//! Members of objects that are not decoded, and names of those that are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// The name of an object.
pub(crate) fn name_of(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// The namespace of an object.
pub(crate) fn namespace_of(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// A text of an object; empty if it has none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The name in the metadata of an object.
pub(crate) fn name(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}
