//! Field sets and their operations, for each form of value: atomic values and values with parts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldSet, Schema};
use proptest::prelude::*;
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
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "protocol"],
                "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "protocol": {"type": "string", "default": "TCP"},
                    "port": {"x-kubernetes-int-or-string": true},
                }},
            },
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
            "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
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
