//! What is written to the disk of a host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::{ChecksumType, DiskFormat};

/// The image that is written to the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Location of the image, which the host must be able to reach.
    pub url: String,
    /// Digest of the image, or the location of a file with digests. Required except for live images and images in a
    /// container registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Algorithm of the digest. Absent: derived from its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum_type: Option<ChecksumType>,
    /// Format of the image. `live-iso` is booted instead of written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DiskFormat>,
}

/// A deploy step of one's own, run by the agent on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomDeploy {
    /// Name of the step, as the agent's hardware manager declares it.
    pub method: String,
}
