//! What is wrong with an image, by field.

use thiserror::Error;

use crate::uri::UriError;

/// A field of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageField {
    /// The image as a whole.
    Image,
    /// `url`.
    Url,
    /// `checksum`.
    Checksum,
    /// `checksumType`.
    ChecksumType,
    /// `format` of a host, `diskFormat` of a machine.
    DiskFormat,
}

/// An error of an image, with the cure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// Neither URL nor checksum.
    #[error("there is no image; set image.url, or customDeploy.method")]
    Missing,
    /// No URL.
    #[error("the URL is missing; set it to where the image is")]
    UrlMissing,
    /// The URL cannot be read.
    #[error("the URL cannot be read: {0}")]
    Url(UriError),
    /// A part before an '@' in the URL of an image in a registry. Ironic takes that part for the registry.
    #[error(
        "an oci:// URL has no user; remove the part before '@', and name a Secret with the login in image.ociAuthSecretName"
    )]
    RegistryUser,
    /// A scheme that Ironic cannot fetch from.
    #[error("the URL's scheme {scheme:?} cannot be fetched; use http, https, ftp, gopher or oci")]
    UrlScheme {
        /// The scheme in lower case.
        scheme: String,
    },
    /// A scheme that Ironic cannot fetch an update of the firmware from.
    #[error("the URL's scheme {scheme:?} cannot be fetched for an update; use http or https")]
    FirmwareScheme {
        /// The scheme in lower case.
        scheme: String,
    },
    /// A disk image without a checksum.
    #[error("the checksum is missing; set it to the image's digest or to the URL of a file of digests")]
    ChecksumMissing,
    /// A checksum that begins like a URL but is none.
    #[error("the checksum begins like a URL but cannot be read as one: {0}")]
    ChecksumUrl(UriError),
    /// A checksum for an image from a registry.
    #[error("an oci:// image has no checksum of its own; remove it, the registry's digest is used")]
    ChecksumForbidden,
    /// A checksum type for an image from a registry.
    #[error("an oci:// image has no checksum of its own; remove its type")]
    ChecksumTypeForbidden,
    /// An unknown checksum type.
    #[error("the checksum type {found:?} is unknown; use md5, sha256, sha512 or auto")]
    ChecksumType {
        /// The value.
        found: String,
    },
    /// An unknown disk format.
    #[error("the disk format {found:?} is unknown; use raw, qcow2, vdi, vmdk or live-iso")]
    DiskFormat {
        /// The value.
        found: String,
    },
}

impl ImageError {
    /// The field that is wrong.
    #[must_use]
    pub const fn field(&self) -> ImageField {
        match self {
            Self::Missing => ImageField::Image,
            Self::UrlMissing
            | Self::Url(_)
            | Self::UrlScheme { .. }
            | Self::FirmwareScheme { .. }
            | Self::RegistryUser => ImageField::Url,
            Self::ChecksumMissing | Self::ChecksumUrl(_) | Self::ChecksumForbidden => ImageField::Checksum,
            Self::ChecksumTypeForbidden | Self::ChecksumType { .. } => ImageField::ChecksumType,
            Self::DiskFormat { .. } => ImageField::DiskFormat,
        }
    }

    /// Whether a required value is missing.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing | Self::UrlMissing | Self::ChecksumMissing)
    }

    /// Whether a forbidden value is present.
    #[must_use]
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::ChecksumForbidden | Self::ChecksumTypeForbidden)
    }
}
