//! Structural defaulting: absent fields and unwanted nulls get the value that the schema names.
//!
//! A null where none is allowed goes away if there is no default, and becomes the default if there is one. Defaults are
//! filled from the outside in, so one default may bring an object whose own fields are then defaulted. `metadata` is
//! never defaulted: no CRD may say so. Defaulting twice is defaulting once.

use serde_json::{Map, Value};

use crate::model::Schema;

impl Schema {
    /// Fills in defaults. The API server does this after [`prune`](Schema::prune), on every read and write.
    pub fn default(&self, object: &mut Value) {
        drop_nulls(object, Some(self));
        fill(object, self);
    }

    /// Fills in defaults and keeps unwanted nulls that have none: what the API server does to an applied object.
    pub fn fill(&self, object: &mut Value) {
        fill(object, self);
    }
}

fn drop_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let schema = schema.and_then(|schema| schema.entry(name));
            let unwanted = schema.is_some_and(|schema| !schema.nullable && schema.default.is_none());
            if value.is_null() && unwanted {
                return false;
            }
            drop_nulls(value, schema);
            true
        }),
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            for item in items {
                drop_nulls(item, schema);
            }
        }
        _ => {}
    }
}

fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => fill_map(map, schema),
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for item in items {
                replace_null(item, item_schema);
                fill(item, item_schema);
            }
        }
        _ => {}
    }
}

fn fill_map(map: &mut Map<String, Value>, schema: &Schema) {
    for (name, property) in &schema.properties {
        let Some(default) = &property.default else { continue };
        if map.get(name).is_none_or(|value| value.is_null() && !property.nullable) {
            map.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in map.iter_mut() {
        if let Some(property) = schema.properties.get(name) {
            fill(value, property);
        } else if let Some(entry) = schema.additional_schema() {
            replace_null(value, entry);
            fill(value, entry);
        }
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if let (Value::Null, false, Some(default)) = (&value, schema.nullable, &schema.default) {
        *value = default.clone();
    }
}
