//! Whether the image of a machine is complete.

use metal3_domain::image::{ImageFault, ImageField, ImageFields, check_machine_image};

use crate::infrastructure::v1beta2::{Image, Metal3MachineSpec};
use crate::infrastructure::{ChecksumType, DiskFormat};
use crate::rules::{FieldPath, Findings};

impl Metal3MachineSpec {
    /// What is wrong with the image of the machine. Nothing, where a deploy step of the user's own takes its place.
    #[must_use]
    pub fn image_faults(&self) -> Vec<ImageFault> {
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

/// Reports what is wrong, below the path of the machine's spec.
pub(super) fn check(path: &str, spec: &Metal3MachineSpec, findings: &mut Findings) {
    for fault in spec.image_faults() {
        let image = FieldPath::new(path).child("image");
        let path = match fault.field() {
            ImageField::Image => image,
            ImageField::Url => image.child("url"),
            ImageField::Checksum => image.child("checksum"),
            ImageField::ChecksumType => image.child("checksumType"),
            ImageField::DiskFormat => image.child("diskFormat"),
        };
        let text = fault.to_string();
        let (problem, cure) = text
            .split_once("; ")
            .unwrap_or((&text, "see the documentation of images"));
        if fault.is_missing() {
            findings.required(path, problem, cure);
        } else if fault.is_forbidden() {
            findings.forbidden(path, problem, cure);
        } else {
            findings.invalid(path, serde_json::Value::Null, problem, cure);
        }
    }
}
