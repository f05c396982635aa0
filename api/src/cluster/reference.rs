//! References without a version, and the older part of a status.

use serde::{Deserialize, Serialize};

use crate::meta::LegacyCondition;

/// An object in the same namespace. The version is the one its CRD names for the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContractReference {
    /// API group of the object.
    pub api_group: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

/// Status in the form of older versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeprecatedStatus {
    /// Status in the form of `v1beta1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<LegacyStatus>,
}

/// The status as `v1beta1` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyStatus {
    /// Conditions in the older form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
}
