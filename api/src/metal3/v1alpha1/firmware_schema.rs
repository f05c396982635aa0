//! Which firmware settings a model of machine has. It has no status: the record is the spec.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;

kind! {
    /// The firmware settings of one model of machine, and the values each may take. Hosts of the same model share one.
    pub struct FirmwareSchema in "metal3.io" / "v1alpha1" as "firmwareschemas" {
        spec: FirmwareSchemaSpec,
    }
}

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirmwareSchemaSpec {
    /// Vendor of the machines this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_vendor: Option<String>,
    /// Model of the machines this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_model: Option<String>,
    /// What each setting accepts, by its name.
    pub schema: BTreeMap<String, SettingSchema>,
}

/// What a setting accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingSchema {
    /// Type of the value. Absent: any value is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute_type: Option<AttributeType>,
    /// Values of an enumeration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowable_values: Vec<String>,
    /// Smallest integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<i64>,
    /// Largest integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper_bound: Option<i64>,
    /// Fewest bytes of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    /// Most bytes of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    /// Whether the setting can only be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether the value belongs to one machine, as a serial number does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<bool>,
}

/// Type of a setting's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AttributeType {
    /// One of a list of texts.
    Enumeration,
    /// Text.
    #[default]
    String,
    /// Number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A secret. It is neither shown nor set.
    Password,
}
