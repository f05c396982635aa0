//! The image as keys of `instance_info`.
//!
//! An image is written to a disk, or it is an ISO that the machine boots each time. The keys of the other kind are
//! removed.

use std::fmt;

use metal3_api::metal3::v1alpha1::Image;
use metal3_domain::image::{self, DiskFormat, HashAlgorithm};
use metal3_ironic::model::node::Node;
use ring::digest;
use serde_json::Value;

use super::invalid_host::InvalidHost;
use super::masked::{Match, compare};

const SOURCE: &str = "image_source";
const FORMAT: &str = "image_disk_format";
const CHECKSUM: &str = "image_checksum";
const ALGORITHM: &str = "image_os_hash_algo";
const DIGEST: &str = "image_os_hash_value";
const ISO: &str = "boot_iso";
/// What was ordered, as a digest: Ironic replaces the source by the target of a redirect, and with
/// `image_download_source=local` also digest and format.
// differs: `host-image-ordered`. The Go manager does not compare what was deployed.
const ORDERED: &str = "metal3_image";

/// A key of `instance_info` and its desired value. `None`: absent.
type Key = (&'static str, Option<Value>);

/// A deployable image. `Debug` shows no URL, since it may contain credentials.
#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// An image written to the disk.
    Disk {
        /// The URL.
        url: String,
        /// The format; `None`: detected by Ironic.
        format: Option<DiskFormat>,
        /// A digest, or the URL of a file with digests.
        checksum: String,
        /// The algorithm of the digest; `None`: detected by Ironic from the length.
        algorithm: Option<HashAlgorithm>,
    },
    /// An image from a registry, written to the disk. The registry's digest verifies it.
    Registry {
        /// The URL.
        url: String,
        /// The format; `None`: detected by Ironic.
        format: Option<DiskFormat>,
    },
    /// An ISO booted each time, never written.
    LiveIso {
        /// The URL.
        url: String,
    },
}

impl Payload {
    /// Translates an image.
    ///
    /// # Errors
    /// When it is incomplete, or has a control character.
    pub fn of(image: &Image) -> Result<Self, InvalidHost> {
        let first = |faults: Vec<image::ImageError>| {
            let fault = faults.into_iter().next().unwrap_or(image::ImageError::Missing);
            InvalidHost::Image(fault)
        };
        let plain = |text: &str, field: &str| match text.chars().any(char::is_control) {
            true => Err(InvalidHost::ControlCharacter {
                field: field.to_owned(),
            }),
            false => Ok(text.to_owned()),
        };
        match image.resolve().map_err(first)? {
            image::Image::Disk { url, format, checksum } => Ok(Self::Disk {
                url: plain(url.as_str(), "spec.image.url")?,
                format,
                checksum: plain(checksum.text.as_str(), "spec.image.checksum")?,
                algorithm: checksum.algorithm,
            }),
            image::Image::LiveIso { url } => Ok(Self::LiveIso {
                url: plain(url.as_str(), "spec.image.url")?,
            }),
            image::Image::Oci { url, format } => Ok(Self::Registry {
                url: with_scheme_for_ironic(&plain(url.as_str(), "spec.image.url")?),
                format,
            }),
        }
    }

    /// Every key of `instance_info` that depends on the image, for an instance.
    pub(super) fn ordered_as(&self, instance: &str) -> impl Iterator<Item = Key> {
        let ordered = (ORDERED, Some(self.digest(instance).into()));
        self.instance_info().into_iter().chain([ordered])
    }

    /// Identifies the image and the instance that it was ordered for.
    pub(crate) fn digest(&self, instance: &str) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        let (url, checksum, algorithm) = match self {
            Self::Disk {
                url,
                checksum,
                algorithm,
                ..
            } => (url.as_str(), checksum.as_str(), *algorithm),
            Self::Registry { url, .. } | Self::LiveIso { url } => (url.as_str(), "", None),
        };
        let algorithm = algorithm.map_or("", HashAlgorithm::name);
        for part in [&instance.to_ascii_lowercase(), url, checksum, algorithm] {
            context.update(part.as_bytes());
            // No part contains it.
            context.update(b"\n");
        }
        let digest = context.finish();
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn instance_info(&self) -> [Key; 6] {
        let text = |text: &str| Some(Value::from(text));
        match self {
            Self::Disk {
                url,
                format,
                checksum,
                algorithm,
            } => {
                let stated = algorithm.is_some();
                [
                    (SOURCE, text(url)),
                    (FORMAT, format.and_then(|format| text(format.name()))),
                    (CHECKSUM, text(checksum).filter(|_| !stated)),
                    (ALGORITHM, algorithm.and_then(|algorithm| text(algorithm.name()))),
                    (DIGEST, text(checksum).filter(|_| stated)),
                    (ISO, None),
                ]
            }
            Self::Registry { url, format } => [
                (SOURCE, text(url)),
                (FORMAT, format.and_then(|format| text(format.name()))),
                (CHECKSUM, None),
                (ALGORITHM, None),
                (DIGEST, None),
                (ISO, None),
            ],
            Self::LiveIso { url } => [
                (SOURCE, None),
                (FORMAT, None),
                (CHECKSUM, None),
                (ALGORITHM, None),
                (DIGEST, None),
                (ISO, text(url)),
            ],
        }
    }

    /// Whether the node was last configured with this image. An order recorded for the node's instance decides; a node
    /// without one was configured by another manager. Then the format does not count, and of an image in a registry and of a
    /// live ISO the URL alone: Ironic records the digest that it found in the registry.
    #[must_use]
    pub fn is_written_on(&self, node: &Node) -> bool {
        if let (Some(Value::String(ordered)), Some(instance)) = (node.instance_info.get(ORDERED), &node.instance_uuid) {
            return *ordered == self.digest(instance);
        }
        if self.is_written_with_md5(node) {
            return true;
        }
        let identifying: &[&str] = match self {
            Self::Disk { .. } => &[SOURCE, CHECKSUM, ALGORITHM, DIGEST],
            Self::Registry { .. } => &[SOURCE],
            Self::LiveIso { .. } => &[ISO],
        };
        self.instance_info()
            .into_iter()
            .filter(|(key, _)| identifying.contains(key))
            .all(|(key, wanted)| {
                let found = node.instance_info.get(key);
                match wanted {
                    Some(wanted) => compare(found, &wanted) != Match::Different,
                    None => found.is_none(),
                }
            })
    }

    /// Whether a Go manager up to 0.9 configured the node with this image: it took an unset algorithm for MD5.
    fn is_written_with_md5(&self, node: &Node) -> bool {
        let Self::Disk {
            url,
            checksum,
            algorithm: None,
            ..
        } = self
        else {
            return false;
        };
        let is = |key: &str, wanted: &str| compare(node.instance_info.get(key), &wanted.into()) != Match::Different;
        node.instance_info.get(CHECKSUM).is_none() && is(SOURCE, url) && is(ALGORITHM, "md5") && is(DIGEST, checksum)
    }

    /// Whether it is a live ISO.
    #[must_use]
    pub const fn is_live_iso(&self) -> bool {
        matches!(self, Self::LiveIso { .. })
    }

    /// Whether it comes from a registry.
    pub(super) const fn is_of_registry(&self) -> bool {
        matches!(self, Self::Registry { .. })
    }
}

/// The URL of an image in a registry. Ironic takes one for it only with its scheme in lower case.
// differs: `oci-scheme-in-lower-case`. The Go manager sends it as written.
fn with_scheme_for_ironic(url: &str) -> String {
    match url.split_once(':') {
        Some((scheme, rest)) => format!("{}:{rest}", scheme.to_ascii_lowercase()),
        None => url.to_owned(),
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk { .. } => "Disk(not shown)",
            Self::Registry { .. } => "Registry(not shown)",
            Self::LiveIso { .. } => "LiveIso(not shown)",
        })
    }
}
