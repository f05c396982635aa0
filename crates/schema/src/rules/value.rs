//! Conversion of JSON values to CEL values by the schema.
//!
//! A rule receives only declared fields, with names escaped for CEL: `a-b` is `a__dash__b`. Numbers of type `number`
//! are floats even without a fraction; strings with a time format are times. Of a resource's metadata only
//! `name` and `generateName` are included.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

use crate::format::Format;
use crate::model::{ListType, Schema, Type};
use crate::number::{Num, to_float, truncate};
use crate::program::Subject;

/// The input of the rules of a value and its old value.
pub(super) fn subject(schema: &Schema, resource: bool, value: &Value, old: Option<&Value>) -> Subject {
    Subject {
        this: cel_value(schema, resource, value),
        old: old.map(|old| cel_value(schema, resource, &aligned(schema, old, value))),
    }
}

/// Converts a value for rules. `resource`: the value is a resource, the object itself or an embedded one.
fn cel_value(schema: &Schema, resource: bool, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(yes) => Cel::Bool(*yes),
        Value::Number(number) => match (Num::of(number), schema.ty) {
            (Num::Int(int), Some(Type::Number)) => Cel::Float(to_float(int)),
            (Num::Float(value), Some(Type::Integer)) => Cel::Int(truncate(value)),
            (Num::Int(int), _) => Cel::Int(int),
            (Num::Float(value), _) => Cel::Float(value),
        },
        Value::String(text) => cel_text(schema, text),
        Value::Array(items) => {
            let item = |item: &Value| match &schema.items {
                Some(item_schema) => cel_value(item_schema, item_schema.embedded, item),
                None => untyped(item),
            };
            Cel::List(Arc::new(items.iter().map(item).collect()))
        }
        Value::Object(_) if schema.int_or_string || schema.ty.is_none() => untyped(value),
        Value::Object(map) => {
            let mut entries = HashMap::new();
            for (name, value) in map {
                if let Some(entry) = schema.additional_schema() {
                    entries.insert(key(name), cel_value(entry, entry.embedded, value));
                } else if resource && name == "metadata" {
                    entries.insert(key(name), names_only(value));
                } else if resource && matches!(name.as_str(), "apiVersion" | "kind") {
                    entries.insert(key(name), untyped(value));
                } else if let Some(property) = schema.properties.get(name).filter(|property| has_type(property))
                    && let Some(escaped) = escape(name)
                {
                    entries.insert(key(&escaped), cel_value(property, property.embedded, value));
                }
            }
            Cel::Map(Map { map: Arc::new(entries) })
        }
    }
}

/// The old value with lists of type `set` and `map` in the order of the new one: their order has no meaning, but CEL
/// compares in order.
fn aligned(schema: &Schema, old: &Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let entry = |(name, old): (&String, &Value)| match (schema.entry(name), new.get(name)) {
                (Some(schema), Some(new)) => (name.clone(), aligned(schema, old, new)),
                _ => (name.clone(), old.clone()),
            };
            old.iter().map(entry).collect()
        }
        (Value::Array(old), Value::Array(new)) => {
            let Some((items, list_type)) = schema.items.as_deref().zip(schema.list_type) else {
                return old.clone().into();
            };
            let same = |a: &Value, b: &Value| match list_type {
                ListType::Map => schema.list_map_keys.iter().all(|key| a.get(key) == b.get(key)),
                ListType::Set => a == b,
                ListType::Atomic => false,
            };
            let place = |item: &Value| new.iter().position(|other| same(item, other));
            let mut placed: Vec<(usize, Value)> = old
                .iter()
                .map(|item| match place(item).and_then(|at| Some((at, new.get(at)?))) {
                    Some((at, counterpart)) => (at, aligned(items, item, counterpart)),
                    None => (usize::MAX, item.clone()),
                })
                .collect();
            placed.sort_by_key(|(at, _)| *at);
            placed.into_iter().map(|(_, item)| item).collect()
        }
        (old, _) => old.clone(),
    }
}

/// Whether rules receive values of this schema.
fn has_type(schema: &Schema) -> bool {
    schema.int_or_string || schema.ty.is_some()
}

fn key(name: &str) -> Key {
    Key::from(name)
}

fn names_only(metadata: &Value) -> Cel {
    let entries = ["name", "generateName"]
        .into_iter()
        .filter_map(|name| Some((key(name), untyped(metadata.get(name)?))));
    Cel::Map(Map {
        map: Arc::new(entries.collect()),
    })
}

fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(yes) => Cel::Bool(*yes),
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => Cel::Int(int),
            Num::Float(value) => Cel::Float(value),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| (key(name), untyped(value)));
            Cel::Map(Map {
                map: Arc::new(entries.collect()),
            })
        }
    }
}

static TIMESTAMP: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("timestamp(text)").ok());
static DURATION: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("duration(text)").ok());

/// Converts a text, to a time if it has a time format. A time that CEL cannot parse stays a text, so that a rule over
/// it fails.
fn cel_text(schema: &Schema, text: &str) -> Cel {
    let plain = Cel::String(Arc::new(text.to_owned()));
    let (program, spelled) = match schema.limits.format.as_ref().map(|(_, format)| *format) {
        Some(Format::DateTime) => (TIMESTAMP.as_ref(), text.to_owned()),
        Some(Format::Date) => (TIMESTAMP.as_ref(), format!("{text}T00:00:00Z")),
        Some(Format::Duration) => (DURATION.as_ref(), text.to_owned()),
        _ => return plain,
    };
    let mut context = Context::default();
    context.add_variable_from_value("text", Cel::String(Arc::new(spelled)));
    program
        .and_then(|program| program.execute(&context).ok())
        .unwrap_or(plain)
}

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The escaped name of a property in rules; `None` if it has none.
fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/'))
    {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(
        escaped
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__"),
    )
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped_for_cel() {
        for (name, escaped) in [
            ("a_b", Some("a_b")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("namespace", Some("__namespace__")),
            ("1a", None),
            ("é", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped);
        }
    }
}
