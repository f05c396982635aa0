//! What is kept when Ironic cleans a machine, and when it is cleaned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a machine is cleaned, beyond `automatedCleaningMode`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCleaning {
    /// Disks that are never erased, and that no image is written to. All others are. The condition `CleaningPlan` names both.
    /// Needs `rootDeviceHints` that name another disk, and a machine that its agent inspected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub keep_disks: Vec<KeptDisk>,
    /// When the machine is cleaned. Absent: `always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<CleaningTime>,
}

/// A disk that is kept, by what its partitions have in common with it. All that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptDisk {
    /// Serial number, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// World wide name, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn: Option<String>,
    /// World wide name with the vendor's extension, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwn_with_extension: Option<String>,
}

impl KeptDisk {
    /// The texts that name it, with their members. Empty ones name nothing.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts = [
            ("serialNumber", &self.serial_number),
            ("wwn", &self.wwn),
            ("wwnWithExtension", &self.wwn_with_extension),
        ];
        texts
            .into_iter()
            .filter_map(|(member, text)| Some((member, text.as_deref()?)))
            .filter(|(_, text)| !text.is_empty())
    }

    /// Whether Ironic reads a text as it is: it has operators, such as `<or>`.
    #[must_use]
    pub fn is_plain(text: &str) -> bool {
        let is_special = |c: char| c.is_control() || matches!(c, '<' | '>' | '=');
        !text.trim().is_empty() && !text.contains(is_special)
    }

    /// Whether Ironic takes two texts for the same.
    #[must_use]
    pub fn is_same(one: &str, other: &str) -> bool {
        one.trim().to_lowercase() == other.trim().to_lowercase()
    }
}

/// When a machine is cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CleaningTime {
    /// Before its first deployment and after each one.
    #[default]
    Always,
    /// Before its first deployment. A deployment that failed or was cancelled counts.
    First,
}
