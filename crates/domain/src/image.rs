//! Images that a host writes to its disk or boots, and their validation.
//!
//! There are two rule sets: [`check_machine_image`] for a Metal3Machine, [`check_host_image`] for a BareMetalHost.
//! [`Image::resolve`] interprets a complete image. Nothing is downloaded, and the content behind a URL is not checked.
//!
//! Invariant: an error names the field and the cure. A message never contains a URL, which may contain credentials.

mod error;
mod registry;
mod unverified;

use std::fmt;

use crate::uri::{Uri, redacted_url};

pub use error::{ImageError, ImageField};
pub use registry::RegistryImage;
pub use unverified::Unverified;

/// URL schemes that Ironic can fetch an image from.
const SCHEMES: [&str; 5] = ["http", "https", "ftp", "gopher", "oci"];
/// The schemes of updates of the firmware: those of `download_to_temp` of Ironic's Redfish driver but `file`, which is a file of Ironic.
const FIRMWARE_SCHEMES: [&str; 3] = ["http", "https", "swift"];

/// The begin of the URL of an image in a registry, in any case.
const OCI: &str = "oci://";

/// The fields of an image as written in an object.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageFields<'a> {
    /// `url`.
    pub url: &'a str,
    /// `checksum`; absent and empty differ only when the whole image may be absent.
    pub checksum: Option<&'a str>,
    /// `checksumType`; empty counts as absent.
    pub checksum_type: Option<&'a str>,
    /// `format` of a host, `diskFormat` of a machine; empty counts as absent.
    pub disk_format: Option<&'a str>,
}

impl fmt::Debug for ImageFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageFields")
            .field("url", &Location(self.url))
            .field("checksum", &self.checksum.map(Location))
            .field("checksum_type", &self.checksum_type)
            .field("disk_format", &self.disk_format)
            .finish()
    }
}

/// A URL to fetch from. `Debug` hides user info and query, which may contain credentials.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Location<'a>(&'a str);

impl<'a> Location<'a> {
    /// The text as written, credentials included: only for fetching.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

impl fmt::Debug for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&redacted_url(self.0), f)
    }
}

impl<'a> ImageFields<'a> {
    fn checksum_text(&self) -> Option<&'a str> {
        self.checksum.filter(|text| !text.is_empty())
    }

    fn checksum_type_text(&self) -> Option<&'a str> {
        self.checksum_type.filter(|text| !text.is_empty())
    }

    fn is_live_iso(&self) -> bool {
        self.disk_format == Some(DiskFormat::LiveIso.name())
    }

    fn is_oci(&self) -> bool {
        self.behind_oci().is_some()
    }

    fn behind_oci(&self) -> Option<&'a str> {
        let (scheme, rest) = self.url.split_at_checked(OCI.len())?;
        scheme.eq_ignore_ascii_case(OCI).then_some(rest)
    }

    /// The image in a registry that is written to a disk.
    #[must_use]
    pub fn registry_image(&self) -> Option<RegistryImage<'a>> {
        self.behind_oci()
            .filter(|_| !self.is_live_iso())
            .and_then(RegistryImage::of)
    }
}

/// The format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskFormat {
    /// Bytes of the disk as they are.
    Raw,
    /// QEMU copy-on-write, version 2.
    Qcow2,
    /// VirtualBox.
    Vdi,
    /// VMware.
    Vmdk,
    /// Not a disk: an ISO that the host boots and runs from.
    LiveIso,
}

impl DiskFormat {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Raw, Self::Qcow2, Self::Vdi, Self::Vmdk, Self::LiveIso];

    /// The name in the API and in Ironic.
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

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// The algorithm of a checksum whose type is stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashAlgorithm {
    /// MD5.
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl HashAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 3] = [Self::Md5, Self::Sha256, Self::Sha512];

    /// The name in the API and in Ironic.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }
}

/// A checksum that goes with a disk image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum<'a> {
    /// A digest, or the URL of a file of digests.
    pub text: Location<'a>,
    /// The algorithm; with `None` Ironic derives it from the digest's length.
    pub algorithm: Option<HashAlgorithm>,
}

/// A complete image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image<'a> {
    /// Written to the disk, checked by its checksum.
    Disk {
        /// Where it is.
        url: Location<'a>,
        /// Its format; with `None` Ironic detects it.
        format: Option<DiskFormat>,
        /// Its checksum.
        checksum: Checksum<'a>,
    },
    /// Written to the disk, fetched from a registry and verified by the registry's digest.
    Oci {
        /// Where it is.
        url: Location<'a>,
        /// Its format; with `None` Ironic detects it.
        format: Option<DiskFormat>,
    },
    /// Booted and never written.
    LiveIso {
        /// Where it is.
        url: Location<'a>,
    },
}

/// Checks the image of a Metal3Machine or its template; empty when it is complete.
///
/// Any URL scheme is accepted; the host's check limits the schemes.
#[must_use]
pub fn check_machine_image(fields: &ImageFields<'_>) -> Vec<ImageError> {
    if fields.url.is_empty() && fields.checksum.is_none() {
        return vec![ImageError::Missing];
    }
    let mut errors = Vec::new();
    if fields.url.is_empty() {
        errors.push(ImageError::UrlMissing);
    } else if let Err(error) = Uri::parse_request(fields.url) {
        errors.push(ImageError::Url(error));
    }
    check_checksum(fields, &mut errors);
    errors
}

/// Checks a URL that Ironic or a management controller fetches from.
#[must_use]
pub fn check_url(url: &str) -> Option<ImageError> {
    match scheme(url) {
        Ok(scheme) if SCHEMES.contains(&scheme.as_str()) => None,
        Ok(scheme) => Some(ImageError::UrlScheme { scheme }),
        Err(error) => Some(error),
    }
}

/// Checks the URL of an update of the firmware. `swift` is for installations whose Ironic is set up for it.
#[must_use]
pub fn check_firmware_url(url: &str) -> Option<ImageError> {
    match scheme(url) {
        Ok(scheme) if FIRMWARE_SCHEMES.contains(&scheme.as_str()) => None,
        Ok(scheme) => Some(ImageError::FirmwareScheme { scheme }),
        Err(error) => Some(error),
    }
}

fn scheme(url: &str) -> Result<String, ImageError> {
    match Uri::parse_request(url) {
        Ok(uri) => Ok(uri.scheme),
        Err(_) if url.is_empty() => Err(ImageError::UrlMissing),
        Err(error) => Err(ImageError::Url(error)),
    }
}

/// Checks the image of a BareMetalHost; empty when it is complete.
///
/// As in the Go manager, a checksum is not parsed, and the checksum type of an image from a registry is ignored: hosts
/// with such an image must stay writable.
#[must_use]
pub fn check_host_image(fields: &ImageFields<'_>) -> Vec<ImageError> {
    let mut errors: Vec<ImageError> = check_url(fields.url).into_iter().collect();
    if fields.is_oci() {
        errors.extend(fields.checksum_text().map(|_| ImageError::ChecksumForbidden));
    } else if !fields.is_live_iso() {
        if fields.checksum_text().is_none() {
            errors.push(ImageError::ChecksumMissing);
        }
        errors.extend(checksum_algorithm(fields).err());
    }
    errors
}

impl<'a> Image<'a> {
    /// Interprets the image of a host.
    ///
    /// # Errors
    /// All errors, by the rules of [`check_host_image`] and the names of the disk formats.
    pub fn resolve(fields: &ImageFields<'a>) -> Result<Self, Vec<ImageError>> {
        let mut errors = check_host_image(fields);
        let url = Location(fields.url);
        let name = fields.disk_format.filter(|name| !name.is_empty());
        let format = name.and_then(DiskFormat::of_name);
        if let (Some(name), None) = (name, format) {
            errors.push(ImageError::DiskFormat { found: name.to_owned() });
        }
        // differs: `oci-user-rejected`. The Go manager sends such a URL.
        if fields.behind_oci().is_some_and(registry::has_user) {
            errors.push(ImageError::RegistryUser);
        }
        match (checksum_algorithm(fields), fields.checksum_text()) {
            _ if !errors.is_empty() => Err(errors),
            _ if format == Some(DiskFormat::LiveIso) => Ok(Self::LiveIso { url }),
            _ if fields.is_oci() => Ok(Self::Oci { url, format }),
            (Ok(algorithm), Some(text)) => Ok(Self::Disk {
                url,
                format,
                checksum: Checksum {
                    text: Location(text),
                    algorithm,
                },
            }),
            (Err(error), _) => Err(vec![error]),
            (_, None) => Err(vec![ImageError::ChecksumMissing]),
        }
    }
}

/// Checks the checksum: required, forbidden, or a valid URL when it begins like one.
fn check_checksum(fields: &ImageFields<'_>, errors: &mut Vec<ImageError>) {
    let checksum = fields.checksum_text();
    if fields.is_oci() {
        errors.extend(checksum.map(|_| ImageError::ChecksumForbidden));
        errors.extend(fields.checksum_type_text().map(|_| ImageError::ChecksumTypeForbidden));
        return;
    }
    if fields.is_live_iso() {
        return;
    }
    match checksum {
        None => errors.push(ImageError::ChecksumMissing),
        Some(text) if is_checksum_url(text) => {
            errors.extend(Uri::parse_request(text).err().map(ImageError::ChecksumUrl))
        }
        Some(_) => {}
    }
}

fn is_checksum_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// `None` when absent or `auto`: Ironic then derives the algorithm from the digest.
fn checksum_algorithm(fields: &ImageFields<'_>) -> Result<Option<HashAlgorithm>, ImageError> {
    match fields.checksum_type_text() {
        None | Some("auto") => Ok(None),
        Some(name) => HashAlgorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .map(Some)
            .ok_or_else(|| ImageError::ChecksumType { found: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
