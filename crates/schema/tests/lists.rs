//! Lists of type `set` and `map`, and nulls in lists.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldError, Schema};
use serde_json::{Value, json};

fn schema(list: &Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"l": list}})).unwrap()
}

fn errors(list: &Value, items: &Value) -> Vec<String> {
    let errors = schema(list).validate(&json!({ "l": items }));
    errors.iter().map(FieldError::to_string).collect()
}

fn keyed() -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}})
}

#[test]
fn an_integer_in_a_set_is_not_equal_to_a_float() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}});
    for (items, found) in [
        (json!([1, 1.0]), vec![]),
        (json!([1, 2, 1]), vec!["l[2]: Duplicate value: 1"]),
        (json!([1.5, 1.5, 1.5]), vec!["l[1]: Duplicate value: 1.5"]),
    ] {
        assert_eq!(errors(&list, &items), found, "{items}");
    }
}

#[test]
fn items_of_a_map_list_are_objects() {
    let wrong = "must be an object for an array of list-type map";
    let found = errors(&keyed(), &json!([{"a": "x"}, 7]));
    assert!(found.contains(&format!("l[1]: Invalid value: 7: {wrong}")), "{found:?}");
    let found = errors(&keyed(), &json!([{"a": "x"}, null]));
    assert!(!found.concat().contains(wrong), "{found:?}");
}

#[test]
fn applied_objects_get_defaults_and_keep_their_nulls() {
    let list = json!({"type": "array", "items": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string", "default": "d"},
    }}});
    let given = json!({"l": [{"a": null}, {"b": null}]});
    let mut defaulted = given.clone();
    schema(&list).default_applied(&mut defaulted);
    assert_eq!(defaulted, json!({"l": [{"a": null, "b": "d"}, {"b": "d"}]}));
    let mut stored = given;
    schema(&list).default(&mut stored);
    assert_eq!(stored, json!({"l": [{"b": "d"}, {"b": "d"}]}));
}
