//! Fills the defaults of a schema into a document, as the API server does on a write.
//!
//! The API server fills them in what a client sends, and in a stored object only by the schema of the version it is
//! stored in. So of one object, the old side of an update may lack what the new side has.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::schema;

/// Whether two values are equal once both have the defaults of their schema and are in the form `normal`.
pub(crate) fn equal_with_defaults<T: Serialize + JsonSchema + 'static>(
    old: &T,
    new: &T,
    normal: fn(Value) -> Value,
) -> bool {
    let (old, new) = (serde_json::to_value(old), serde_json::to_value(new));
    let (Ok(mut old), Ok(mut new)) = (old, new) else {
        return false;
    };
    if old == new {
        return true;
    }
    let schema = schema_of::<T>();
    fill(&schema, &mut old);
    fill(&schema, &mut new);
    normal(old) == normal(new)
}

/// The schema of a type, generated once per process: it takes longer than a whole review.
fn schema_of<T: JsonSchema + 'static>() -> Arc<Value> {
    static SCHEMAS: Mutex<BTreeMap<TypeId, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let schema = schemas
        .entry(TypeId::of::<T>())
        .or_insert_with(|| Arc::new(schema::structural::<T>()));
    Arc::clone(schema)
}

/// Fills each member that is absent and has a default. Existing values do not change.
fn fill(schema: &Value, document: &mut Value) {
    match document {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                if let Some(default) = property.get("default") {
                    members.entry(name.clone()).or_insert_with(|| default.clone());
                }
                if let Some(member) = members.get_mut(name) {
                    fill(property, member);
                }
            }
            if let Some(values) = schema.get("additionalProperties") {
                members.values_mut().for_each(|member| fill(values, member));
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(schema, item));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_members_are_filled_at_every_depth_and_present_ones_are_kept() {
        let leaf = json!({ "properties": { "a": { "default": 1 }, "b": {} } });
        let schema = json!({ "properties": {
            "one": leaf, "list": { "items": leaf }, "map": { "additionalProperties": leaf },
            "made": { "default": {}, "properties": { "c": { "default": "x" } } },
        } });
        let mut document = json!({ "one": { "b": 2 }, "list": [{}, { "a": 5 }], "map": { "k": {} } });
        fill(&schema, &mut document);
        let expected = json!({
            "one": { "a": 1, "b": 2 }, "list": [{ "a": 1 }, { "a": 5 }], "map": { "k": { "a": 1 } }, "made": { "c": "x" },
        });
        assert_eq!(document, expected);
    }
}
