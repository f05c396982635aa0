//! Which members of a kind have an effect: each member of some documents is removed alone, and the outcome compared. A member
//! without which the document does not decode gets another value instead: that it is required is no effect.

use std::collections::BTreeSet;

use metal3_api::catalog;
use metal3_api::crd::members::{Present, leaves, present};
use serde_json::Value;

/// Members of the spec of a kind whose removal, wherever these documents have them, never changes the outcome. That includes
/// members that no document has. `outcome` returns `None` for a document that does not decode.
///
/// # Panics
/// When the kind has no such version, and when a document does not decode.
#[must_use]
pub fn without_effect<O: PartialEq>(
    (kind, version): (&str, &str),
    documents: &[Value],
    outcome: impl Fn(&Value) -> Option<O>,
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
        let Some(whole) = outcome(document) else {
            unreachable!("the document of {kind} does not decode: {document}");
        };
        for member in present(&schema, document) {
            if effective.contains(&member.path) {
                continue;
            }
            let changed =
                outcome(&without(document, &member.pointer)).or_else(|| outcome(&with_another(document, &member)));
            if changed.is_some_and(|changed| changed != whole) {
                effective.insert(member.path);
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

/// The document with another value of a member.
fn with_another(document: &Value, member: &Present<'_>) -> Value {
    let mut document = document.clone();
    if let Some(value) = document.pointer_mut(&member.pointer) {
        *value = another(member.schema, value);
    }
    document
}

/// Another value of the same type, of those that the schema lists if it lists any.
fn another(schema: &Value, value: &Value) -> Value {
    let listed = schema.get("enum").and_then(Value::as_array);
    if let Some(other) = listed.and_then(|all| all.iter().find(|listed| *listed != value)) {
        return other.clone();
    }
    let inner = |key: &str| schema.get(key).unwrap_or(&Value::Null);
    match value {
        Value::Null => Value::Null,
        Value::Bool(flag) => Value::Bool(!flag),
        Value::Number(number) => number.as_i64().unwrap_or_default().saturating_add(1).into(),
        Value::String(text) => Value::String(format!("{text}x")),
        Value::Array(items) => items.iter().map(|item| another(inner("items"), item)).collect(),
        Value::Object(values) => values
            .iter()
            .map(|(key, value)| (key.clone(), another(inner("additionalProperties"), value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(document: &Value, outcome: fn(&Value) -> Option<Value>) -> Vec<String> {
        without_effect(("DataImage", "v1alpha1"), std::slice::from_ref(document), outcome)
    }

    #[test]
    fn member_without_effect_and_absent_member_are_found() {
        let document = json!({ "spec": { "url": "x" } });
        assert_eq!(
            found(&document, |document| Some(document["spec"]["url"].clone())),
            [""; 0]
        );
        assert_eq!(found(&document, |_| Some(Value::Null)), ["spec.url"]);
        let clone = |document: &Value| Some(document.clone());
        assert_eq!(without_effect(("DataImage", "v1alpha1"), &[], clone), ["spec.url"]);
    }

    #[test]
    fn required_member_has_an_effect_only_if_another_value_has() {
        let document = json!({ "spec": { "url": "x" } });
        assert_eq!(
            found(&document, |document| document["spec"].get("url").cloned()),
            [""; 0]
        );
        assert_eq!(
            found(&document, |document| document["spec"].get("url").map(|_| Value::Null)),
            ["spec.url"]
        );
    }

    #[test]
    fn another_value_has_the_same_type_and_is_listed() {
        for (schema, value, expected) in [
            (json!({ "enum": ["a", "b"] }), json!("a"), json!("b")),
            (json!({ "enum": ["a", "b"] }), json!("b"), json!("a")),
            (json!({}), json!("a"), json!("ax")),
            (json!({}), json!(7), json!(8)),
            (json!({}), json!(true), json!(false)),
            (json!({ "items": { "enum": [1, 5] } }), json!([1, 5]), json!([5, 1])),
            (json!({}), json!({ "k": "v" }), json!({ "k": "vx" })),
        ] {
            assert_eq!(another(&schema, &value), expected, "{value}");
        }
    }
}
