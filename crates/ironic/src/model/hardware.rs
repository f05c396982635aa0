//! BIOS settings, firmware components and virtual media of a node.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::{blank_is_none, null_is_default};

/// One BIOS setting. The fields behind `value` come with `detail` only, and not from every driver.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BiosSetting {
    /// Its name.
    pub name: String,
    /// Its value; text in every driver that we know, yet a number would do no harm.
    #[serde(default)]
    pub value: Value,
    /// `Enumeration`, `Integer`, `String`, `Boolean`, `Password`.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub attribute_type: Option<String>,
    /// What an enumeration allows.
    #[serde(default, deserialize_with = "null_is_default")]
    pub allowable_values: Vec<Value>,
    /// The smallest integer.
    #[serde(default)]
    pub lower_bound: Option<i64>,
    /// The largest integer.
    #[serde(default)]
    pub upper_bound: Option<i64>,
    /// The shortest text.
    #[serde(default)]
    pub min_length: Option<i64>,
    /// The longest text.
    #[serde(default)]
    pub max_length: Option<i64>,
    /// Whether it cannot be set.
    #[serde(default)]
    pub read_only: Option<bool>,
    /// Whether it identifies the machine and is not to be copied.
    #[serde(default)]
    pub unique: Option<bool>,
}

/// One part with firmware of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FirmwareComponent {
    /// `bios`, `bmc`, `nic:…`.
    pub component: String,
    /// The version at first sight.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub initial_version: Option<String>,
    /// The version now.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub current_version: Option<String>,
    /// The version that was last asked for.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub last_version_flashed: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<DateTime<Utc>>,
}

/// An attached image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VirtualMedia {
    /// The kinds of drive it can be.
    #[serde(default, deserialize_with = "null_is_default")]
    pub media_types: Vec<String>,
    /// Whether an image is in it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub inserted: bool,
    /// The image's address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub image: Option<String>,
}
