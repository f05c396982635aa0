//! Converts schemas derived by `schemars` to structural schemas.
//!
//! The API server accepts a narrower schema language than `schemars` derives. One recursive pass converts it.
//! Invariant: the result accepts the same documents, except explicit nulls. A field that must accept `null` carries the
//! extension [`KEEP_NULL`].

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::kind::Kind;

/// Extension that keeps `nullable: true` on a member whose explicit null has a meaning.
pub const KEEP_NULL: &str = "x-keep-null";

/// Integer formats without effect: every JSON integer the API server decodes is an `int64`.
const REDUNDANT_FORMATS: [&str; 6] = ["int64", "uint", "uint8", "uint16", "uint32", "uint64"];

/// The `openAPIV3Schema` of a kind. `spec_required` is true for the few kinds whose objects must carry a spec.
#[must_use]
pub fn root_schema<K: Kind<Spec: JsonSchema, Status: JsonSchema>>(spec_required: bool) -> Value {
    let mut properties = Map::new();
    properties.insert("apiVersion".into(), described_string(API_VERSION_DOC));
    properties.insert("kind".into(), described_string(KIND_DOC));
    properties.insert("metadata".into(), serde_json::json!({ "type": "object" }));
    properties.insert("spec".into(), structural::<K::Spec>());
    if K::HAS_STATUS {
        properties.insert("status".into(), structural::<K::Status>());
    }
    let mut root = Map::new();
    root.insert("description".into(), K::DOC.trim().into());
    root.insert("type".into(), "object".into());
    root.insert("properties".into(), properties.into());
    if spec_required {
        root.insert("required".into(), serde_json::json!(["spec"]));
    }
    root.into()
}

const API_VERSION_DOC: &str = "Group and version of the schema this object is written in.";
const KIND_DOC: &str = "Kind of the object, in CamelCase. It cannot be changed.";

fn described_string(description: &str) -> Value {
    serde_json::json!({ "type": "string", "description": description })
}

/// The structural schema of one type, with every sub-schema inlined.
#[must_use]
pub fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    normalise(&mut schema);
    if let Value::Object(map) = &mut schema {
        map.remove("title");
        map.remove("components");
    }
    schema
}

/// Rewrites one schema node and everything below it.
fn normalise(node: &mut Value) {
    let Value::Object(map) = node else { return };
    flatten_union(map);
    drop_null(map);
    tidy_numbers(map);
    map.remove("title");
    let stated = map.get("x-format").cloned();
    if let Some(format) = stated {
        map.remove("x-format");
        map.insert("format".into(), format);
    }
    if let Some(description) = map.get_mut("description") {
        unwrap_lines(description);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = map.get_mut(key) {
            normalise(child);
        }
    }
    if map.get("additionalProperties") == Some(&Value::Bool(false)) {
        map.remove("additionalProperties");
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for child in properties.values_mut() {
            normalise(child);
        }
    }
    drop_empty_default(map);
}

/// Turns the unions that the derive writes for options and documented enums into plain nodes.
fn flatten_union(map: &mut Map<String, Value>) {
    for key in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(members)) = map.get(key) else {
            continue;
        };
        let mut members = members.clone();
        let before = members.len();
        members.retain(|member| !is_null(member));
        if members.len() < before {
            map.insert("nullable".into(), true.into());
        }
        if members.iter().all(|member| !constants(member).is_empty()) {
            let values: Vec<Value> = members.iter().flat_map(constants).collect();
            map.remove(key);
            map.insert("type".into(), "string".into());
            map.insert("enum".into(), values.into());
        } else if let [only] = members.as_slice() {
            let Value::Object(inner) = only.clone() else { continue };
            map.remove(key);
            for (name, value) in inner {
                map.entry(name).or_insert(value);
            }
            flatten_union(map);
        } else {
            map.insert(key.into(), members.into());
        }
    }
}

/// The string constants of a union member; empty when it is not made of constants only.
fn constants(member: &Value) -> Vec<Value> {
    match (member.get("const"), member.get("enum")) {
        (Some(value), _) => vec![value.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        _ => Vec::new(),
    }
}

fn is_null(member: &Value) -> bool {
    member.get("type").is_some_and(|kind| kind == "null")
        || member
            .get("enum")
            .is_some_and(|values| *values == serde_json::json!([null]))
        || member.get("const").is_some_and(Value::is_null)
}

/// An `Option` is a member that may be left out, not one that may be null.
fn drop_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = map.get("type") {
        let kinds: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
        if let [only] = kinds.as_slice() {
            map.insert("type".into(), only.clone());
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if map.remove(KEEP_NULL).is_some() {
        map.insert("nullable".into(), true.into());
    } else {
        map.remove("nullable");
    }
}

fn tidy_numbers(map: &mut Map<String, Value>) {
    let idle = map
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| REDUNDANT_FORMATS.contains(&format));
    if idle {
        map.remove("format");
    }
    for key in ["minimum", "maximum", "default", "multipleOf"] {
        let Some(number) = map.get(key).and_then(Value::as_f64) else {
            continue;
        };
        if let Some(whole) = whole(number) {
            map.insert(key.into(), whole.into());
        }
    }
}

/// The float as an integer, when it is whole.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0)
        .then(|| format!("{number:.0}").parse().ok())
        .flatten()
}

/// Removes an empty default, which would make the API server add a member that the user did not set. `false` and `0`
/// are deliberate and stay.
fn drop_empty_default(map: &mut Map<String, Value>) {
    let empty = match map.get("default") {
        Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        _ => false,
    };
    if empty {
        map.remove("default");
    }
}

/// Joins the lines of a doc comment, because `kubectl explain` wraps them. A blank line still separates paragraphs.
fn unwrap_lines(description: &mut Value) {
    let Some(text) = description.as_str() else { return };
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    *description = paragraphs.join("\n\n").trim().into();
}
