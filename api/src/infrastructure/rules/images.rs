//! Checks of the image of a machine.

use metal3_domain::image::{ImageError, ImageField, ImageFields, check_machine_image};

use crate::infrastructure::v1beta2::{Image, Metal3MachineSpec};
use crate::infrastructure::{ChecksumType, DiskFormat};
use crate::rules::{FieldPath, Findings};

impl Metal3MachineSpec {
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
            check_machine_image(&fields(self.image.as_ref()))
        }
    }
}

fn fields(image: Option<&Image>) -> ImageFields<'_> {
    image.map_or_else(ImageFields::default, |image| ImageFields {
        url: &image.url,
        checksum: image.checksum.as_deref(),
        checksum_type: image.checksum_type.map(ChecksumType::as_str),
        disk_format: image.disk_format.map(DiskFormat::as_str),
    })
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
