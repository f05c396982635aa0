//! Requests to keep a host off that no remediation ends.
//!
//! The annotation names a remediation by its UID. It outlives it when a process that no longer leads completes its last
//! write, when a user removes the finalizer, and when clusterctl moves the objects: the moved remediation has another
//! UID.
//!
//! differs: `remediation-orphans`. The Go manager leaves such a host off.

use std::collections::BTreeSet;

use metal3_api::infrastructure::names::REMEDIATION_POWER_OFF_PREFIX;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::patch::MergePatch;

use crate::diff::{changes, version};

/// The UIDs of the remediations for which a host is kept off.
pub(super) fn holders(host: &BareMetalHost) -> impl Iterator<Item = &str> {
    let annotations = host.metadata.annotations.iter().flatten();
    annotations.filter_map(|(key, _)| key.strip_prefix(REMEDIATION_POWER_OFF_PREFIX))
}

/// Whether a host is kept off for a remediation that is none of these.
pub(super) fn is_orphaned(host: &BareMetalHost, existing: &BTreeSet<String>) -> bool {
    holders(host).any(|uid| !existing.contains(uid))
}

/// Removes the annotations of all remediations but these, at the version of the host.
pub(super) fn removal(host: &BareMetalHost, existing: &BTreeSet<String>) -> Option<MergePatch> {
    let mut after = host.clone();
    if let Some(annotations) = &mut after.metadata.annotations {
        annotations.retain(|key, _| {
            let uid = key.strip_prefix(REMEDIATION_POWER_OFF_PREFIX);
            uid.is_none_or(|uid| existing.contains(uid))
        });
    }
    let at = version(&host.metadata)?;
    Some(changes(host, &after).main?.with_precondition(&at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_annotations_of_remediations_that_do_not_exist_are_removed() {
        let host = |annotations: serde_json::Value| -> BareMetalHost {
            let mut host = BareMetalHost::default();
            host.metadata.resource_version = Some("7".to_owned());
            host.metadata.annotations = serde_json::from_value(annotations).unwrap();
            host
        };
        let existing = BTreeSet::from(["a".to_owned()]);
        let (gone, kept) = (
            format!("{REMEDIATION_POWER_OFF_PREFIX}b"),
            format!("{REMEDIATION_POWER_OFF_PREFIX}a"),
        );
        let both = host(json!({ &gone: "", &kept: "", "reboot.metal3.io": "", "reboot.metal3.io/user": "" }));
        assert!(is_orphaned(&both, &existing));
        let expected = json!({ "metadata": { "resourceVersion": "7", "annotations": { gone: null } } });
        assert_eq!(removal(&both, &existing).unwrap().into_document(), expected);
        for none in [json!({ kept: "" }), json!({ "reboot.metal3.io/user": "" }), json!(null)] {
            let none = host(none);
            assert!(!is_orphaned(&none, &existing));
            assert_eq!(removal(&none, &existing), None);
        }
    }
}
