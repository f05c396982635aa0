//! Checks of the image of a machine.

use metal3_domain::image::{ImageError, ImageField, check_machine_image};

use crate::infrastructure::v1beta2::{Image, Metal3MachineSpec};
use crate::rules::{FieldPath, Findings, images};

impl Metal3MachineSpec {
    /// Whether a machine takes its data from the zone of its host: it names none, or only a part.
    #[must_use]
    pub const fn takes_zone_data(&self) -> bool {
        self.data_template.is_none() && (self.meta_data.is_none() || self.network_data.is_none())
    }

    /// Faults of the image; none when a custom deploy step replaces it.
    #[must_use]
    pub fn image_errors(&self) -> Vec<ImageError> {
        let deployed = self
            .custom_deploy
            .as_ref()
            .is_some_and(|deploy| !deploy.method.is_empty());
        if deployed {
            Vec::new()
        } else {
            check_machine_image(&self.image.as_ref().map(Image::fields).unwrap_or_default())
        }
    }
}

/// Reports the errors of the image, with paths below the machine's spec.
pub(super) fn check(path: &str, spec: &Metal3MachineSpec, findings: &mut Findings) {
    for error in spec.image_errors() {
        let image = FieldPath::new(path).child("image");
        let path = match error.field() {
            ImageField::Image => image,
            ImageField::Url => image.child("url"),
            ImageField::Checksum => image.child("checksum"),
            ImageField::ChecksumType => image.child("checksumType"),
            ImageField::DiskFormat => image.child("diskFormat"),
        };
        let text = error.to_string();
        let (problem, cure) = text
            .split_once("; ")
            .unwrap_or((&text, "see the documentation of images"));
        if error.is_missing() {
            findings.required(path, problem, cure);
        } else if error.is_forbidden() {
            findings.forbidden(path, problem, cure);
        } else {
            findings.invalid(path, serde_json::Value::Null, problem, cure);
        }
    }
}

/// Warns of a weak digest, with a path below the machine's spec.
pub(super) fn warn_of_digest(path: &str, spec: &Metal3MachineSpec, findings: &mut Findings) {
    if let Some(image) = &spec.image {
        images::warn_of_digest(&format!("{path}.image"), &image.fields(), findings);
    }
}

/// Warns of an image that may be replaced on its way, with a path below the machine's spec.
pub(super) fn warn_of_download(path: &str, spec: &Metal3MachineSpec, findings: &mut Findings) {
    if let Some(image) = &spec.image {
        images::warn_of_download(&format!("{path}.image"), &image.fields(), findings);
    }
}
