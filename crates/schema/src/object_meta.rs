//! Validation of metadata and type, of an object and of embedded resources.
//!
//! Metadata has no schema: it is the same for every kind. Errors have the order of the API server. Decoding errors of
//! the API server (a label that is no string) have other texts here, because there is no decoder.

mod read;
mod update;

use serde_json::Value;

use crate::error::FieldError;
use crate::model::{Additional, Schema};
use crate::names;
use crate::value_path::ValuePath;

use self::read::Metadata;

pub use self::update::metadata_update_errors;

/// Whether objects of a kind are namespaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every object is in one namespace.
    Namespaced,
    /// Objects are identified by name alone.
    Cluster,
}

/// Validates the metadata of an object to create.
#[must_use]
pub fn metadata_errors(object: &Value, scope: Scope) -> Vec<FieldError> {
    let at = ValuePath::Root.field("metadata");
    match Metadata::read(object.get("metadata"), &at) {
        Ok(metadata) => {
            let mut errors = name_errors(
                &metadata,
                &at,
                names::subdomain_violations,
                names::subdomain_prefix_violations,
            );
            errors.extend(namespace_errors(&metadata, scope == Scope::Namespaced, &at));
            errors.extend(create_errors(&metadata, &at));
            errors
        }
        Err(error) => vec![error],
    }
}

/// Validates type and metadata of embedded resources.
pub(crate) fn embedded(schema: &Schema, value: &Value, at: &ValuePath<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => {
            if schema.embedded {
                embedded_errors(value, at, errors);
            }
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    embedded(property, value, &at.field(name), errors);
                } else if let Some(Additional::Schema(entry)) = &schema.additional {
                    embedded(entry, value, &at.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                embedded(item_schema, item, &at.item(index), errors);
            }
        }
        _ => {}
    }
}

fn embedded_errors(resource: &Value, at: &ValuePath<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let here = at.field(name).bracketed();
        match resource.get(name) {
            None => errors.push(FieldError::required(here, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(here, "", "must not be empty"));
            }
            Some(Value::String(text)) => {
                errors.extend(type_violation(name, text).map(|detail| FieldError::invalid(here, text.as_str(), detail)))
            }
            Some(other) => errors.push(FieldError::invalid(here, other.clone(), "must be a string")),
        }
    }
    let Some(metadata) = resource.get("metadata") else {
        return;
    };
    let at = at.field("metadata");
    match Metadata::read(Some(metadata), &at) {
        Ok(metadata) => {
            // A resource in a template needs no name yet, nor a namespace.
            let name = |name: &str| names::path_segment_violations(name, false);
            let prefix = |name: &str| names::path_segment_violations(name, true);
            let unnamed = metadata.text("name").is_empty();
            errors.extend(
                name_errors(&metadata, &at, name, prefix)
                    .into_iter()
                    .filter(|error| !(unnamed && error.cause == crate::error::Cause::Required)),
            );
            errors.extend(namespace_errors(&metadata, !metadata.text("namespace").is_empty(), &at));
            errors.extend(create_errors(&metadata, &at));
        }
        Err(error) => errors.push(error),
    }
}

fn type_violation(field: &str, text: &str) -> Option<String> {
    if field == "apiVersion" {
        let too_many_parts = text != "/" && text.matches('/').count() > 1;
        return too_many_parts.then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let violations = names::kind_violations(&text.to_lowercase());
    (!violations.is_empty()).then(|| {
        format!(
            "may have mixed case, but should otherwise match: {}",
            violations.join(",")
        )
    })
}

fn name_errors(
    metadata: &Metadata<'_>,
    at: &ValuePath<'_>,
    name_violations: impl Fn(&str) -> Vec<String>,
    prefix_violations: impl Fn(&str) -> Vec<String>,
) -> Vec<FieldError> {
    let (name, prefix) = (metadata.text("name"), metadata.text("generateName"));
    let mut errors = Vec::new();
    if !prefix.is_empty() {
        let here = at.field("generateName").bracketed();
        errors.extend(
            prefix_violations(prefix)
                .into_iter()
                .map(|why| FieldError::invalid(here.clone(), prefix, why)),
        );
    }
    let here = at.field("name").bracketed();
    if name.is_empty() {
        errors.push(FieldError::required(here, "name or generateName is required"));
    } else {
        errors.extend(
            name_violations(name)
                .into_iter()
                .map(|why| FieldError::invalid(here.clone(), name, why)),
        );
    }
    errors
}

fn namespace_errors(metadata: &Metadata<'_>, required: bool, at: &ValuePath<'_>) -> Vec<FieldError> {
    let (namespace, here) = (metadata.text("namespace"), at.field("namespace").bracketed());
    match (required, namespace) {
        (true, "") => vec![FieldError::required(here, "")],
        (true, namespace) => {
            let violations = names::label_violations(namespace);
            violations
                .into_iter()
                .map(|why| FieldError::invalid(here.clone(), namespace, why))
                .collect()
        }
        (false, "") => Vec::new(),
        (false, _) => vec![FieldError::forbidden(here, "not allowed on this type")],
    }
}

fn create_errors(metadata: &Metadata<'_>, at: &ValuePath<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if metadata.generation < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            at.field("generation").bracketed(),
            metadata.generation,
            detail,
        ));
    }
    errors.extend(map_errors(metadata, at));
    errors.extend(owner_errors(metadata, at));
    errors.extend(finalizer_errors(metadata, at));
    errors.extend(managed_errors(metadata, at));
    errors
}

/// Size limit for all annotations of an object.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

fn map_errors(metadata: &Metadata<'_>, at: &ValuePath<'_>) -> Vec<FieldError> {
    let (labels, annotations) = (at.field("labels").bracketed(), at.field("annotations").bracketed());
    let mut errors = Vec::new();
    for (key, value) in &metadata.labels {
        let keys = names::key_violations(key)
            .into_iter()
            .map(|why| FieldError::invalid(labels.clone(), *key, why));
        errors.extend(keys);
        let values = names::value_violations(value).into_iter();
        errors.extend(values.map(|why| FieldError::invalid(labels.clone(), *value, why)));
    }
    for (key, _) in &metadata.annotations {
        let violations = names::key_violations(&key.to_lowercase()).into_iter();
        errors.extend(violations.map(|why| FieldError::invalid(annotations.clone(), *key, why)));
    }
    let size: usize = metadata
        .annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(annotations, 256 * 1024));
    }
    errors
}

fn owner_errors(metadata: &Metadata<'_>, at: &ValuePath<'_>) -> Vec<FieldError> {
    // The API server leaves the index of the reference out.
    let at = at.field("ownerReferences");
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for owner in &metadata.owners {
        let field = |name: &str| at.field(name).bracketed();
        let version = owner.api_version.rsplit('/').next().unwrap_or_default();
        if version.is_empty() || owner.api_version.matches('/').count() > 1 {
            errors.push(FieldError::invalid(
                field("apiVersion"),
                owner.api_version,
                "version must not be empty",
            ));
        }
        for (name, value) in [("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)] {
            if value.is_empty() {
                errors.push(FieldError::invalid(field(name), "", "must not be empty"));
            }
        }
        if owner.api_version == "v1" && owner.kind == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(at.bracketed(), owner.whole.clone(), detail));
        }
        if owner.controller {
            let this = format!("{}/{}", owner.kind, owner.name);
            match &controller {
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {this}"
                    );
                    errors.push(FieldError::invalid(
                        at.bracketed(),
                        metadata.get("ownerReferences").clone(),
                        detail,
                    ));
                }
                None => controller = Some(this),
            }
        }
    }
    errors
}

fn finalizer_errors(metadata: &Metadata<'_>, at: &ValuePath<'_>) -> Vec<FieldError> {
    let here = at.field("finalizers").bracketed();
    let mut errors = Vec::new();
    for finalizer in &metadata.finalizers {
        let violations = names::key_violations(finalizer).into_iter();
        errors.extend(violations.map(|why| FieldError::invalid(here.clone(), *finalizer, why)));
    }
    let has = |name: &str| metadata.finalizers.contains(&name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(here, metadata.get("finalizers").clone(), detail));
    }
    errors
}

fn managed_errors(metadata: &Metadata<'_>, at: &ValuePath<'_>) -> Vec<FieldError> {
    let at = at.field("managedFields");
    let mut errors = Vec::new();
    for (index, entry) in metadata.managed.iter().enumerate() {
        let at = at.item(index);
        let field = |name: &str| at.field(name).bracketed();
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(FieldError::invalid(
                field("operation"),
                operation,
                "must be `Apply` or `Update`",
            ));
        }
        let kind = text("fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            errors.push(FieldError::invalid(field("fieldsType"), kind, "must be `FieldsV1`"));
        }
        if text("manager").len() > 128 {
            errors.push(FieldError::too_long(field("manager"), 128));
        }
        if text("subresource").len() > 256 {
            errors.push(FieldError::too_long(field("subresource"), 256));
        }
    }
    errors
}
