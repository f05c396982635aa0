//! Warnings about what is not verified: weak digests, images without any, and certificates.
//!
//! differs: `host-unverified-warned`. The Go manager accepts them silently.

use super::Host;
use crate::rules::Findings;

/// Length of an MD5 digest in hexadecimal.
const MD5_LENGTH: usize = 32;

pub(super) fn checksum_is_strong(host: &Host<'_>, findings: &mut Findings) {
    let Some(image) = &host.new.spec.image else { return };
    let fields = image.fields();
    let checksum = fields.checksum.unwrap_or_default();
    let is_digest = checksum.len() == MD5_LENGTH && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_unnamed = matches!(fields.checksum_type, None | Some("" | "auto"));
    if fields.checksum_type == Some("md5") || (is_unnamed && is_digest) {
        findings.warn(
            "spec.image.checksum",
            "an MD5 digest protects from accidents only: another image with the same digest can be made",
            "use a SHA-256 or SHA-512 digest",
        );
    }
}

pub(super) fn image_is_verified(host: &Host<'_>, findings: &mut Findings) {
    let Some(image) = &host.new.spec.image else { return };
    let fields = image.fields();
    let is_oci = fields.url.to_ascii_lowercase().starts_with("oci://");
    if fields.url.is_empty() || is_oci || !fields.checksum.unwrap_or_default().is_empty() {
        return;
    }
    if fields.url.to_ascii_lowercase().starts_with("http://") {
        findings.warn(
            "spec.image.url",
            "without a checksum, everyone on the network to this http:// server can replace the image",
            "use https://",
        );
    } else if fields.disk_format == Some("live-iso") {
        findings.warn(
            "spec.image.checksum",
            "nothing verifies a live ISO without a checksum",
            "set the checksum of the ISO, and use a server that you trust",
        );
    }
}

pub(super) fn certificate_is_verified(host: &Host<'_>, findings: &mut Findings) {
    let bmc = host.new.spec.bmc.as_ref();
    if bmc.is_some_and(|bmc| bmc.disable_certificate_verification == Some(true)) {
        findings.warn(
            "spec.bmc.disableCertificateVerification",
            "Ironic sends the login to whatever answers at the address of the BMC",
            "give the BMC a certificate that Ironic trusts, and remove the field",
        );
    }
}
