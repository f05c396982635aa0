//! What nothing verifies of a complete image of a host or machine.

use thiserror::Error;

use super::{HashAlgorithm, ImageField, ImageFields};

/// Length of an MD5 digest in hexadecimal.
const MD5_LENGTH: usize = 32;

/// A reason why a machine may run another image than the one that was named, with the cure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unverified {
    /// A weak digest.
    #[error(
        "an MD5 digest protects from accidents only: another image with the same digest can be made; use a SHA-256 or \
         SHA-512 digest"
    )]
    Md5,
    /// A live ISO, over an encrypted connection or not. Ironic has no field for its checksum.
    #[error("nothing verifies a live ISO: Ironic receives its URL and no checksum; use a server that you trust")]
    LiveIso,
    /// A live ISO over a connection that everyone can change.
    #[error(
        "nothing verifies a live ISO, so everyone on the network to this http:// server can replace it; use https:// and a \
         server that you trust"
    )]
    LiveIsoInClear,
    /// A checksum that comes over the same open connection as the image.
    #[error(
        "everyone on the network to the http:// servers of the image and of its checksum can replace both; write the digest \
         itself, or use https://"
    )]
    ChecksumInClear,
}

impl Unverified {
    /// The field to change.
    #[must_use]
    pub const fn field(self) -> ImageField {
        match self {
            Self::Md5 | Self::ChecksumInClear => ImageField::Checksum,
            Self::LiveIso | Self::LiveIsoInClear => ImageField::Url,
        }
    }
}

impl ImageFields<'_> {
    /// A digest that does not protect from another image.
    #[must_use]
    pub fn weak_digest(&self) -> Option<Unverified> {
        let checksum = self.checksum_text().filter(|_| !self.is_live_iso() && !self.is_oci())?;
        let is_digest = checksum.len() == MD5_LENGTH && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
        let algorithm = self.checksum_type_text();
        let is_derived = is_digest && matches!(algorithm, None | Some("auto"));
        (is_derived || algorithm == Some(HashAlgorithm::Md5.name())).then_some(Unverified::Md5)
    }

    /// Why what is downloaded need not be what was meant. An image without a required checksum is no complete one.
    #[must_use]
    pub fn unverified_download(&self) -> Option<Unverified> {
        let is_in_clear = is_http(self.url);
        match (self.is_live_iso(), self.checksum_text()) {
            _ if self.url.is_empty() || self.is_oci() => None,
            (true, _) if is_in_clear => Some(Unverified::LiveIsoInClear),
            (true, _) => Some(Unverified::LiveIso),
            (false, Some(checksum)) if is_in_clear && is_http(checksum) => Some(Unverified::ChecksumInClear),
            (false, _) => None,
        }
    }
}

fn is_http(url: &str) -> bool {
    url.get(..7)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("http://"))
}
