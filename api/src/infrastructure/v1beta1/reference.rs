//! References to pools and annotations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::SourceObject;

/// An object of any kind in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct TypedLocalReference {
    /// API group of the object. Absent: `ipam.metal3.io`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the object. Absent: `IPPool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    pub name: String,
}

/// An annotation whose value is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct AnnotationSource {
    /// The object that carries the annotation.
    pub object: SourceObject,
    /// Key of the annotation.
    pub annotation: String,
}
