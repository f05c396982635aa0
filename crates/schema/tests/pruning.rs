//! Limits of pruning, and tolerated errors on update.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::Schema;
use serde_json::{Value, json};

fn schema(source: &Value) -> Schema {
    Schema::parse(source).unwrap()
}

fn pruned(source: &Value, object: &Value) -> (Value, Vec<String>) {
    let mut left = object.clone();
    let gone = schema(source).prune(&mut left);
    (left, gone)
}

#[test]
fn a_preserving_root_keeps_undeclared_fields() {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let root = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"spec": spec, "kind": spec}});
    let object = json!({"kind": {"x": 1}, "extra": {"x": 1}, "spec": {"a": "", "b": 1}});
    let (left, gone) = pruned(&root, &object);
    assert_eq!(gone, ["spec.b"]);
    assert_eq!(left, json!({"kind": {"x": 1}, "extra": {"x": 1}, "spec": {"a": ""}}));
}

#[test]
fn a_preserving_list_is_pruned_inside_declared_fields() {
    let known = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let list = json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true,
        "items": {"type": "object", "properties": {"known": known, "kind": known}}});
    let root = json!({"type": "object", "properties": {"l": list}});
    let object = json!({"l": [{"x": 1, "known": {"a": "", "b": 1}, "kind": {"b": 1}}]});
    let (left, gone) = pruned(&root, &object);
    assert_eq!(gone, ["l[0].kind.b", "l[0].known.b"]);
    assert_eq!(left, json!({"l": [{"x": 1, "known": {"a": ""}, "kind": {}}]}));
}

#[test]
fn an_error_in_an_unchanged_object_is_tolerated() {
    let inner = json!({"type": "object", "minProperties": 2, "properties": {
        "a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"},
    }});
    let root = schema(&json!({"type": "object", "properties": {"o": inner, "n": {"type": "integer"}}}));
    let at = |inner: Value, n: i64| json!({"o": inner, "n": n});
    for (old, new, tolerated) in [
        (json!({"a": "x"}), json!({"a": "x"}), true),
        (json!({"a": "x"}), json!({"a": "y"}), false),
        (json!({"a": "x"}), json!({"b": "x"}), false),
        (json!({"a": "x", "b": "x"}), json!({"a": "x"}), false),
    ] {
        let errors = root.validate_update(&at(new.clone(), 2), &at(old.clone(), 1));
        assert_eq!(errors.is_empty(), tolerated, "{old} {new}");
    }
}
