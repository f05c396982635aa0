//! The annotation with the stored object. Its format is that of Cluster API's helpers: the object without its metadata,
//! `spec` and `status` present even if empty.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use super::error::ConversionError;
use crate::infrastructure::names::CONVERSION_DATA_ANNOTATION;
use crate::infrastructure::v1beta2::Metal3MachineTemplate;
use crate::kind::Kind;

/// Renders the annotation of a stored object.
pub(super) fn render<K: Kind>(stored: &K) -> Result<String, ConversionError> {
    let mut document = serde_json::to_value(stored).map_err(invalid_annotation)?;
    if let Value::Object(members) = &mut document {
        members.remove("metadata");
        members
            .entry("spec")
            .or_insert(spec_of(stored).map_err(invalid_annotation)?);
        // Of the Go managers' kinds, templates of machines have no status.
        if K::HAS_STATUS && K::KIND != Metal3MachineTemplate::KIND {
            members.entry("status").or_insert_with(|| Map::new().into());
        }
    }
    Ok(document.to_string())
}

/// Encodes the spec even when it is empty.
pub(super) fn spec_of<K: Kind>(object: &K) -> serde_json::Result<Value> {
    serde_json::to_value(object.spec())
}

/// Parses the annotation.
pub(super) fn parse<K: Kind>(text: &str) -> Result<K, ConversionError> {
    let members: Map<String, Value> = serde_json::from_str(text).map_err(invalid_annotation)?;
    serde_json::from_value(members.into()).map_err(invalid_annotation)
}

/// The error for an annotation that holds no object of the kind.
pub(super) fn invalid_annotation(error: serde_json::Error) -> ConversionError {
    ConversionError::new(
        format!("metadata.annotations[{CONVERSION_DATA_ANNOTATION}]"),
        format!("not a stored object of this kind: {error}"),
        "remove the annotation; members this version does not have then go back to their defaults",
    )
}

/// Sets the annotation.
pub(super) fn attach(metadata: &mut ObjectMeta, content: String) {
    metadata
        .annotations
        .get_or_insert_default()
        .insert(CONVERSION_DATA_ANNOTATION.into(), content);
}

/// Removes the annotation and returns its content.
pub(super) fn detach(metadata: &mut ObjectMeta) -> Option<String> {
    let annotations = metadata.annotations.as_mut()?;
    let content = annotations.remove(CONVERSION_DATA_ANNOTATION);
    if annotations.is_empty() {
        metadata.annotations = None;
    }
    content
}
