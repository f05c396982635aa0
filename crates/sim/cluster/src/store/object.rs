//! Reading and writing the members that every object has.
//!
//! Never fails: a missing or malformed member reads as empty; writing creates the parent objects.

use serde_json::{Map, Value};

/// `metadata.NAME` as text.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    member(object, name).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.NAME`.
pub(crate) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name).filter(|value| !value.is_null())
}

pub(crate) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    metadata(object).insert(name.to_owned(), value.into());
}

pub(crate) fn unset(object: &mut Value, name: &str) {
    metadata(object).remove(name);
}

/// Removes and returns `metadata.NAME`.
pub(crate) fn take(object: &mut Value, name: &str) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove(name)
}

fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    let root = as_map(object);
    as_map(root.entry("metadata").or_insert_with(|| Value::Object(Map::new())))
}

/// The value as an object; any other value is replaced with an empty object.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was made an object above"),
    }
}

/// What JSON calls the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(crate) fn generation(object: &Value) -> i64 {
    member(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

pub(crate) fn deleting(object: &Value) -> bool {
    member(object, "deletionTimestamp").is_some()
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    member(object, "finalizers")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
}

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let list = member(object, "finalizers").and_then(Value::as_array);
    let names = list.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// The value of a label.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    member(object, "labels")?.get(key)?.as_str()
}

/// The members whose change increments the generation.
pub(crate) fn desired_fields(object: &Value, with_status: bool) -> Map<String, Value> {
    let mut map = object.as_object().cloned().unwrap_or_default();
    map.remove("metadata");
    map.remove("apiVersion");
    if !with_status {
        map.remove("status");
    }
    map
}
