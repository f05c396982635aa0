//! Field sets for each form of value: atomic values and values with parts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldSet, Schema};
use serde_json::{Value, json};

fn schema() -> Schema {
    Schema::parse(&json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "on": {"type": "boolean"},
            "when": {"type": "string", "format": "date-time"},
            "secret": {"type": "string", "format": "password"},
            "bytes": {"type": "string", "format": "byte"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "roles": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "disks": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"type": "object", "required": ["id"], "properties": {
                    "id": {"type": "string"}, "size": {"type": "integer"},
                    "limits": {"type": "object", "properties": {"speed": {"type": "integer"}}},
                }},
            },
            "notes": {"type": "object", "additionalProperties": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}},
            "bare": {"type": "object"},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"a": {"type": "integer"}}},
            }},
        }}},
    }))
    .unwrap()
}

fn set(value: Value) -> FieldSet {
    FieldSet::parse(&value).unwrap()
}

fn object(spec: &Value) -> Value {
    json!({ "spec": spec })
}

/// The paths that were added, modified and removed below `spec`.
fn changes(old: &Value, new: &Value) -> [Vec<String>; 3] {
    let changes = schema().changes(&object(old), &object(new));
    [changes.added, changes.modified, changes.removed].map(|set| {
        let paths = set.paths().into_iter();
        paths.map(|path| path.replacen(".spec", "", 1)).collect()
    })
}

#[test]
fn changes_are_reported_for_the_smallest_parts() {
    for (old, new, [added, modified, removed]) in [
        (json!({"tags": ["a"]}), json!({"tags": ["a", "b"]}), ["", ".tags", ""]),
        (
            json!({"whole": {"a": 1}}),
            json!({"whole": {"a": 2}}),
            ["", ".whole", ""],
        ),
        (json!({"notes": {}}), json!({"notes": {"a": "x"}}), [".notes.a", "", ""]),
        (json!({"notes": {"a": "x"}}), json!({"notes": {}}), ["", "", ".notes.a"]),
        (json!({}), json!({"notes": {"a": "x"}}), [".notes .notes.a", "", ""]),
        (
            json!({"roles": []}),
            json!({"roles": ["a"]}),
            [".roles[=\"a\"]", "", ""],
        ),
        (
            json!({"disks": []}),
            json!({"disks": [{"id": "a"}]}),
            [".disks[id=\"a\"] .disks[id=\"a\"].id", "", ""],
        ),
        (
            json!({"open": {"a": 1}}),
            json!({"open": {"a": {"b": 1}}}),
            [".open.a.b", ".open.a", ""],
        ),
    ] {
        let expected: [Vec<String>; 3] =
            [added, modified, removed].map(|paths| paths.split_whitespace().map(str::to_owned).collect());
        assert_eq!(changes(&old, &new), expected, "{old} {new}");
    }
}

#[test]
fn values_are_equal_if_all_their_parts_are() {
    let none: [Vec<String>; 3] = Default::default();
    let list = |value: Value| json!({"open": {"list": value}});
    for (one, other, same) in [
        (json!([1, {"n": 2}]), json!([1.0, {"n": 2.0}]), true),
        (json!([1]), json!([2]), false),
        (json!([1]), json!([1, 1]), false),
        (json!([{"n": 1}]), json!([{"n": 2}]), false),
        (json!([{"n": 1}]), json!([{"m": 1}]), false),
        (json!([{"n": 1}]), json!([{"n": 1, "m": 1}]), false),
    ] {
        let found = changes(&list(one.clone()), &list(other.clone()));
        assert_eq!(found == none, same, "{one} {other}");
    }
    let size = |size: i64| json!({ "size": size });
    let (one, other) = (9_007_199_254_740_992, 9_007_199_254_740_993);
    assert_ne!(changes(&size(one), &size(other)), none, "floats cannot tell them apart");
}

#[test]
fn repeated_items_count_as_one_value() {
    let disks = |sizes: &[i64]| {
        let disks: Vec<Value> = sizes.iter().map(|size| json!({"id": "a", "size": size})).collect();
        json!({ "disks": disks })
    };
    for (old, new, modified) in [
        (vec![1, 2], vec![1, 2], false),
        (vec![1, 2], vec![1, 3], true),
        (vec![1, 2], vec![1, 2, 3], true),
    ] {
        let [added, found, removed] = changes(&disks(&old), &disks(&new));
        assert!(added.is_empty() && removed.is_empty(), "{old:?} {new:?}");
        let expected: &[&str] = if modified { &[".disks[id=\"a\"]"] } else { &[] };
        assert_eq!(found, expected, "{old:?} {new:?}");
    }
}

#[test]
fn changes_outside_of_fields_exclude_the_fields_below_them() {
    let spec = json!({"notes": {"a": "x", "b": "x"}, "roles": ["a"]});
    let changes = schema().changes(&object(&json!({"size": 1})), &object(&spec));
    let outside = changes.outside(&set(json!({"f:spec": {"f:notes": {"f:a": {}}, "f:roles": {}}})));
    assert_eq!(outside.added.paths(), [".spec.notes", ".spec.notes.b"]);
    assert_eq!(outside.removed.paths(), [".spec.size"]);
    let none = changes.outside(&set(json!({"f:spec": {}})));
    assert!(none.added.is_empty() && none.removed.is_empty());
}

#[test]
fn each_form_of_value_has_its_fields() {
    for (spec, fields) in [
        (json!({"on": true, "size": 1}), json!({"f:on": {}, "f:size": {}})),
        (json!({"tags": ["a"]}), json!({"f:tags": {}})),
        (json!({"whole": {"a": 1}}), json!({"f:whole": {}})),
        (json!({"notes": {}}), json!({"f:notes": {}})),
        (json!({"bare": {"x": 1}}), json!({"f:bare": {"f:x": {}}})),
        (
            json!({"open": {"known": {"a": 1, "x": 1}}}),
            json!({"f:open": {"f:known": {"f:a": {}, "f:x": {}}}}),
        ),
    ] {
        assert_eq!(
            schema().fields(&object(&spec)).to_value(),
            json!({ "f:spec": fields }),
            "{spec}"
        );
    }
}

#[test]
fn every_object_has_a_type_and_metadata_regardless_of_its_schema() {
    let object = json!({"apiVersion": "example.org/v1", "kind": "W", "metadata": {
        "name": "w", "labels": {"a": "b"}, "finalizers": ["f"], "generation": 1,
        "creationTimestamp": "2026-01-31T12:00:00Z", "ownerReferences": [{"uid": "u", "name": "o"}],
        "managedFields": [{"manager": "m"}],
    }});
    let expected = json!({"f:apiVersion": {}, "f:kind": {}, "f:metadata": {
        "f:name": {}, "f:labels": {"f:a": {}}, "f:finalizers": {"v:\"f\"": {}}, "f:generation": {},
        "f:creationTimestamp": {}, "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}, "f:managedFields": {},
    }});
    assert_eq!(schema().fields(&object).to_value(), expected);
    assert_eq!(schema().apply_errors(&object, false), Vec::<String>::new());
}

#[test]
fn invalid_objects_cannot_be_applied() {
    let fits = json!({
        "when": "x", "secret": 7, "on": false, "size": 1.5, "tags": ["a", "a"], "roles": ["a", "b"],
        "disks": [{"id": "a"}, {"id": "b"}], "notes": null, "bare": {"x": [1]},
    });
    assert_eq!(schema().apply_errors(&object(&fits), false), Vec::<String>::new());
    for when in [json!(1), json!(true)] {
        let spec = json!({ "when": when });
        assert_eq!(schema().apply_errors(&object(&spec), false), Vec::<String>::new());
    }
    for (spec, why) in [
        (json!({"on": "x"}), ".spec.on: expected boolean, got &{x}"),
        (
            json!({"bytes": 7}),
            ".spec.bytes: expected string, got &value.valueUnstructured{Value:7}",
        ),
        (
            json!({"size": {}}),
            ".spec.size: expected numeric (int or float), got map[string]interface {}",
        ),
        (
            json!({"notes": {"a": 1}}),
            ".spec.notes.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"disks": [{"size": 1}]}),
            ".spec.disks: element 0: associative list with keys has an element that omits all key fields [\"id\"] (and \
             doesn't have default values for any key fields)",
        ),
    ] {
        assert_eq!(schema().apply_errors(&object(&spec), false), [why]);
    }
}

#[test]
fn applied_values_replace_atomic_values_and_merge_into_others() {
    for (live, applied, merged) in [
        (json!({"tags": ["a"]}), json!({"tags": ["b"]}), json!({"tags": ["b"]})),
        (
            json!({"whole": {"a": 1}}),
            json!({"whole": {"b": 2}}),
            json!({"whole": {"b": 2}}),
        ),
        (
            json!({"notes": {"a": "x"}}),
            json!({"notes": {}}),
            json!({"notes": {"a": "x"}}),
        ),
        (
            json!({"notes": {"a": "x"}}),
            json!({"notes": {"b": "y"}}),
            json!({"notes": {"a": "x", "b": "y"}}),
        ),
    ] {
        assert_eq!(
            schema().merge(&object(&live), &object(&applied)),
            object(&merged),
            "{live} {applied}"
        );
    }
}

#[test]
fn fields_are_removed_and_atomic_values_are_removed_as_a_whole() {
    for (spec, fields, left) in [
        (
            json!({"roles": ["a", "b"]}),
            json!({"f:roles": {"v:\"a\"": {}}}),
            json!({"roles": ["b"]}),
        ),
        (
            json!({"tags": ["a", "b"]}),
            json!({"f:tags": {"v:\"a\"": {}}}),
            json!({"tags": null}),
        ),
        (
            json!({"whole": {"a": 1, "b": 2}}),
            json!({"f:whole": {"f:a": {}}}),
            json!({"whole": null}),
        ),
        (
            json!({"disks": [{"id": "a", "size": 1}]}),
            json!({"f:disks": {"k:{\"id\":\"a\"}": {"f:size": {}}}}),
            json!({"disks": [{"id": "a"}]}),
        ),
    ] {
        let fields = set(json!({ "f:spec": fields }));
        assert_eq!(schema().without(&object(&spec), &fields), object(&left), "{spec}");
    }
}

#[test]
fn parents_are_the_declared_properties_on_the_path() {
    let speed = json!({"f:spec": {"f:disks": {"k:{\"id\":\"a\"}": {"f:limits": {"f:speed": {}}}}}});
    let limits = ".spec.disks[id=\"a\"].limits";
    assert_eq!(
        schema().with_parents(&set(speed)).paths(),
        [".spec", ".spec.disks", limits, &format!("{limits}.speed")]
    );
}

#[test]
fn sets_are_built_from_paths_and_united() {
    let of = FieldSet::of(&[&["metadata", "name"], &["spec"]]);
    assert_eq!(of.paths(), [".spec", ".metadata.name"]);
    assert_eq!(of.union(&of), of);
}
