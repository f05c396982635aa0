//! Warnings about images, the same for hosts and machines.
//!
//! differs: `host-unverified-warned`. The Go managers accept such images silently.

use metal3_domain::image::{ImageField, ImageFields, Unverified};

use super::{FieldPath, Findings};

/// Name of the row about the digest.
pub(crate) const STRONG: &str = "image-checksum-strong";
/// Its description.
pub(crate) const STRONG_MEANS: &str = "A warning is returned for an image with an MD5 digest.";
/// Name of the row about the download.
pub(crate) const VERIFIED: &str = "image-verified";
/// Its description.
pub(crate) const VERIFIED_MEANS: &str = "A warning is returned for a live ISO, which nothing verifies, and for an image whose checksum comes, as it does, \
     from an `http://` server.";
/// Row of `docs/parity.md`.
pub(crate) const DIFFERS: &str = "host-unverified-warned";

/// Warns of a weak digest. `path` is that of the image.
pub(crate) fn warn_of_digest(path: &str, image: &ImageFields<'_>, findings: &mut Findings) {
    warn(path, image.weak_digest(), findings);
}

/// Warns of an image that may be replaced on its way. `path` is that of the image.
pub(crate) fn warn_of_download(path: &str, image: &ImageFields<'_>, findings: &mut Findings) {
    warn(path, image.unverified_download(), findings);
}

fn warn(path: &str, unverified: Option<Unverified>, findings: &mut Findings) {
    let Some(unverified) = unverified else { return };
    let member = match unverified.field() {
        ImageField::Checksum => "checksum",
        _ => "url",
    };
    let text = unverified.to_string();
    let (problem, cure) = text.split_once("; ").unwrap_or((&text, "use another image"));
    findings.warn(FieldPath::new(path).child(member), problem, cure);
}
