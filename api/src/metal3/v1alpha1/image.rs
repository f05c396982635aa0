//! What is written to a host's disk, or booted instead of a disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image and how to tell that it arrived whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Where the image is: an `http`, `https`, `ftp`, `gopher` or `oci` URL.
    pub url: String,
    /// Digest of the image, or the URL of a file that lists it. Needed unless the format is `live-iso` or the URL is
    /// `oci`, where it must be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Algorithm of the digest. Absent or `auto`: told by the length of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum_type: Option<ChecksumType>,
    /// Format of the image. `live-iso` is booted and not written to disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DiskFormat>,
    /// Secret in the namespace of the object with the registry's login, as `docker` stores it. Used with `oci` URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_auth_secret_name: Option<String>,
}

/// Algorithm of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumType {
    /// MD5.
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// Whichever the digest's length says.
    #[default]
    Auto,
}

/// Format of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskFormat {
    /// The bytes of the disk.
    #[default]
    Raw,
    /// QEMU copy-on-write.
    Qcow2,
    /// VirtualBox.
    Vdi,
    /// VMware.
    Vmdk,
    /// An ISO that the host boots each time.
    #[serde(rename = "live-iso")]
    LiveIso,
}

/// A deployment that is not the writing of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomDeploy {
    /// Name of the deploy step that the agent runs. The agent must have it.
    pub method: String,
}
