//! Warnings about what is not verified: images and certificates.
//!
//! differs: `host-unverified-warned`. The Go manager accepts them silently.

use super::Host;
use crate::rules::{Findings, images};

const IMAGE: &str = "spec.image";

pub(super) fn checksum_is_strong(host: &Host<'_>, findings: &mut Findings) {
    if let Some(image) = &host.new.spec.image {
        images::warn_of_digest(IMAGE, &image.fields(), findings);
    }
}

pub(super) fn image_is_verified(host: &Host<'_>, findings: &mut Findings) {
    if let Some(image) = &host.new.spec.image {
        images::warn_of_download(IMAGE, &image.fields(), findings);
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
