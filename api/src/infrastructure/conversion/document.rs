//! Conversion of JSON documents sent by the API server.
//!
//! Metadata is passed through unchanged, except for the annotation: the API server rejects a response with other
//! changes.

use serde_json::{Map, Value, json};

use super::annotation::spec_of;
use super::error::ConversionError;
use super::pair::{Hub, hub_from_spoke, spoke_from_hub};
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

    /// The version name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// Parses an `apiVersion`; `None` for another group or an unknown version.
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
/// A document that is already of the requested version is returned unchanged.
///
/// # Errors
///
/// When the document is not of the group, is not an object of its kind, or has a member that cannot be expressed in the
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
    let Some(convert_kind) = by_kind(text("kind")) else {
        return Err(ConversionError::new(
            "kind",
            format!("{:?} is no kind of {GROUP}", text("kind")),
            "use one of the nine kinds of that group",
        ));
    };
    if from == to {
        return Ok(document.clone());
    }
    convert_kind(document, to)
}

type Converter = fn(&Value, Version) -> Result<Value, ConversionError>;

fn by_kind(kind: &str) -> Option<Converter> {
    Some(match kind {
        "Metal3Cluster" => convert_kind::<hub::Metal3Cluster>,
        "Metal3ClusterTemplate" => convert_kind::<hub::Metal3ClusterTemplate>,
        "Metal3Data" => convert_kind::<hub::Metal3Data>,
        "Metal3DataClaim" => convert_kind::<hub::Metal3DataClaim>,
        "Metal3DataTemplate" => convert_kind::<hub::Metal3DataTemplate>,
        "Metal3Machine" => convert_kind::<hub::Metal3Machine>,
        "Metal3MachineTemplate" => convert_kind::<hub::Metal3MachineTemplate>,
        "Metal3Remediation" => convert_kind::<hub::Metal3Remediation>,
        "Metal3RemediationTemplate" => convert_kind::<hub::Metal3RemediationTemplate>,
        _ => return None,
    })
}

fn convert_kind<H: Hub>(document: &Value, to: Version) -> Result<Value, ConversionError> {
    match to {
        Version::V1Beta1 => encode(&spoke_from_hub::<H>(&decode(document)?)?, document),
        Version::V1Beta2 => encode(&hub_from_spoke::<H>(&decode(document)?)?, document),
    }
}

/// Decodes a document without its metadata, except for the annotation.
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
    K::from_document(&bare).map_err(|error| {
        let place = error.path().to_string();
        let member = place.split(['.', '[']).next().unwrap_or_default();
        let members = ["spec", "status"];
        let field = members.into_iter().find(|one| *one == member).unwrap_or("metadata");
        ConversionError::new(
            field,
            error.inner().to_string(),
            format!("write the object as the schema of {} says", K::group_version()),
        )
    })
}

/// Encodes an object with the metadata of the original document, except for the annotation.
fn encode<K: Kind>(object: &K, original: &Value) -> Result<Value, ConversionError> {
    let unencodable = |error: serde_json::Error| ConversionError::new("spec", error.to_string(), "report it");
    let mut written = serde_json::to_value(object).map_err(unencodable)?;
    if let Value::Object(members) = &mut written {
        members.entry("spec").or_insert(spec_of(object).map_err(unencodable)?);
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

/// Returns the metadata with the annotation set or removed.
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
