//! Lists of type `set` and `map`: items and keys are unique.
//!
//! Checked separately, because an update is accepted when the old object already has duplicates.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::golang;
use crate::model::{ListType, Schema};
use crate::number::Num;
use crate::value_path::ValuePath;

/// The duplicates of a new object, unless the old one has any.
pub(crate) fn new_duplicates(schema: &Schema, object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let mut before = Vec::new();
    duplicates(schema, old, &ValuePath::Root, &mut before);
    if before.is_empty() {
        duplicates(schema, object, &ValuePath::Root, errors);
    }
}

/// Every duplicate in every list of a value.
pub(crate) fn duplicates(schema: &Schema, value: &Value, at: &ValuePath<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(entry) = schema.additional_schema() {
                    duplicates(entry, value, &at.key(name), errors);
                }
                if let Some(property) = schema.properties.get(name) {
                    duplicates(property, value, &at.field(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => {
                    for (index, item) in repeated(items.iter().map(canonical_text))
                        .into_iter()
                        .filter_map(|i| Some((i, items.get(i)?)))
                    {
                        errors.push(FieldError::duplicate(at.item(index).bracketed(), item.clone()));
                    }
                }
                Some(ListType::Map) => duplicate_keys(schema, items, at, errors),
                Some(ListType::Atomic) | None => {}
            }
            let Some(item_schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                duplicates(item_schema, item, &at.item(index), errors);
            }
        }
        _ => {}
    }
}

fn duplicate_keys(schema: &Schema, items: &[Value], at: &ValuePath<'_>, errors: &mut Vec<FieldError>) {
    if let Some((index, item)) = items
        .iter()
        .enumerate()
        .find(|(_, item)| !item.is_object() && !item.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(at.item(index).bracketed(), item.clone(), detail));
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| keys_of(schema, item)).collect();
    for index in repeated(keys.iter().map(canonical_text)) {
        if let Some(key) = keys.get(index) {
            errors.push(FieldError::duplicate(at.item(index).bracketed(), key.clone()));
        }
    }
}

/// The keys of an item; an absent key is left out.
fn keys_of(schema: &Schema, item: &Value) -> Value {
    let found = |key: &String| Some((key.clone(), item.get(key)?.clone()));
    Value::Object(schema.list_map_keys.iter().filter_map(found).collect::<Map<_, _>>())
}

/// A text that is equal for equal values only. An integer differs from a float, except inside other values.
fn canonical_text(value: &Value) -> String {
    match value {
        Value::Number(number) if matches!(Num::of(number), Num::Float(_)) => format!("float {}", golang::json(value)),
        _ => golang::json(value),
    }
}

/// The index of the second occurrence of each repeated text.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut second = Vec::new();
    for (index, text) in texts.enumerate() {
        let times = seen.entry(text).or_insert(0);
        *times += 1;
        if *times == 2 {
            second.push(index);
        }
    }
    second
}
