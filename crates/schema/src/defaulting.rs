//! Structural defaulting: absent fields and disallowed nulls get the default of the schema.
//!
//! A disallowed null is replaced by the default, or removed if there is none. Defaults are set from the outside in, so
//! a default may be an object whose own fields are then defaulted. `metadata` is never defaulted: no CRD may define
//! that. Defaulting is idempotent.

use serde_json::{Map, Value};

use crate::model::Schema;

impl Schema {
    /// Sets defaults. The API server does this after [`prune`](Schema::prune), on every read and write.
    pub fn default(&self, object: &mut Value) {
        drop_nulls(object, Some(self));
        set_defaults(object, self);
    }

    /// Sets defaults and keeps disallowed nulls without one, as the API server does for an applied object.
    pub fn default_applied(&self, object: &mut Value) {
        set_defaults(object, self);
    }
}

fn drop_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let schema = schema.and_then(|schema| schema.entry(name));
            let removable = schema.is_some_and(|schema| !schema.nullable && schema.default.is_none());
            if value.is_null() && removable {
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

fn set_defaults(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => set_map_defaults(map, schema),
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for item in items {
                replace_null(item, item_schema);
                set_defaults(item, item_schema);
            }
        }
        _ => {}
    }
}

fn set_map_defaults(map: &mut Map<String, Value>, schema: &Schema) {
    for (name, property) in &schema.properties {
        let Some(default) = &property.default else { continue };
        if map.get(name).is_none_or(|value| value.is_null() && !property.nullable) {
            map.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in map.iter_mut() {
        if let Some(property) = schema.properties.get(name) {
            set_defaults(value, property);
        } else if let Some(entry) = schema.additional_schema() {
            replace_null(value, entry);
            set_defaults(value, entry);
        }
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if let (Value::Null, false, Some(default)) = (&value, schema.nullable, &schema.default) {
        *value = default.clone();
    }
}
