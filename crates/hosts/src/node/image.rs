//! The image as keys of `instance_info`.
//!
//! An image is written to a disk, or it is an ISO that the machine boots each time. The keys of the other kind are
//! removed.

use std::fmt;

use metal3_api::metal3::v1alpha1::Image;
use metal3_domain::image::{self, DiskFormat, HashAlgorithm};
use metal3_ironic::model::node::Node;
use serde_json::Value;

use super::invalid_host::InvalidHost;
use super::masked::{Match, compare};

const SOURCE: &str = "image_source";
const FORMAT: &str = "image_disk_format";
const CHECKSUM: &str = "image_checksum";
const ALGORITHM: &str = "image_os_hash_algo";
const DIGEST: &str = "image_os_hash_value";
const ISO: &str = "boot_iso";
/// What identifies an image with a checksum.
const CHECKED: [&str; 4] = [SOURCE, CHECKSUM, ALGORITHM, DIGEST];
/// The format that makes an image a live ISO.
const LIVE_ISO: &str = "live-iso";

/// A key of `instance_info` and its desired value. `None`: absent.
pub(super) type Key = (&'static str, Option<Value>);

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

    /// Every key of `instance_info` that an image has.
    pub(super) const KEYS: [&str; 6] = [SOURCE, FORMAT, CHECKSUM, ALGORITHM, DIGEST, ISO];

    /// URL, checksum and algorithm, empty where there is none.
    pub(super) fn identity(&self) -> [&str; 3] {
        match self {
            Self::Disk {
                url,
                checksum,
                algorithm,
                ..
            } => [url, checksum, algorithm.map_or("", HashAlgorithm::name)],
            Self::Registry { url, .. } | Self::LiveIso { url } => [url, "", ""],
        }
    }

    /// Every key of `instance_info` for a deploy step that uses the image. Its checksum is a digest of the algorithm that is
    /// stated, or of an empty one, as with the Go manager; a live ISO is a source as well.
    pub(super) fn instance_info_for_step(&self) -> [Key; 6] {
        let text = |text: &str| Some(Value::from(text));
        match self {
            Self::Disk {
                url,
                format,
                checksum,
                algorithm,
            } => [
                (SOURCE, text(url)),
                (FORMAT, format.and_then(|format| text(format.name()))),
                (CHECKSUM, None),
                (ALGORITHM, text(algorithm.map_or("", HashAlgorithm::name))),
                (DIGEST, text(checksum)),
                (ISO, None),
            ],
            Self::LiveIso { url } => [
                (SOURCE, text(url)),
                (FORMAT, text(LIVE_ISO)),
                (CHECKSUM, None),
                (ALGORITHM, None),
                (DIGEST, None),
                (ISO, None),
            ],
            Self::Registry { .. } => self.instance_info(),
        }
    }

    /// Every key of `instance_info` for an image that Ironic writes or boots.
    pub(super) fn instance_info(&self) -> [Key; 6] {
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

    /// Whether another manager configured the node with this image. The format does not count, and of an image in a registry
    /// and of a live ISO the URL alone: Ironic records the digest that it found in the registry.
    pub(super) fn is_shown_on(&self, node: &Node) -> bool {
        let identifying: &[&str] = match self {
            Self::Disk { .. } => &CHECKED,
            Self::Registry { .. } => &[SOURCE],
            Self::LiveIso { .. } => &[ISO],
        };
        self.is_written_with_md5(node) || has_all(node, self.instance_info(), identifying)
    }

    /// Whether enough of the record of a running deployment is left: Ironic replaces the source by the target of a redirect, and the
    /// digest when it converts the image. A file of digests may be that of several images, so the name of the file counts with it.
    pub(super) fn is_left_on(&self, node: &Node) -> bool {
        let Self::Disk { url, checksum, .. } = self else {
            return false;
        };
        let has = |keys: &[&str]| has_all(node, self.instance_info(), keys);
        let file = |url: &str| {
            url.split(['?', '#'])
                .next()
                .and_then(|path| path.rsplit('/').next())
                .map(str::to_owned)
        };
        let is_same_file = || {
            let named = node.instance_info.text(SOURCE).and_then(file);
            named.is_some_and(|named| !named.is_empty() && Some(named) == file(url))
        };
        has(&[SOURCE])
            || match checksum.contains("://") {
                true => has(&[CHECKSUM]) && is_same_file(),
                false => has(&[CHECKSUM, ALGORITHM, DIGEST]),
            }
    }

    /// The same for a node that a deploy step installs with the image.
    pub(super) fn is_shown_for_step_on(&self, node: &Node) -> bool {
        let identifying: &[&str] = match self {
            Self::Disk { .. } => &CHECKED,
            Self::Registry { .. } | Self::LiveIso { .. } => &[SOURCE],
        };
        self.is_written_with_md5(node) || has_all(node, self.instance_info_for_step(), identifying)
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

/// Whether the node has those of the keys that identify an image.
fn has_all(node: &Node, keys: [Key; 6], identifying: &[&str]) -> bool {
    keys.into_iter()
        .filter(|(key, _)| identifying.contains(key))
        .all(|(key, wanted)| {
            let found = node.instance_info.get(key);
            match wanted {
                Some(wanted) => compare(found, &wanted) != Match::Different,
                None => found.is_none(),
            }
        })
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
