//! Conversion of documents, as the API server sends them.
//!
//! Metadata is passed through as it is, but for the annotation: the API server refuses an answer that touches more.

use serde_json::{Map, Value, json};

use super::annotation::spec_of;
use super::error::ConversionError;
use super::pair::{Hub, down, up};
use crate::infrastructure::names::{CONVERSION_DATA_ANNOTATION, GROUP};
use crate::infrastructure::v1beta2 as hub;
use crate::kind::Kind;

/// A version of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// The older version.
    V1Beta1,
    /// The version that is stored.
    V1Beta2,
}

impl Version {
    /// Every version.
    pub const ALL: [Self; 2] = [Self::V1Beta1, Self::V1Beta2];

    /// The version as written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// The version an `apiVersion` names, if it is one of the group.
    #[must_use]
    pub fn from_api_version(text: &str) -> Option<Self> {
        let (group, version) = text.split_once('/')?;
        Self::ALL
            .into_iter()
            .find(|known| group == GROUP && version == known.name())
    }
}

/// Converts a document of any of the nine kinds.
///
/// A document that is of the version asked for is returned as it is.
///
/// # Errors
///
/// When the document is not of the group, is not an object of its kind, or holds a member that has no meaning in the
/// other version.
pub fn convert(document: &Value, to: Version) -> Result<Value, ConversionError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let from = Version::from_api_version(text("apiVersion")).ok_or_else(|| {
        ConversionError::new(
            "apiVersion",
            format!("{:?} is no version of {GROUP}", text("apiVersion")),
            "use v1beta1 or v1beta2 of that group",
        )
    })?;
    let Some(between) = by_kind(text("kind")) else {
        return Err(ConversionError::new(
            "kind",
            format!("{:?} is no kind of {GROUP}", text("kind")),
            "use one of the nine kinds of that group",
        ));
    };
    if from == to {
        return Ok(document.clone());
    }
    between(document, to)
}

type Between = fn(&Value, Version) -> Result<Value, ConversionError>;

fn by_kind(kind: &str) -> Option<Between> {
    Some(match kind {
        "Metal3Cluster" => between::<hub::Metal3Cluster>,
        "Metal3ClusterTemplate" => between::<hub::Metal3ClusterTemplate>,
        "Metal3Data" => between::<hub::Metal3Data>,
        "Metal3DataClaim" => between::<hub::Metal3DataClaim>,
        "Metal3DataTemplate" => between::<hub::Metal3DataTemplate>,
        "Metal3Machine" => between::<hub::Metal3Machine>,
        "Metal3MachineTemplate" => between::<hub::Metal3MachineTemplate>,
        "Metal3Remediation" => between::<hub::Metal3Remediation>,
        "Metal3RemediationTemplate" => between::<hub::Metal3RemediationTemplate>,
        _ => return None,
    })
}

fn between<H: Hub>(document: &Value, to: Version) -> Result<Value, ConversionError> {
    match to {
        Version::V1Beta1 => encode(&down::<H>(&decode(document)?)?, document),
        Version::V1Beta2 => encode(&up::<H>(&decode(document)?)?, document),
    }
}

/// Reads a document without its metadata, except for the annotation.
fn decode<K: Kind>(document: &Value) -> Result<K, ConversionError> {
    let mut bare = document.clone();
    let kept = document
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(CONVERSION_DATA_ANNOTATION));
    if let Value::Object(members) = &mut bare {
        let metadata = kept.map_or_else(
            || json!({}),
            |content| json!({ "annotations": { CONVERSION_DATA_ANNOTATION: content } }),
        );
        members.insert("metadata".into(), metadata);
    }
    serde_json::from_value(bare).map_err(|error| {
        let member = |name: &str| document.get(name).cloned().unwrap_or_else(|| json!({}));
        let field = if serde_json::from_value::<K::Spec>(member("spec")).is_err() {
            "spec"
        } else if serde_json::from_value::<K::Status>(member("status")).is_err() {
            "status"
        } else {
            "metadata"
        };
        ConversionError::new(
            field,
            error.to_string(),
            format!("write the object as the schema of {} says", K::group_version()),
        )
    })
}

/// Writes an object with the metadata of a document, except for the annotation.
fn encode<K: Kind>(object: &K, original: &Value) -> Result<Value, ConversionError> {
    let unwritable = |error: serde_json::Error| ConversionError::new("spec", error.to_string(), "report it");
    let mut written = serde_json::to_value(object).map_err(unwritable)?;
    if let Value::Object(members) = &mut written {
        members.entry("spec").or_insert(spec_of(object).map_err(unwritable)?);
        let content = object
            .meta()
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(CONVERSION_DATA_ANNOTATION));
        let metadata = original.get("metadata").cloned().unwrap_or_else(|| json!({}));
        members.insert("metadata".into(), annotated(metadata, content));
    }
    Ok(written)
}

/// Metadata with the annotation set or removed.
fn annotated(mut metadata: Value, content: Option<&String>) -> Value {
    let Value::Object(members) = &mut metadata else {
        return metadata;
    };
    let mut annotations = match members.remove("annotations") {
        Some(Value::Object(annotations)) => annotations,
        _ => Map::new(),
    };
    match content {
        Some(content) => annotations.insert(CONVERSION_DATA_ANNOTATION.into(), content.as_str().into()),
        None => annotations.remove(CONVERSION_DATA_ANNOTATION),
    };
    if !annotations.is_empty() {
        members.insert("annotations".into(), annotations.into());
    }
    metadata
}
