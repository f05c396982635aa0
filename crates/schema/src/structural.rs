//! Checks whether the API server accepts a CRD with this schema.
//!
//! A structural schema declares the type of every node outside of `allOf`, `anyOf`, `oneOf` and `not`, and no structure
//! inside of them. The texts are the API server's. Not checked: the estimated cost of rules, and defaults inside
//! metadata.

mod defaults;
mod keywords;
mod rules;

use crate::error::FieldError;
use crate::model::{Additional, Schema, Type};
use crate::value_path::ValuePath;

use self::defaults::{Place, defaults};
use self::keywords::keywords;
use self::rules::rules;

impl Schema {
    /// Why this schema cannot be the schema of a CRD, sorted; fields start at `openAPIV3Schema`.
    #[must_use]
    pub fn violations(&self) -> Vec<FieldError> {
        self.violations_at(&ValuePath::Root.field("openAPIV3Schema"))
    }

    pub(crate) fn violations_at(&self, at: &ValuePath<'_>) -> Vec<FieldError> {
        let mut found = Vec::new();
        structure(self, Level::Root, at, &mut found);
        defaults(self, Place::Root, at, &mut found);
        keywords(self, at, &mut found);
        rules(self, None, at, &mut found);
        found.sort_by_key(FieldError::to_string);
        found.dedup();
        found
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Checks the part of the schema that defines the structure of objects.
fn structure(schema: &Schema, level: Level, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let here = |keyword: &str| at.field(keyword).bracketed();
    if schema.ty == Some(Type::Array) && schema.items.is_none() {
        found.push(FieldError::required(here("items"), "must be specified"));
    }
    if let Some(items) = &schema.items {
        structure(items, Level::Item, &at.field("items"), found);
    }
    let properties = at.field("properties");
    for (name, property) in &schema.properties {
        structure(property, Level::Field, &properties.key(name), found);
    }
    if let Some(additional) = &schema.additional {
        if level == Level::Root {
            found.push(FieldError::forbidden(
                here("additionalProperties"),
                "must not be used at the root",
            ));
        }
        if schema.embedded {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            found.push(FieldError::forbidden(here("additionalProperties"), detail));
        }
        if let Additional::Schema(entry) = additional {
            structure(entry, Level::Field, &at.field("additionalProperties"), found);
        }
    }
    if schema.int_or_string {
        for (keyword, set) in [
            ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown),
            ("x-kubernetes-embedded-resource", schema.embedded),
        ] {
            if set {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                found.push(FieldError::invalid(here(keyword), true, detail));
            }
        }
    }
    nested(schema, int_or_string_exception(schema), at, found);
    type_of_node(schema, level, at, found);
    resource_fields(schema, level, at, found);
}

fn type_of_node(schema: &Schema, level: Level, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let here = at.field("type").bracketed();
    let Some(ty) = schema.ty else {
        let detail = match level {
            _ if schema.embedded => "must be object if x-kubernetes-embedded-resource is true",
            _ if schema.int_or_string || schema.preserve_unknown => return,
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        return found.push(FieldError::required(here, detail));
    };
    if ty == Type::Object {
        return;
    }
    if schema.embedded {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        found.push(FieldError::invalid(here.clone(), ty.name(), detail));
    }
    if level == Level::Root {
        found.push(FieldError::invalid(here, ty.name(), "must be object at the root"));
    }
}

fn resource_fields(schema: &Schema, level: Level, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let resource = level == Level::Root || schema.embedded;
    let properties = at.field("properties");
    for (name, ty) in [
        ("kind", Type::String),
        ("apiVersion", Type::String),
        ("metadata", Type::Object),
    ] {
        let Some(property) = schema.properties.get(name).filter(|_| resource) else {
            continue;
        };
        if property.ty != Some(ty) {
            let actual = property.ty.map(Type::name).unwrap_or_default();
            let field = properties.key(name).field("type").bracketed();
            found.push(FieldError::invalid(field, actual, format!("must be {}", ty.name())));
        }
    }
    if let Some(metadata) = schema.properties.get("metadata").filter(|_| level == Level::Root) {
        let names_only = metadata
            .properties
            .keys()
            .all(|name| name == "name" || name == "generateName");
        let allowed =
            |keyword: &&str| matches!(*keyword, "type" | "default") || (*keyword == "properties" && names_only);
        if !metadata.keywords.iter().all(allowed) {
            let detail = "must not specify anything other than name and generateName, \
                          but metadata is implicitly specified";
            found.push(FieldError::forbidden(properties.key("metadata").bracketed(), detail));
        }
    }
    if schema.embedded && !schema.preserve_unknown && schema.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        found.push(FieldError::required(properties.bracketed(), detail));
    }
}

/// Where `anyOf: [integer, string]` may declare types, because a field may be of either type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exception {
    None,
    AnyOf,
    FirstAllOf,
}

fn int_or_string_exception(schema: &Schema) -> Exception {
    let is_pattern = |arms: &[Schema]| {
        let types: Vec<_> = arms.iter().map(|arm| (arm.ty, arm.keywords.as_slice())).collect();
        types
            == [
                (Some(Type::Integer), &["type"][..]),
                (Some(Type::String), &["type"][..]),
            ]
    };
    if is_pattern(&schema.any_of) {
        Exception::AnyOf
    } else if schema.all_of.first().is_some_and(|first| is_pattern(&first.any_of)) {
        Exception::FirstAllOf
    } else {
        Exception::None
    }
}

/// The schemas of `allOf`, `anyOf`, `oneOf` and `not`.
fn nested(schema: &Schema, exception: Exception, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    if exception != Exception::AnyOf {
        for (index, arm) in schema.any_of.iter().enumerate() {
            value_only(arm, Exception::None, &at.field("anyOf").item(index), found);
        }
    }
    for (index, arm) in schema.all_of.iter().enumerate() {
        let first = index == 0 && exception == Exception::FirstAllOf;
        value_only(
            arm,
            if first { Exception::AnyOf } else { Exception::None },
            &at.field("allOf").item(index),
            found,
        );
    }
    for (index, arm) in schema.one_of.iter().enumerate() {
        value_only(arm, Exception::None, &at.field("oneOf").item(index), found);
    }
    if let Some(not) = &schema.not {
        value_only(not, Exception::None, &at.field("not"), found);
    }
}

const NOT_NESTED: [(&str, &str); 11] = [
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

fn value_only(schema: &Schema, exception: Exception, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    nested(schema, exception, at, found);
    if let Some(items) = &schema.items {
        value_only(items, Exception::None, &at.field("items"), found);
    }
    let properties = at.field("properties");
    for (name, property) in &schema.properties {
        value_only(property, Exception::None, &properties.key(name), found);
    }
    for (keyword, detail) in NOT_NESTED
        .into_iter()
        .filter(|(keyword, _)| schema.has_keyword(keyword))
    {
        found.push(FieldError::forbidden(at.field(keyword).bracketed(), detail));
    }
    if schema
        .additional
        .as_ref()
        .is_some_and(|additional| !matches!(additional, Additional::Allowed(false)))
    {
        let field = at.field("additionalProperties").bracketed();
        found.push(FieldError::forbidden(field, "must be undefined to be structural"));
    }
    if !schema.rules.is_empty() {
        let field = at.field("x-kubernetes-validations").bracketed();
        found.push(FieldError::forbidden(field, "must be empty to be structural"));
    }
    if schema.properties.contains_key("metadata") {
        let field = properties.key("metadata").bracketed();
        found.push(FieldError::forbidden(
            field,
            "must not be specified in a nested context",
        ));
    }
}
