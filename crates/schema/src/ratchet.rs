//! Correlation of new and old values for ratcheting.
//!
//! Objects correlate by name, lists of type `map` by their keys, other lists not at all. An update is not rejected for
//! an error in a value that equals its correlated old value, and a transition rule receives the old value. Undeclared
//! names do not correlate: an object with such a name never counts as unchanged.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::{ListType, Schema, Type};
use crate::number::Num;

/// A new value with its correlated old value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
}

impl<'a> Pair<'a> {
    /// The pair of one entry of an object, if both have it and the schema declares it.
    pub(crate) fn entry(&self, name: &str) -> Option<Pair<'a>> {
        let (new, old) = (self.new.get(name)?, self.old.get(name)?);
        let schema = self.schema.entry(name)?;
        Some(Pair { schema, new, old })
    }

    /// The pairs of a list's items, by index of the new list.
    pub(crate) fn items(&self) -> Vec<Option<Pair<'a>>> {
        let (Value::Array(new), Value::Array(old)) = (self.new, self.old) else {
            return Vec::new();
        };
        let Some(schema) = self.schema.items.as_deref() else {
            return vec![None; new.len()];
        };
        let index = ByKey::of(self.schema, old);
        new.iter()
            .map(|new| index.get(new).map(|old| Pair { schema, new, old }))
            .collect()
    }

    /// Whether the value is unchanged.
    pub(crate) fn unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if self.schema.list_type != Some(ListType::Map) {
                    return new == old;
                }
                self.items()
                    .iter()
                    .all(|pair| pair.is_some_and(|pair| pair.unchanged()))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.entry(name).is_some_and(|pair| pair.unchanged()))
            }
            (new, old) => new == old,
        }
    }
}

/// The items of a list of type `map`, by key. The first of several equal keys wins.
pub(crate) struct ByKey<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> ByKey<'a> {
    pub(crate) fn of(list: &'a Schema, items: &'a [Value]) -> ByKey<'a> {
        let correlates = list.list_type == Some(ListType::Map) && list.ty == Some(Type::Array);
        let keys = if correlates { list.list_map_keys.as_slice() } else { &[] };
        let mut index = BTreeMap::new();
        for item in items {
            if let Some(key) = composite_key(item, keys) {
                index.entry(key).or_insert(item);
            }
        }
        ByKey { keys, items: index }
    }

    pub(crate) fn get(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&composite_key(item, self.keys)?).copied()
    }
}

/// The keys of an item as one text; `None` if one is missing or no scalar.
fn composite_key(item: &Value, keys: &[String]) -> Option<String> {
    let map: &Map<String, Value> = item.as_object()?;
    if keys.is_empty() {
        return None;
    }
    let mut text = String::new();
    for key in keys {
        match map.get(key)? {
            Value::Bool(yes) => text.push_str(&format!("\0b{yes}")),
            Value::String(name) => text.push_str(&format!("\0s{name:?}")),
            Value::Number(number) => match Num::of(number) {
                Num::Int(int) => text.push_str(&format!("\0i{int}")),
                Num::Float(value) => text.push_str(&format!("\0f{value}")),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        }
    }
    Some(text)
}
