//! Field sets and their operations.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldSet, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema() -> Schema {
    Schema::parse(&json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "when": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "roles": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "protocol"],
                "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "protocol": {"type": "string", "default": "TCP"},
                    "port": {"x-kubernetes-int-or-string": true},
                }},
            },
            "notes": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }))
    .unwrap()
}

fn set(value: Value) -> FieldSet {
    FieldSet::parse(&value).unwrap()
}

#[test]
fn a_field_is_a_member_if_it_is_a_leaf_or_is_marked() {
    let value = json!({"f:a": {"f:b": {}}, "f:c": {".": {}, "v:\"x\"": {}, "k:{\"n\":1}": {}, "i:3": {}}});
    let set = set(value.clone());
    assert_eq!(set.to_value(), value);
    assert_eq!(set.paths(), [".c", ".a.b", ".c[n=1]", ".c[=\"x\"]", ".c[3]"]);
}

#[test]
fn an_invalid_field_set_is_rejected_with_a_cure() {
    let error = FieldSet::parse(&json!({"a": {}})).unwrap_err().to_string();
    assert_eq!(
        error,
        "fieldsV1: \"a\" names no field; write each field as `f:NAME`, `k:{KEYS}`, `v:VALUE` or `i:INDEX` over an object"
    );
}

#[test]
fn difference_keeps_fields_below_and_outside_does_not() {
    let (all, some) = (set(json!({"f:a": {".": {}, "f:b": {}}})), set(json!({"f:a": {}})));
    assert_eq!(all.difference(&some), set(json!({"f:a": {"f:b": {}}})));
    assert!(all.outside(&some).is_empty());
}

#[test]
fn keys_of_items_include_their_defaults() {
    let ports = |port: u8| json!({"spec": {"ports": [{"name": "p", "port": port}]}});
    let fields = schema().fields(&ports(1));
    let key = r#"k:{"name":"p","protocol":"TCP"}"#;
    assert_eq!(
        fields.to_value(),
        json!({"f:spec": {"f:ports": {key: {".": {}, "f:name": {}, "f:port": {}}}}})
    );
    let changes = schema().changes(&ports(1), &ports(2));
    assert_eq!(
        changes.modified.to_value(),
        json!({"f:spec": {"f:ports": {key: {"f:port": {}}}}})
    );
    assert!(changes.added.is_empty() && changes.removed.is_empty());
}

#[test]
fn undeclared_fields_have_parts_but_their_lists_are_atomic() {
    let object =
        json!({"spec": {"open": {"a": {"b": [1, 2]}}, "inner": {"kind": "K", "metadata": {"labels": {"x": "y"}}}}});
    let expected = json!({"f:spec": {
        "f:open": {"f:a": {".": {}, "f:b": {}}},
        "f:inner": {"f:kind": {}, "f:metadata": {"f:labels": {"f:x": {}}}},
    }});
    assert_eq!(schema().fields(&object).to_value(), expected);
}

#[test]
fn numbers_compare_by_value() {
    let size = |size: Value| json!({"spec": {"size": size}});
    assert_eq!(
        schema().changes(&size(json!(1)), &size(json!(1.0))).modified,
        FieldSet::default()
    );
}

#[test]
fn an_invalid_object_is_reported_with_its_path() {
    for (spec, why) in [
        (
            json!({"size": "x"}),
            ".spec.size: expected numeric (int or float), got string",
        ),
        (
            json!({"when": ["x"]}),
            ".spec.when: expected any scalar, got &{[\"x\"]}",
        ),
        (json!({"notes": "x"}), ".spec.notes: expected map, got &{x}"),
        (json!({"roles": "x"}), ".spec.roles: expected list, got &{x}"),
        (json!({"nope": 1}), ".spec.nope: field not declared in schema"),
        (
            json!({"roles": [null]}),
            ".spec.roles: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"roles": [["x"]]}),
            ".spec.roles: element 0: not supported: associative list with lists as elements",
        ),
        (
            json!({"ports": ["x"]}),
            ".spec.ports: element 0: associative list with keys may not have non-map elements",
        ),
    ] {
        assert_eq!(schema().apply_errors(&json!({"spec": spec}), false), [why]);
    }
    let twice = json!({"spec": {"roles": ["a", "a"]}});
    assert_eq!(
        schema().apply_errors(&twice, false),
        [".spec.roles: duplicate entries for key [=\"a\"]"]
    );
    assert_eq!(schema().apply_errors(&twice, true), Vec::<String>::new());
}

#[test]
fn merging_keeps_the_applied_order_and_the_items_of_the_live_list() {
    let roles = |roles: &[&str]| json!({"spec": {"roles": roles}});
    for (live, applied, merged) in [
        (vec!["a", "b"], vec!["c", "b"], vec!["a", "c", "b"]),
        (vec!["a", "b", "c"], vec!["c", "a"], vec!["b", "c", "a"]),
        (vec![], vec!["x"], vec!["x"]),
        (vec!["x", "y"], vec![], vec!["x", "y"]),
    ] {
        assert_eq!(
            schema().merge(&roles(&live), &roles(&applied)),
            roles(&merged),
            "{live:?} {applied:?}"
        );
    }
}

#[test]
fn removing_all_fields_below_a_declared_one_removes_it_only_with_its_parents() {
    let object = json!({"spec": {"notes": {"a": "b"}, "size": 1}});
    let notes = set(json!({"f:spec": {"f:notes": {"f:a": {}}}}));
    assert_eq!(
        schema().without(&object, &notes),
        json!({"spec": {"notes": null, "size": 1}})
    );
    let parents = schema().with_parents(&notes);
    assert_eq!(parents.paths(), [".spec", ".spec.notes", ".spec.notes.a"]);
}

fn spec() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    let roles = prop::collection::btree_set(name.clone(), 0..3);
    let ports = prop::collection::btree_map(name.clone(), prop::option::of(0..3_i64), 0..3);
    let notes = prop::collection::btree_map(name, "[xy]", 0..3);
    (prop::option::of(0..3_i64), roles, ports, notes).prop_map(|(size, roles, ports, notes)| {
        let ports: Vec<Value> = ports
            .iter()
            .map(|(name, port)| json!({"name": name, "port": port}))
            .collect();
        json!({"spec": {"size": size, "roles": roles, "ports": ports, "notes": notes}})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn fields_survive_a_round_trip(object in spec()) {
        let fields = schema().fields(&object);
        prop_assert_eq!(FieldSet::parse(&fields.to_value()).unwrap(), fields);
    }

    #[test]
    fn sets_satisfy_the_laws_of_sets(one in spec(), other in spec()) {
        let (one, other) = (schema().fields(&one), schema().fields(&other));
        prop_assert_eq!(one.union(&other), other.union(&one));
        prop_assert_eq!(one.intersection(&other), other.intersection(&one));
        prop_assert_eq!(one.difference(&other).union(&one.intersection(&other)), one.clone());
        prop_assert!(one.difference(&other).intersection(&other).is_empty());
        prop_assert!(one.outside(&other).intersection(&other).is_empty());
    }

    #[test]
    fn changes_are_empty_for_equal_objects_and_symmetric(one in spec(), other in spec()) {
        let none = schema().changes(&one, &one);
        prop_assert!(none.added.is_empty() && none.modified.is_empty() && none.removed.is_empty());
        let (there, back) = (schema().changes(&one, &other), schema().changes(&other, &one));
        prop_assert_eq!(there.added, back.removed);
        prop_assert_eq!(there.modified, back.modified);
    }

    #[test]
    fn applying_is_complete_and_idempotent(live in spec(), applied in spec()) {
        let schema = schema();
        let merged = schema.merge(&live, &applied);
        prop_assert_eq!(schema.merge(&merged, &applied), merged.clone());
        // An empty map counts as a field only while it is empty.
        let counted = |path: &String| path != ".spec.notes";
        let missing = schema.fields(&applied).difference(&schema.fields(&merged)).paths();
        prop_assert_eq!(missing.into_iter().filter(counted).collect::<Vec<_>>(), Vec::<String>::new());
    }
}
