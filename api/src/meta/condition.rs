//! Conditions: the standard form, and the older form of Cluster API that `v1beta1` clients expect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// One aspect of an object's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the aspect, such as `Ready`. One entry per name.
    #[serde(rename = "type")]
    #[schemars(length(max = 316), regex(pattern = TYPE_PATTERN))]
    pub type_: String,
    /// Whether the aspect holds.
    pub status: ConditionStatus,
    /// Generation of the object that this entry was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// One word for programs: why the aspect is as it is.
    #[schemars(length(min = 1, max = 1024), regex(pattern = REASON_PATTERN))]
    pub reason: String,
    /// A sentence for people, with what to do about it. May be empty.
    #[schemars(length(max = 32768))]
    pub message: String,
}

const TYPE_PATTERN: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON_PATTERN: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known.
    #[default]
    Unknown,
}

/// A condition in the form of the first Cluster API versions, with a severity and without a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyCondition {
    /// Name of the aspect, such as `Ready`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 256))]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// `Error`, `Warning` or `Info`; set only when the aspect does not hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub severity: String,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// One word for programs: why the aspect is as it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 10240))]
    pub message: String,
}
