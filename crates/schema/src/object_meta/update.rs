//! Validation of metadata updates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::read::Metadata;
use super::{managed_errors, map_errors, owner_errors};
use crate::error::FieldError;
use crate::golang;
use crate::value_path::ValuePath;

/// The immutable fields.
const IMMUTABLE: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Validates the metadata of an object that replaces `old`.
///
/// As in the API server, the syntax of finalizers is not checked: an old one must not block an update.
#[must_use]
pub fn metadata_update_errors(object: &Value, old: &Value) -> Vec<FieldError> {
    let at = ValuePath::Root.field("metadata");
    let (new, old) = match (
        Metadata::read(object.get("metadata"), &at),
        Metadata::read(old.get("metadata"), &at),
    ) {
        (Ok(new), Ok(old)) => (new, old),
        (Err(error), _) | (_, Err(error)) => return vec![error],
    };
    let here = |name: &str| at.field(name).bracketed();
    let mut errors = Vec::new();
    errors.extend(new_finalizers(&new, &old, &at));
    if new.text("resourceVersion").is_empty() {
        errors.push(FieldError::invalid(
            here("resourceVersion"),
            "",
            "must be specified for an update",
        ));
    }
    if new.generation < old.generation {
        errors.push(FieldError::invalid(
            here("generation"),
            new.generation,
            "must not be decremented",
        ));
    }
    for name in IMMUTABLE {
        let absent = |value: &Value| value.is_null() || value == "";
        let (new, old) = (new.get(name), old.get(name));
        if new != old && !(absent(new) && absent(old)) {
            let textual = matches!(name, "name" | "namespace" | "uid");
            let shown = if textual && new.is_null() {
                Value::from("")
            } else {
                new.clone()
            };
            errors.push(FieldError::invalid(here(name), shown, "field is immutable"));
        }
    }
    errors.extend(map_errors(&new, &at));
    errors.extend(owner_errors(&new, &at));
    errors.extend(managed_errors(&new, &at));
    errors
}

/// An object that is being deleted accepts no new finalizers.
fn new_finalizers(new: &Metadata<'_>, old: &Metadata<'_>, at: &ValuePath<'_>) -> Option<FieldError> {
    if old.get("deletionTimestamp").is_null() {
        return None;
    }
    let added: BTreeSet<&str> = new
        .finalizers
        .iter()
        .copied()
        .filter(|name| !old.finalizers.contains(name))
        .collect();
    let quoted: Vec<String> = added.into_iter().map(golang::quote).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    (!quoted.is_empty()).then(|| FieldError::forbidden(at.field("finalizers").bracketed(), detail))
}
