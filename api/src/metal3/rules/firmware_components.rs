//! HostFirmwareComponents: URLs with a supported scheme. The controller checks which components a host has.

use metal3_domain::image::check_firmware_url;

use super::report_image_error;
use crate::metal3::v1alpha1::HostFirmwareComponents;
use crate::rules::{AdmissionRules, FieldPath, Findings, On, Rule, WriteRequest};

impl AdmissionRules for HostFirmwareComponents {
    const RULES: &'static [Rule<Self>] = &[Rule {
        name: "update-url-fetchable",
        description: "The URL of each update is absolute, with the scheme `http`, `https` or `swift`.",
        on: On::Spec(update_urls_are_fetchable),
        differs: Some("unchanged-spec"),
    }];
}

fn update_urls_are_fetchable(components: &WriteRequest<'_, HostFirmwareComponents>, findings: &mut Findings) {
    for (position, update) in components.new.spec.updates.iter().enumerate() {
        let path = FieldPath::new("spec.updates").index(position).child("url");
        if let Some(error) = check_firmware_url(&update.url) {
            report_image_error(path, &error, findings);
        }
    }
}
