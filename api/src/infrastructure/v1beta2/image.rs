//! What is written to the disk of a host.

use metal3_domain::image::ImageFields;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::infrastructure::{ChecksumType, DiskFormat};

/// The image that is written to the disk.
///
/// The schema requires a location, decoding does not: the Go manager has stored images without one, next to a deploy
/// step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "The image that is written to the disk.", extend("required" = ["url"]))]
pub struct Image {
    /// Location of the image, which the host must be able to reach.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512), extend("x-format" = "uri"))]
    pub url: String,
    /// Digest of the image, or the location of a file with digests. Required except for live images and images in a
    /// container registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub checksum: Option<String>,
    /// Algorithm of the digest. Absent: derived from its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum_type: Option<ChecksumType>,
    /// Format of the image. `live-iso` is booted instead of written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_format: Option<DiskFormat>,
}

impl Image {
    /// The members, for the rules that images of hosts and machines share.
    #[must_use]
    pub fn fields(&self) -> ImageFields<'_> {
        ImageFields {
            url: &self.url,
            checksum: self.checksum.as_deref(),
            checksum_type: self.checksum_type.map(ChecksumType::as_str),
            disk_format: self.disk_format.map(DiskFormat::as_str),
        }
    }
}

/// A deploy step of one's own, run by the agent on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CustomDeploy {
    /// Name of the step, as the agent's hardware manager declares it.
    #[schemars(length(min = 1, max = 512))]
    pub method: String,
}
