//! What is deployed, in the words of a node's `instance_info`.
//!
//! An image is written to a disk, or it is an ISO that the machine boots each time. The keys of the one are taken away
//! for the other, so that what an earlier deployment left misleads nobody.

use std::fmt;

use metal3_api::metal3::v1alpha1::Image;
use metal3_domain::image::{self, DiskFormat, HashAlgorithm};
use metal3_ironic::model::node::Node;
use serde_json::Value;

use super::Refusal;
use super::masked::{Look, look};
use super::not_yet::{self, NotYet, Wish};

const SOURCE: &str = "image_source";
const FORMAT: &str = "image_disk_format";
const CHECKSUM: &str = "image_checksum";
const ALGORITHM: &str = "image_os_hash_algo";
const DIGEST: &str = "image_os_hash_value";
const PULL_SECRET: &str = "image_pull_secret";
const ISO: &str = "boot_iso";

/// A key of `instance_info` and what it shall be. `None`: absent.
type Key = (&'static str, Option<Value>);

/// Something that can be deployed. `Debug` shows no URL, since one may hold a login.
#[derive(Clone, PartialEq, Eq)]
pub enum Payload {
    /// Written to the disk.
    Disk {
        /// Where it is.
        url: String,
        /// Its layout; `None` lets Ironic find out.
        format: Option<DiskFormat>,
        /// A digest, or the URL of a file of digests.
        checksum: String,
        /// The digest's algorithm; `None` lets Ironic tell it by the length.
        algorithm: Option<HashAlgorithm>,
    },
    /// Booted each time, and never written.
    LiveIso {
        /// Where it is.
        url: String,
    },
}

impl Payload {
    /// What an image asks for.
    ///
    /// # Errors
    /// When it is not complete, comes from a registry, or has a control character.
    pub fn of(image: &Image) -> Result<Self, Refusal> {
        if not_yet::is_oci(image) {
            return Err(NotYet(Wish::OciImage).into());
        }
        let first = |faults: Vec<image::ImageFault>| {
            let fault = faults.into_iter().next().unwrap_or(image::ImageFault::Missing);
            Refusal::Image(fault)
        };
        let plain = |text: &str, field: &str| match text.chars().any(char::is_control) {
            true => Err(Refusal::ControlCharacter {
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
            image::Image::Oci { .. } => Err(NotYet(Wish::OciImage).into()),
        }
    }

    /// Every key of `instance_info` that an image decides.
    pub(super) fn instance_info(&self) -> [Key; 7] {
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
                    (PULL_SECRET, None),
                    (ISO, None),
                ]
            }
            Self::LiveIso { url } => [
                (SOURCE, None),
                (FORMAT, None),
                (CHECKSUM, None),
                (ALGORITHM, None),
                (DIGEST, None),
                (PULL_SECRET, None),
                (ISO, text(url)),
            ],
        }
    }

    /// Whether this is what the node was last told to deploy. Format and pull secret say nothing about which image it
    /// is, and a live ISO is known by its URL alone.
    #[must_use]
    pub fn is_on(&self, node: &Node) -> bool {
        let telling: &[&str] = match self {
            Self::Disk { .. } => &[SOURCE, CHECKSUM, ALGORITHM, DIGEST],
            Self::LiveIso { .. } => &[ISO],
        };
        self.instance_info()
            .into_iter()
            .filter(|(key, _)| telling.contains(key))
            .all(|(key, wanted)| {
                let found = node.instance_info.get(key);
                match wanted {
                    Some(wanted) => look(found, &wanted) != Look::Different,
                    None => found.is_none(),
                }
            })
    }

    /// Whether it is booted and never written.
    #[must_use]
    pub const fn is_live_iso(&self) -> bool {
        matches!(self, Self::LiveIso { .. })
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk { .. } => "Disk(not shown)",
            Self::LiveIso { .. } => "LiveIso(not shown)",
        })
    }
}
