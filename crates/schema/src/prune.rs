//! Pruning: undeclared fields are removed.
//!
//! `apiVersion`, `kind` and `metadata` of a resource are kept regardless of the schema, at the root and in embedded
//! resources. Strict field validation reports the removed paths. Pruning is idempotent.

use serde_json::{Map, Value};

use crate::model::{Additional, Schema};
use crate::value_path::ValuePath;

/// The three fields that every resource has, declared or not.
const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Schema {
    /// Removes the unknown fields of a custom resource and returns their paths, sorted: `spec.pools[0].colour`.
    ///
    /// The API server does this first to everything it receives, then [`default`](Schema::default).
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut pruned = Vec::new();
        match object {
            Value::Object(map) if self.preserve_unknown => preserve_map(map, self, true, &ValuePath::Root, &mut pruned),
            Value::Object(map) => prune_map(map, self, true, &ValuePath::Root, &mut pruned),
            _ => {}
        }
        pruned.sort();
        pruned
    }

    /// Prunes a part of an object; returns whether anything was removed.
    pub(crate) fn prune_part(&self, value: &mut Value) -> bool {
        let mut pruned = Vec::new();
        prune_value(value, Some(self), &ValuePath::Root, &mut pruned);
        !pruned.is_empty()
    }
}

fn prune_value(value: &mut Value, schema: Option<&Schema>, at: &ValuePath<'_>, pruned: &mut Vec<String>) {
    match (value, schema) {
        (value, Some(schema)) if schema.preserve_unknown => preserve(value, schema, at, pruned),
        (Value::Object(map), Some(schema)) => prune_map(map, schema, schema.embedded, at, pruned),
        (Value::Object(map), None) => {
            pruned.extend(map.keys().map(|name| at.field(name).dotted()));
            map.clear();
        }
        (Value::Array(items), schema) => {
            let item_schema = schema.and_then(|schema| schema.items.as_deref());
            for (index, item) in items.iter_mut().enumerate() {
                prune_value(item, item_schema, &at.item(index), pruned);
            }
        }
        _ => {}
    }
}

fn prune_map(
    map: &mut Map<String, Value>,
    schema: &Schema,
    resource: bool,
    at: &ValuePath<'_>,
    pruned: &mut Vec<String>,
) {
    map.retain(|name, value| {
        if resource && RESOURCE_FIELDS.contains(&name.as_str()) {
            return true;
        }
        let here = at.field(name);
        if let Some(property) = schema.properties.get(name) {
            prune_value(value, Some(property), &here, pruned);
            return true;
        }
        match &schema.additional {
            Some(Additional::Schema(entry)) => prune_value(value, Some(entry), &here, pruned),
            Some(Additional::Allowed(_)) => prune_value(value, None, &here, pruned),
            None => {
                pruned.push(here.dotted());
                return false;
            }
        }
        true
    });
}

/// Keeps undeclared fields, and prunes inside the declared ones.
fn preserve(value: &mut Value, schema: &Schema, at: &ValuePath<'_>, pruned: &mut Vec<String>) {
    match value {
        Value::Object(map) => preserve_map(map, schema, schema.embedded, at, pruned),
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                preserve(item, item_schema, &at.item(index), pruned);
            }
        }
        _ => {}
    }
}

fn preserve_map(
    map: &mut Map<String, Value>,
    schema: &Schema,
    resource: bool,
    at: &ValuePath<'_>,
    pruned: &mut Vec<String>,
) {
    for (name, value) in map.iter_mut() {
        if resource && RESOURCE_FIELDS.contains(&name.as_str()) {
            continue;
        }
        let here = at.field(name);
        if let Some(property) = schema.properties.get(name) {
            prune_value(value, Some(property), &here, pruned);
            continue;
        }
        match &schema.additional {
            Some(Additional::Schema(entry)) => prune_value(value, Some(entry), &here, pruned),
            Some(Additional::Allowed(_)) => prune_value(value, None, &here, pruned),
            None => {}
        }
    }
}
