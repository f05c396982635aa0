//! A parsed CustomResourceDefinition: names, versions, schemas, subresources, printer columns.
//!
//! It is parsed from the manifest as JSON, and validates the objects of a version as the API server does on create,
//! update and status update: type, metadata, schema, embedded resources, lists, rules, in this order. It stores nothing
//! and sets no members; `status` and `generation` are left to the server.

mod read;

use serde_json::Value;

use crate::error::{Cause, FieldError};
use crate::model::Schema;
use crate::object_meta::{Scope, metadata_errors, metadata_update_errors};
use crate::parse::SchemaError;
use crate::validate::Checker;
use crate::value_path::ValuePath;
use crate::{lists, rules};

/// Why a manifest is no valid CustomResourceDefinition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CrdError {
    /// A field is missing or of the wrong shape.
    #[error("{field}: must be {expected}")]
    Malformed {
        /// The field, from the root of the manifest.
        field: String,
        /// What is allowed there.
        expected: String,
    },
    /// The schema of a version cannot be used.
    #[error("version {version}: {problem}")]
    Schema {
        /// The version.
        version: String,
        /// The problem, in its schema.
        problem: SchemaError,
    },
}

/// One kind, in all its versions.
#[derive(Debug, Clone)]
pub struct CustomResource {
    /// The API group.
    pub group: String,
    /// The kind of one object.
    pub kind: String,
    /// The kind of a list of them.
    pub list_kind: String,
    /// The name in URLs.
    pub plural: String,
    /// The name of one object on the command line.
    pub singular: String,
    /// Abbreviations for the command line.
    pub short_names: Vec<String>,
    /// The groups of kinds, such as `cluster-api`, that this one is listed with.
    pub categories: Vec<String>,
    /// Whether objects are namespaced.
    pub scope: Scope,
    /// The versions, in the order of the manifest.
    pub versions: Vec<Version>,
    /// How objects are converted between versions.
    pub conversion: Conversion,
}

/// One version of a kind.
#[derive(Debug, Clone)]
pub struct Version {
    /// `v1beta1`, for instance.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether requests in it return a warning.
    pub deprecated: bool,
    /// The text of that warning; absent for the server's default.
    pub deprecation_warning: Option<String>,
    /// The schema of its objects.
    pub schema: Schema,
    /// Whether `status` is a subresource.
    pub status: bool,
    /// The paths of the `scale` subresource.
    pub scale: Option<Scale>,
    /// The columns of a table of objects.
    pub columns: Vec<Column>,
    /// JSON paths of the fields for field selectors, in addition to name and namespace.
    pub selectable_fields: Vec<String>,
}

/// The JSON paths behind the `scale` subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The desired number.
    pub spec_replicas: String,
    /// The actual number.
    pub status_replicas: String,
    /// The selector of the counted objects.
    pub label_selector: Option<String>,
}

/// One column of a table of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The type of its values: `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: String,
    /// The format of its values, may be empty.
    pub format: String,
    /// The description, may be empty.
    pub description: String,
    /// The path of its value in an object.
    pub json_path: String,
    /// Zero: always shown; more: only in wide tables.
    pub priority: i64,
}

/// How objects are converted between versions.
#[derive(Debug, Clone, PartialEq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook converts.
    Webhook {
        /// Its address: `service` or `url`, and `caBundle`, as in the manifest.
        client_config: Value,
        /// The supported versions of `ConversionReview`.
        review_versions: Vec<String>,
    },
}

impl CustomResource {
    /// Reads a manifest of `apiextensions.k8s.io/v1` and compiles the schemas of its versions.
    ///
    /// # Errors
    /// [`CrdError`] names the field and the expected content.
    pub fn parse(manifest: &Value) -> Result<CustomResource, CrdError> {
        read::custom_resource(manifest)
    }

    /// The version of that name, served or not.
    #[must_use]
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The errors for which the API server rejects this definition, with its texts and fields. The list is not
    /// complete.
    #[must_use]
    pub fn violations(&self) -> Vec<FieldError> {
        let root = ValuePath::Root.field("spec");
        let versions = root.field("versions");
        let mut found = Vec::new();
        for (index, version) in self.versions.iter().enumerate() {
            let at = versions.item(index);
            let schema = at.field("schema");
            found.extend(version.schema.violations_at(&schema.field("openAPIV3Schema")));
            if self.versions.iter().take(index).any(|other| other.name == version.name) {
                found.push(FieldError::duplicate(
                    at.field("name").bracketed(),
                    version.name.as_str(),
                ));
            }
        }
        if self.versions.iter().filter(|version| version.storage).count() != 1 {
            let detail = "must have exactly one version marked as storage version";
            let names: Vec<&str> = self.versions.iter().map(|version| version.name.as_str()).collect();
            found.push(FieldError::invalid(versions.bracketed(), names, detail));
        }
        found
    }

    /// Validates an object to create in a version.
    #[must_use]
    pub fn create_errors(&self, version: &Version, object: &Value) -> Vec<FieldError> {
        let mut errors = self.type_errors(version, object);
        if errors.is_empty() {
            errors.extend(metadata_errors(object, self.scope));
            version.schema.check(object, None, &mut errors);
        }
        errors
    }

    /// Validates an object that replaces `old`, both in that version.
    #[must_use]
    pub fn update_errors(&self, version: &Version, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.type_errors(version, object);
        if errors.is_empty() {
            errors.extend(metadata_update_errors(object, old));
            version.schema.check(object, Some(old), &mut errors);
        }
        errors
    }

    /// Validates a new status. `object` is the old object with the new status: only the status is checked against the
    /// schema, but rules run over the whole object.
    #[must_use]
    pub fn status_errors(&self, version: &Version, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.type_errors(version, object);
        if errors.is_empty() {
            errors.extend(metadata_update_errors(object, old));
            if let (Some(schema), Some(status)) = (version.schema.property("status"), object.get("status")) {
                errors.extend(Checker { prefix: "status" }.check(schema, status, old.get("status")));
            }
            lists::new_duplicates(&version.schema, object, old, &mut errors);
            rules::check(&version.schema, object, Some(old), &mut errors);
        }
        errors
    }

    fn type_errors(&self, version: &Version, object: &Value) -> Vec<FieldError> {
        let api_version = format!("{}/{}", self.group, version.name);
        let mut errors = Vec::new();
        for (field, wanted) in [("kind", self.kind.as_str()), ("apiVersion", api_version.as_str())] {
            let actual = object.get(field).and_then(Value::as_str).unwrap_or_default();
            if actual != wanted {
                let detail = format!("must be {wanted}");
                errors.push(FieldError::new(field, Cause::Invalid, Some(actual.into()), detail));
            }
        }
        errors
    }
}
