//! Checks of defaults.

use serde_json::Value;

use crate::error::FieldError;
use crate::model::Schema;
use crate::validate::Checker;
use crate::value_path::ValuePath;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    /// In the type or metadata of the object itself.
    RootFields,
    Elsewhere,
}

/// Defaults must be pruned and valid. A default in a forbidden place has only that error.
pub(super) fn defaults(schema: &Schema, place: Place, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    if let (Some(default), Place::Root | Place::Elsewhere) = (&schema.default, place) {
        check_default(schema, default, &at.field("default"), found);
    }
    if let Some(items) = &schema.items {
        defaults(items, place, &at.field("items"), found);
    }
    let properties = at.field("properties");
    for (name, property) in &schema.properties {
        let here = properties.key(name);
        let top_level = place == Place::Root && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        if top_level && property.default.is_some() {
            let detail = format!("must not be set in top-level {name}");
            found.push(FieldError::forbidden(here.field("default").bracketed(), detail));
        }
        let inner = if top_level || place == Place::RootFields {
            Place::RootFields
        } else {
            Place::Elsewhere
        };
        defaults(property, inner, &here, found);
    }
}

fn check_default(schema: &Schema, default: &Value, at: &ValuePath<'_>, found: &mut Vec<FieldError>) {
    let mut pruned = default.clone();
    if schema.prune_part(&mut pruned) {
        found.push(FieldError::invalid(
            at.bracketed(),
            default.clone(),
            "must not have unknown fields",
        ));
    }
    found.extend(
        Checker {
            prefix: &at.bracketed(),
        }
        .check(schema, default, None),
    );
}
