//! HostFirmwareComponents: URLs with a supported scheme. The controller checks which components a host has.

use super::check_fetchable;
use crate::metal3::v1alpha1::HostFirmwareComponents;
use crate::rules::{AdmissionRules, FieldPath, Findings, On, Rule, WriteRequest};

impl AdmissionRules for HostFirmwareComponents {
    const RULES: &'static [Rule<Self>] = &[Rule {
        name: "update-url-fetchable",
        description: "The URL of each update is absolute, with the scheme `http`, `https`, `ftp`, `gopher` or `oci`.",
        on: On::Spec(update_urls_are_fetchable),
        differs: Some("unchanged-spec"),
    }];
}

fn update_urls_are_fetchable(components: &WriteRequest<'_, HostFirmwareComponents>, findings: &mut Findings) {
    for (position, update) in components.new.spec.updates.iter().enumerate() {
        let path = FieldPath::new("spec.updates").index(position).child("url");
        check_fetchable(path, &update.url, findings);
    }
}
