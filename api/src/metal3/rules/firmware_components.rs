//! HostFirmwareComponents: firmware that can be fetched. Which components a host has, its controller says.

use super::check_fetchable;
use crate::metal3::v1alpha1::HostFirmwareComponents;
use crate::rules::{FieldPath, Findings, On, Rule, Ruled, Writing};

impl Ruled for HostFirmwareComponents {
    const RULES: &'static [Rule<Self>] = &[Rule {
        name: "update-url-fetchable",
        says: "The URL of each update is absolute, with the scheme `http`, `https`, `ftp`, `gopher` or `oci`.",
        on: On::Spec(update_urls_are_fetchable),
        differs: Some("unchanged-spec"),
    }];
}

fn update_urls_are_fetchable(components: &Writing<'_, HostFirmwareComponents>, findings: &mut Findings) {
    for (position, update) in components.new.spec.updates.iter().enumerate() {
        let path = FieldPath::new("spec.updates").index(position).child("url");
        check_fetchable(path, &update.url, findings);
    }
}
