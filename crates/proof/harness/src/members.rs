//! Which members of a kind have an effect: each member of some documents is removed alone, and the outcome compared.

use std::collections::BTreeSet;

use metal3_api::catalog;
use metal3_api::crd::members::{leaves, present};
use serde_json::Value;

/// Members of the spec of a kind whose removal, wherever these documents have them, never changes the outcome. That includes
/// members that no document has.
///
/// # Panics
/// When the kind has no such version.
#[must_use]
pub fn without_effect<O: PartialEq>(
    (kind, version): (&str, &str),
    documents: &[Value],
    outcome: impl Fn(&Value) -> O,
) -> Vec<String> {
    let definitions = catalog::definitions();
    let definition = definitions.iter().find(|definition| definition.kind == kind);
    let versions = definition.into_iter().flat_map(|definition| &definition.versions);
    let version = versions.into_iter().find(|found| found.name == version);
    let schema = version.map(|version| (version.schema)());
    let Some(schema) = schema else {
        unreachable!("{kind} has no such version");
    };
    let mut effective = BTreeSet::new();
    for document in documents {
        let whole = outcome(document);
        for (path, pointer) in present(&schema, document) {
            if !effective.contains(&path) && outcome(&without(document, &pointer)) != whole {
                effective.insert(path);
            }
        }
    }
    let all = leaves(&schema).into_iter();
    all.filter(|path| path.starts_with("spec.") && !effective.contains(path))
        .collect()
}

/// The document without the member at the pointer.
fn without(document: &Value, pointer: &str) -> Value {
    let mut document = document.clone();
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(members)) = document.pointer_mut(parent)
    {
        members.remove(name);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn member_without_effect_and_absent_member_are_found() {
        let document = json!({ "spec": { "url": "x" } });
        let found = |outcome: fn(&Value) -> Value| {
            without_effect(("DataImage", "v1alpha1"), std::slice::from_ref(&document), outcome)
        };
        assert_eq!(found(|document| document["spec"]["url"].clone()), [""; 0]);
        assert_eq!(found(|_| Value::Null), ["spec.url"]);
        assert_eq!(
            without_effect(("DataImage", "v1alpha1"), &[], Value::clone),
            ["spec.url"]
        );
    }
}
