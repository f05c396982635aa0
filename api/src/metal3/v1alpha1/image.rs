//! What is written to a host's disk, or booted instead of a disk.

use metal3_domain::image::{self, ImageError, ImageFields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image and the digest to verify it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Where the image is: an `http`, `https`, `ftp`, `gopher` or `oci` URL.
    pub url: String,
    /// Digest of the image, or the URL of a file that lists it. Needed unless the format is `live-iso` or the URL is
    /// `oci`, where it must be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Algorithm of the digest. Absent or `auto`: derived from the length of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum_type: Option<ChecksumType>,
    /// Format of the image. `live-iso` is booted and not written to disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DiskFormat>,
    /// Secret in the namespace of the object with the registry's login, as `docker` stores it. Used with `oci` URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_auth_secret_name: Option<String>,
}

impl Image {
    /// The members, for the rules that images of hosts and machines share.
    #[must_use]
    pub fn fields(&self) -> ImageFields<'_> {
        ImageFields {
            url: &self.url,
            checksum: self.checksum.as_deref(),
            checksum_type: self.checksum_type.map(ChecksumType::name),
            disk_format: self.format.map(DiskFormat::name),
        }
    }

    /// What a host has to do with the image.
    ///
    /// # Errors
    /// Everything that keeps it from being complete.
    pub fn resolve(&self) -> Result<image::Image<'_>, Vec<ImageError>> {
        image::Image::resolve(&self.fields())
    }
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
    /// Derived from the digest's length.
    #[default]
    Auto,
}

impl ChecksumType {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Auto => "auto",
        }
    }
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

impl DiskFormat {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
            Self::Vdi => "vdi",
            Self::Vmdk => "vmdk",
            Self::LiveIso => "live-iso",
        }
    }
}

/// A deployment that is not the writing of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomDeploy {
    /// Name of the deploy step that the agent runs. The agent must have it.
    pub method: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_those_of_the_wire() {
        for name in ["md5", "sha256", "sha512", "auto"] {
            assert_eq!(
                serde_json::from_value::<ChecksumType>(json!(name)).unwrap().name(),
                name
            );
        }
        for name in ["raw", "qcow2", "vdi", "vmdk", "live-iso"] {
            assert_eq!(serde_json::from_value::<DiskFormat>(json!(name)).unwrap().name(), name);
        }
    }

    #[test]
    fn image_without_a_checksum_is_complete_only_if_it_is_booted_or_comes_from_a_registry() {
        let image = |url: &str, format| Image {
            url: url.to_owned(),
            format,
            ..Image::default()
        };
        assert_eq!(
            image("http://192.0.2.9/os.raw", Some(DiskFormat::Raw)).resolve(),
            Err(vec![ImageError::ChecksumMissing])
        );
        assert!(matches!(
            image("http://192.0.2.9/os.iso", Some(DiskFormat::LiveIso)).resolve(),
            Ok(image::Image::LiveIso { .. })
        ));
        assert!(matches!(
            image("oci://192.0.2.9/os", None).resolve(),
            Ok(image::Image::Oci { .. })
        ));
    }
}
