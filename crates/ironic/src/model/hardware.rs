//! BIOS settings, firmware components and virtual media of a node.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::{blank_is_none, null_is_default};

/// One BIOS setting. Fields other than `name` and `value` are returned with `detail` only, and not by every driver.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BiosSetting {
    /// Its name.
    pub name: String,
    /// Its value; a string in every known driver.
    #[serde(default)]
    pub value: Value,
    /// `Enumeration`, `Integer`, `String`, `Boolean`, `Password`.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub attribute_type: Option<String>,
    /// The values of an enumeration.
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
    /// Whether it is read-only.
    #[serde(default)]
    pub read_only: Option<bool>,
    /// Whether it identifies the machine and must not be copied.
    #[serde(default)]
    pub unique: Option<bool>,
}

/// One component with firmware.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FirmwareComponent {
    /// `bios`, `bmc`, `nic:…`.
    pub component: String,
    /// The version when the node was registered.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub initial_version: Option<String>,
    /// The current version.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub current_version: Option<String>,
    /// The last requested version.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub last_version_flashed: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<DateTime<Utc>>,
}

/// An attached image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VirtualMedia {
    /// The drive types it can emulate.
    #[serde(default, deserialize_with = "null_is_default")]
    pub media_types: Vec<String>,
    /// Whether an image is inserted.
    #[serde(default, deserialize_with = "null_is_default")]
    pub inserted: bool,
    /// The URL of the image.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub image: Option<String>,
}
