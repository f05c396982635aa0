//! Every kind the provider serves, in one list: what `xtask codegen` writes and what the simulated API server loads.

use crate::crd::Definition;
use crate::rules::Reviewer;

/// All definitions, by group and then by kind.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    [
        crate::infrastructure::definitions(),
        crate::ipam::definitions(),
        crate::metal3::definitions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The admission rules of every kind that has any.
#[must_use]
pub fn reviewers() -> Vec<Reviewer> {
    [
        crate::infrastructure::reviewers(),
        crate::ipam::reviewers(),
        crate::metal3::reviewers(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Paths of members without a description for `kubectl explain`.
    fn undescribed(path: &str, node: &Value, found: &mut Vec<String>) {
        if let Some(Value::Object(members)) = node.get("properties") {
            for (name, member) in members {
                let path = format!("{path}.{name}");
                if member.get("description").is_none() && name != "metadata" {
                    found.push(path.clone());
                }
                undescribed(&path, member, found);
            }
        }
        for key in ["items", "additionalProperties"] {
            if let Some(child) = node.get(key) {
                undescribed(path, child, found);
            }
        }
    }

    #[test]
    fn every_member_of_every_kind_is_described() {
        let mut found = Vec::new();
        for crd in definitions() {
            for version in &crd.versions {
                undescribed(
                    &format!("{}/{}", crd.kind, version.name),
                    &(version.schema)(),
                    &mut found,
                );
            }
        }
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn each_definition_stores_exactly_one_version_and_names_its_kind() {
        for crd in definitions() {
            assert_eq!(
                crd.versions.iter().filter(|version| version.storage).count(),
                1,
                "{}",
                crd.kind
            );
            assert_eq!(crd.singular, crd.kind.to_lowercase(), "{}", crd.kind);
            for version in &crd.versions {
                let document = serde_json::json!({
                    "apiVersion": format!("{}/{}", crd.group, version.name), "kind": crd.kind,
                });
                let written = (version.reencode)(&document).unwrap();
                assert_eq!(written["kind"], crd.kind);
                assert_eq!(
                    written["apiVersion"], document["apiVersion"],
                    "an object without spec decodes"
                );
            }
        }
    }

    #[test]
    fn an_object_of_another_kind_is_refused() {
        for crd in definitions() {
            for version in &crd.versions {
                let document = serde_json::json!({ "apiVersion": "v1", "kind": "Secret" });
                assert!((version.reencode)(&document).is_err(), "{}", crd.kind);
            }
        }
    }
}
