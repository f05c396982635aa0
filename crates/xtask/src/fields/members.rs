//! Members of the kinds, from their schemas.
//!
//! A member that has members itself is not listed. Members of equal paths in several versions are one;
//! `spec.template.spec` of a template is the `spec` of the kind that Cluster API makes from it.

use std::collections::BTreeSet;

use metal3_api::catalog;
use metal3_api::crd::members::leaves;

use super::Entry;

/// Path of the part of a template that becomes the spec of an object.
const TEMPLATE: &str = "spec.template.spec.";

/// The members that a user writes, and the number of those of `status`.
pub(crate) fn all() -> (BTreeSet<Entry>, usize) {
    let (mut entries, mut status) = (BTreeSet::new(), BTreeSet::new());
    for definition in catalog::definitions() {
        for version in &definition.versions {
            for path in leaves(&(version.schema)()) {
                let entry = entry(definition.kind, &path);
                if path.starts_with("status") {
                    status.insert(entry);
                } else if path.contains('.') && !path.starts_with("metadata") {
                    entries.insert(entry);
                }
            }
        }
    }
    (entries, status.len())
}

fn entry(kind: &str, path: &str) -> Entry {
    let made = kind.strip_suffix("Template").zip(path.strip_prefix(TEMPLATE));
    let (subject, name) = made.map_or_else(
        || (kind.to_owned(), path.to_owned()),
        |(kind, rest)| (kind.to_owned(), format!("spec.{rest}")),
    );
    Entry { subject, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_of_a_template_is_that_of_its_kind() {
        assert_eq!(
            entry("Metal3MachineTemplate", "spec.template.spec.image.url").subject,
            "Metal3Machine"
        );
        assert_eq!(
            entry("Metal3MachineTemplate", "spec.nodeReuse").subject,
            "Metal3MachineTemplate"
        );
        assert_eq!(
            entry("Metal3DataTemplate", "spec.metaData").subject,
            "Metal3DataTemplate"
        );
    }
}
