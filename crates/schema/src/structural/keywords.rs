//! Checks of keywords that depend on other keywords of the same schema.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::FieldError;
use crate::model::{Additional, ListType, MapType, Schema, Type};
use crate::value_path::ValuePath;

/// Checks the whole tree.
pub(super) fn keywords(schema: &Schema, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let here = |keyword: &str| at.field(keyword).bracketed();
    if schema.limits.unique_items {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.push(FieldError::forbidden(here("uniqueItems"), detail));
    }
    let closed = schema
        .additional
        .as_ref()
        .is_some_and(|additional| !matches!(additional, Additional::Allowed(true)));
    if closed && !schema.properties.is_empty() {
        let detail = "additionalProperties and properties are mutual exclusive";
        found.push(FieldError::forbidden(here("additionalProperties"), detail));
    }
    needs_type(
        schema,
        schema.map_type.is_some(),
        Type::Object,
        "x-kubernetes-map-type",
        at,
        found,
    );
    needs_type(
        schema,
        schema.list_type.is_some(),
        Type::Array,
        "x-kubernetes-list-type",
        at,
        found,
    );
    match schema.list_type {
        Some(ListType::Set) => set_items(schema, at, found),
        Some(ListType::Map) => map_items(schema, at, found),
        Some(ListType::Atomic) | None => {}
    }
    if schema.list_type != Some(ListType::Map) && !schema.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let field = here("x-kubernetes-list-type");
        found.push(match schema.list_type {
            None => FieldError::required(field, detail),
            Some(ListType::Set) => FieldError::invalid(field, "set", detail),
            Some(_) => FieldError::invalid(field, "atomic", detail),
        });
    }
    each_child(schema, at, &mut |child, at| keywords(child, at, found));
}

fn each_child(schema: &Schema, at: &ValuePath<'_>, visit: &mut dyn FnMut(&Schema, &ValuePath<'_>)) {
    let properties = at.field("properties");
    for (name, property) in &schema.properties {
        visit(property, &properties.key(name));
    }
    if let Some(entry) = schema.additional_schema() {
        visit(entry, &at.field("additionalProperties"));
    }
    if let Some(items) = &schema.items {
        visit(items, &at.field("items"));
    }
    if let Some(not) = &schema.not {
        visit(not, &at.field("not"));
    }
    for (keyword, arms) in [
        ("allOf", &schema.all_of),
        ("anyOf", &schema.any_of),
        ("oneOf", &schema.one_of),
    ] {
        for (index, arm) in arms.iter().enumerate() {
            visit(arm, &at.field(keyword).item(index));
        }
    }
}

fn needs_type(schema: &Schema, set: bool, ty: Type, keyword: &str, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    if !set || schema.ty == Some(ty) {
        return;
    }
    let (field, detail) = (
        at.field("type").bracketed(),
        format!("must be {} if {keyword} is specified", ty.name()),
    );
    found.push(match schema.ty {
        None => FieldError::required(field, detail),
        Some(actual) => FieldError::invalid(field, actual.name(), detail),
    });
}

fn set_items(schema: &Schema, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let Some(items) = &schema.items else { return };
    let below = at.field("items");
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    if items.ty == Some(Type::Array) && matches!(items.list_type, Some(ListType::Set | ListType::Map)) {
        let actual = if items.list_type == Some(ListType::Set) {
            "set"
        } else {
            "map"
        };
        found.push(FieldError::invalid(
            below.field("x-kubernetes-list-type").bracketed(),
            actual,
            detail,
        ));
    }
    if items.ty == Some(Type::Object) && items.map_type != Some(MapType::Atomic) {
        found.push(FieldError::invalid(
            below.field("x-kubernetes-map-type").bracketed(),
            Value::Null,
            detail,
        ));
    }
    not_nullable(items, "set", &below, found);
}

fn not_nullable(items: &Schema, list_type: &str, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        found.push(FieldError::forbidden(at.field("nullable").bracketed(), detail));
    }
}

fn map_items(schema: &Schema, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let keys_at = at.field("x-kubernetes-list-map-keys");
    if schema.list_map_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        found.push(FieldError::required(keys_at.bracketed(), detail));
    }
    let below = at.field("items");
    let Some(items) = &schema.items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        return found.push(FieldError::required(below.bracketed(), detail));
    };
    not_nullable(items, "map", &below, found);
    if items.ty != Some(Type::Object) {
        let actual = items.ty.map(Type::name).unwrap_or_default();
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        return found.push(FieldError::invalid(below.field("type").bracketed(), actual, detail));
    }
    let mut seen = BTreeSet::new();
    let properties = below.field("properties");
    for key in &schema.list_map_keys {
        if !seen.insert(key) {
            let detail = "must not contain duplicate entries";
            found.push(FieldError::invalid(
                keys_at.bracketed(),
                schema.list_map_keys.clone(),
                detail,
            ));
        }
        match items.properties.get(key) {
            Some(property) => map_key(items, key, property, &properties.key(key), found),
            None => {
                let detail = "entries must all be names of item properties";
                found.push(FieldError::invalid(
                    keys_at.bracketed(),
                    schema.list_map_keys.clone(),
                    detail,
                ));
            }
        }
    }
}

fn map_key(items: &Schema, key: &String, property: &Schema, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    if matches!(property.ty, Some(Type::Array | Type::Object)) {
        let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        found.push(FieldError::invalid(at.field("type").bracketed(), "object", detail));
    }
    if !items.limits.required.contains(key) && property.default.is_none() {
        let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                      property";
        found.push(FieldError::required(at.field("default").bracketed(), detail));
    }
    if property.nullable {
        let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        found.push(FieldError::forbidden(at.field("nullable").bracketed(), detail));
    }
}
