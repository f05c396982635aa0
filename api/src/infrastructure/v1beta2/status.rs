//! Parts of a status that clusters and machines share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::LegacyCondition;

/// Initialization state for Cluster API. It is read until it is true, and never again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct Initialization {
    /// True when the infrastructure is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// Status in the form of older versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeprecatedStatus {
    /// Status in the form of `v1beta1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<LegacyStatus>,
}

/// The status as `v1beta1` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyStatus {
    /// Conditions in the older form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
    /// One word: what made progress impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// A sentence: what made progress impossible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}
