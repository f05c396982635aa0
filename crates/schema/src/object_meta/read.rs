//! The validated parts of metadata, read from JSON without copying.

use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::value_path::ValuePath;

pub(super) struct Metadata<'a> {
    map: Option<&'a Map<String, Value>>,
    pub(super) generation: i64,
    pub(super) labels: Vec<(&'a str, &'a str)>,
    pub(super) annotations: Vec<(&'a str, &'a str)>,
    pub(super) finalizers: Vec<&'a str>,
    pub(super) owners: Vec<Owner<'a>>,
    pub(super) managed: &'a [Value],
}

pub(super) struct Owner<'a> {
    pub(super) whole: &'a Value,
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) controller: bool,
}

const TEXTS: [&str; 8] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
];

impl<'a> Metadata<'a> {
    /// Reads metadata; absent and null count as empty.
    pub(super) fn read(metadata: Option<&'a Value>, at: &ValuePath<'_>) -> Result<Metadata<'a>, FieldError> {
        let wrong = |value: &Value, detail: String| FieldError::invalid(at.bracketed(), value.clone(), detail);
        let map = match metadata {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(other) => return Err(wrong(other, String::from("must be an object"))),
        };
        let whole = metadata.unwrap_or(&Value::Null);
        let invalid = |name: &str, wanted: &str| wrong(whole, format!("{name} must be {wanted}"));
        let get = |name: &str| map.and_then(|map| map.get(name)).unwrap_or(&Value::Null);
        if let Some(name) = TEXTS
            .into_iter()
            .find(|name| !matches!(get(name), Value::Null | Value::String(_)))
        {
            return Err(invalid(name, "a string"));
        }
        let list = |name: &'static str| match get(name) {
            Value::Null => Ok([].as_slice()),
            Value::Array(items) => Ok(items.as_slice()),
            _ => Err(invalid(name, "a list")),
        };
        let finalizers = list("finalizers")?.iter().map(Value::as_str).collect::<Option<_>>();
        let owners = list("ownerReferences")?.iter().map(Owner::read).collect::<Option<_>>();
        let managed = list("managedFields")?;
        let integer = |value: &Value| value.as_i64().or(if value.is_null() { Some(0) } else { None });
        Ok(Metadata {
            map,
            generation: integer(get("generation")).ok_or_else(|| invalid("generation", "an integer"))?,
            labels: texts(get("labels")).ok_or_else(|| invalid("labels", "a map of strings"))?,
            annotations: texts(get("annotations")).ok_or_else(|| invalid("annotations", "a map of strings"))?,
            finalizers: finalizers.ok_or_else(|| invalid("finalizers", "a list of strings"))?,
            owners: owners.ok_or_else(|| invalid("ownerReferences", "a list of references"))?,
            managed,
        })
    }

    pub(super) fn get(&self, name: &str) -> &'a Value {
        self.map.and_then(|map| map.get(name)).unwrap_or(&Value::Null)
    }

    pub(super) fn text(&self, name: &str) -> &'a str {
        self.get(name).as_str().unwrap_or_default()
    }
}

impl<'a> Owner<'a> {
    fn read(whole: &'a Value) -> Option<Owner<'a>> {
        let map = whole.as_object()?;
        let text = |name: &str| match map.get(name) {
            None | Some(Value::Null) => Some(""),
            Some(value) => value.as_str(),
        };
        let controller = match map.get("controller") {
            None | Some(Value::Null) => false,
            Some(value) => value.as_bool()?,
        };
        Some(Owner {
            whole,
            api_version: text("apiVersion")?,
            kind: text("kind")?,
            name: text("name")?,
            uid: text("uid")?,
            controller,
        })
    }
}

/// The entries of a map of strings; null is an empty map, and an empty string as a value.
fn texts(value: &Value) -> Option<Vec<(&str, &str)>> {
    let Some(map) = value.as_object() else {
        return value.is_null().then(Vec::new);
    };
    map.iter()
        .map(|(key, value)| {
            if value.is_null() {
                Some((key.as_str(), ""))
            } else {
                Some((key.as_str(), value.as_str()?))
            }
        })
        .collect()
}
