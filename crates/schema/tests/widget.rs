//! One example kind through pruning, defaulting and validation.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldError, Schema};
use serde_json::{Value, json};

fn schema(spec: Value) -> Schema {
    Schema::parse(&json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
        },
    }))
    .expect("the schema of the test parses")
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}, "spec": spec})
}

fn lines(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

/// The errors of one spec.
fn errors(schema_of_spec: Value, spec: Value) -> Vec<String> {
    lines(&schema(schema_of_spec).validate(&object(spec)))
}

fn update_errors(schema_of_spec: Value, old: Value, new: Value) -> Vec<String> {
    lines(&schema(schema_of_spec).validate_update(&object(new), &object(old)))
}

fn map_list(item: Value) -> Value {
    json!({"type": "object", "properties": {"ports": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": item}},
    }}})
}

#[test]
fn pruning_removes_unknown_fields_at_every_depth_and_returns_their_paths() {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "pools": {"type": "array", "items": {"type": "object", "properties": {"start": {"type": "string"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "nested": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
    }));
    let mut widget = object(json!({
        "pools": [{"start": "a", "end": "b"}, 7],
        "labels": {"x": "y"},
        "nested": {"k": {"a": "1", "b": 2}},
        "zeal": {"deep": true},
    }));
    widget["extra"] = json!(1);
    assert_eq!(
        schema.prune(&mut widget),
        ["extra", "spec.nested.k.b", "spec.pools[0].end", "spec.zeal"]
    );
    assert_eq!(
        widget,
        object(json!({"pools": [{"start": "a"}, 7], "labels": {"x": "y"}, "nested": {"k": {"a": "1"}}}))
    );
}

#[test]
fn pruning_keeps_preserved_fields_and_prunes_inside_declared_ones() {
    let schema = schema(json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }));
    let mut widget = object(json!({"free": {"x": 1}, "known": {"a": "", "b": 1}}));
    assert_eq!(schema.prune(&mut widget), ["spec.known.b"]);
    assert_eq!(widget, object(json!({"free": {"x": 1}, "known": {"a": ""}})));
}

#[test]
fn pruning_keeps_type_and_metadata_of_embedded_resources() {
    let schema = schema(json!({"type": "object", "properties": {"template": {
        "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}},
    }}}));
    let template =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}, "status": {}});
    let mut widget = object(json!({"template": template}));
    assert_eq!(
        schema.prune(&mut widget),
        ["spec.template.spec.x", "spec.template.status"]
    );
}

#[test]
fn entries_of_a_map_without_a_schema_are_pruned_inside() {
    let schema =
        schema(json!({"type": "object", "properties": {"any": {"type": "object", "additionalProperties": true}}}));
    let mut widget = object(json!({"any": {"a": {"b": 1}, "c": 2}}));
    assert_eq!(schema.prune(&mut widget), ["spec.any.a.b"]);
    assert_eq!(widget, object(json!({"any": {"a": {}, "c": 2}})));
}

#[test]
fn defaults_are_set_from_the_outside_in() {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "default": "fast"},
            "disk": {"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 10}}},
            "absent": {"type": "object", "properties": {"size": {"type": "integer", "default": 10}}},
            "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer", "default": 2}}}},
        },
    }));
    let mut widget = object(json!({"items": [{}, {"n": 7}], "map": {"a": {}}}));
    schema.default(&mut widget);
    let expected = json!({
        "mode": "fast", "disk": {"size": 10}, "items": [{"n": 1}, {"n": 7}], "map": {"a": {"n": 2}},
    });
    assert_eq!(widget, object(expected));
}

#[test]
fn a_disallowed_null_is_removed_or_replaced_by_the_default() {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "plain": {"type": "string"},
            "defaulted": {"type": "string", "default": "d"},
            "nullable": {"type": "string", "nullable": true, "default": "d"},
            "list": {"type": "array", "items": {"type": "string", "default": "i"}},
            "bare": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": "m"}},
        },
    }));
    let mut widget = object(json!({
        "plain": null, "defaulted": null, "nullable": null, "list": [null], "bare": [null], "map": {"a": null},
    }));
    schema.default(&mut widget);
    let expected = json!({"defaulted": "d", "nullable": null, "list": ["i"], "bare": [null], "map": {"a": "m"}});
    assert_eq!(widget, object(expected));
    assert_eq!(
        lines(&schema.validate(&widget)),
        ["spec.bare[0]: Invalid value: \"null\": spec.bare[0] in body must be of type string: \"null\""]
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_limit_has_the_text_of_the_api_server() {
    let one = |limits: Value, value: Value| {
        let found = errors(
            json!({"type": "object", "properties": {"f": limits}}),
            json!({"f": value}),
        );
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap_or_default()
    };
    for (limits, value, text) in [
        (
            json!({"type": "integer"}),
            json!("1"),
            "Invalid value: \"string\": spec.f in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            "Invalid value: \"number\": spec.f in body must be of type integer: \"number\"",
        ),
        (
            json!({"type": "string"}),
            json!(1),
            "Invalid value: \"integer\": spec.f in body must be of type string: \"integer\"",
        ),
        (
            json!({"type": "boolean"}),
            json!([]),
            "Invalid value: \"array\": spec.f in body must be of type boolean: \"array\"",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({}),
            "Invalid value: \"object\": spec.f in body must be of type integer,string: \"object\"",
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("é"),
            "Invalid value: \"é\": spec.f in body should be at least 2 chars long",
        ),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("ab"),
            "Too long: may not be more than 1 byte",
        ),
        (
            json!({"type": "string", "pattern": "^a$"}),
            json!("b"),
            "Invalid value: \"b\": spec.f in body should match '^a$'",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("c"),
            "Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            "Invalid value: 0: spec.f in body should be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!(1),
            "Invalid value: 1: spec.f in body should be greater than 1",
        ),
        (
            json!({"type": "number", "maximum": 1.5}),
            json!(1.75),
            "Invalid value: 1.75: spec.f in body should be less than or equal to 1.5",
        ),
        (
            json!({"type": "integer", "maximum": 5, "exclusiveMaximum": true}),
            json!(5),
            "Invalid value: 5: spec.f in body should be less than 5",
        ),
        (
            json!({"type": "integer", "multipleOf": 4}),
            json!(6),
            "Invalid value: 6: spec.f in body should be a multiple of 4",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            "Invalid value: 0: spec.f in body should have at least 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a", "b"]),
            "Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            "Invalid value: 0: spec.f in body should have at least 1 properties",
        ),
        (
            json!({"type": "object", "maxProperties": 0}),
            json!({"a": 1}),
            "Too many: 1: must have at most 0 items",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("now"),
            "Invalid value: \"now\": spec.f in body must be of type date-time: \"now\"",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            json!(["a", "b", "a", "a"]),
            "",
        ),
    ] {
        if text.is_empty() {
            let found = errors(
                json!({"type": "object", "properties": {"f": limits}}),
                json!({"f": value}),
            );
            assert_eq!(found, ["spec.f[2]: Duplicate value: \"a\""]);
        } else {
            assert_eq!(one(limits, value), format!("spec.f: {text}"));
        }
    }
}

#[test]
fn missing_fields_are_reported_with_their_path() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "object", "required": ["b"]}},
    }});
    assert_eq!(
        errors(schema, json!({"map": {"k": {}}})),
        ["spec.map.k.b: Required value", "spec.a: Required value"]
    );
}

#[test]
fn whole_floats_are_integers_and_integers_are_numbers() {
    let schema = json!({"type": "object", "properties": {"i": {"type": "integer"}, "n": {"type": "number"}}});
    assert_eq!(errors(schema, json!({"i": 3.0, "n": 3})), Vec::<String>::new());
}

#[test]
fn null_is_no_member_of_an_enumeration() {
    let schema = json!({"type": "object", "properties": {"f": {"type": "string", "nullable": true, "enum": ["a"]}}});
    assert_eq!(
        errors(schema, json!({"f": null})),
        ["spec.f: Unsupported value: null: supported values: \"a\""]
    );
}

#[test]
fn alternatives_report_the_closest_failure() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "anyOf": [
        {"required": ["a"]},
        {"required": ["b"], "properties": {"b": {"minLength": 3}}},
    ]});
    assert_eq!(errors(schema.clone(), json!({"b": "long"})), Vec::<String>::new());
    assert_eq!(
        errors(schema, json!({"b": "x"})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)",
            "spec.b: Invalid value: \"x\": spec.b in body should be at least 3 chars long",
        ]
    );
}

#[test]
fn one_of_requires_exactly_one_all_of_every_one_and_not_none() {
    let spec = |word: &str, arms: Value| json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, word: arms});
    let required = json!([{"required": ["a"]}, {"required": ["b"]}]);
    assert_eq!(
        errors(spec("oneOf", required.clone()), json!({"a": "", "b": ""})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives"
        ]
    );
    assert_eq!(
        errors(spec("allOf", required), json!({"a": ""})),
        [
            "spec.b: Required value",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf)"
        ]
    );
    assert_eq!(
        errors(spec("not", json!({"required": ["a"]})), json!({"a": ""})),
        ["<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"]
    );
}

#[test]
fn keys_of_a_map_list_are_unique_and_all_of_them_count() {
    assert_eq!(
        errors(
            map_list(json!({"type": "integer"})),
            json!({"ports": [{"name": "a"}, {"name": "b"}, {"name": "a"}]})
        ),
        ["spec.ports[2]: Duplicate value: {\"name\":\"a\"}"]
    );
    let two = json!({"type": "object", "properties": {"l": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 1}}},
    }}});
    assert_eq!(
        errors(
            two,
            json!({"l": [{"a": "x", "b": 1}, {"a": "x", "b": 2}, {"a": "x"}, {"a": "x"}]})
        ),
        ["spec.l[3]: Duplicate value: {\"a\":\"x\"}"]
    );
}

#[test]
fn an_update_tolerates_errors_in_unchanged_values() {
    let schema = json!({"type": "object", "properties": {
        "old": {"type": "string", "maxLength": 2},
        "new": {"type": "string", "maxLength": 2},
    }});
    let old = json!({"old": "long"});
    assert_eq!(
        update_errors(schema.clone(), old.clone(), json!({"old": "long", "new": "a"})),
        Vec::<String>::new()
    );
    assert_eq!(
        update_errors(schema, old, json!({"old": "longer", "new": "long"})),
        [
            "spec.new: Too long: may not be more than 2 bytes",
            "spec.old: Too long: may not be more than 2 bytes"
        ]
    );
}

#[test]
fn an_update_correlates_items_of_map_lists_by_key_and_of_others_not_at_all() {
    let ports = |a: i64, first: &str| json!({"ports": [{"name": first, "port": 1}, {"name": "a", "port": a}]});
    let schema = map_list(json!({"type": "integer", "maximum": 5}));
    let old = json!({"ports": [{"name": "a", "port": 9}]});
    assert_eq!(
        update_errors(schema.clone(), old.clone(), ports(9, "z")),
        Vec::<String>::new()
    );
    assert_eq!(update_errors(schema, old, ports(8, "z")).len(), 1);

    let atomic =
        json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer", "maximum": 5}}}});
    assert_eq!(
        update_errors(atomic.clone(), json!({"l": [9]}), json!({"l": [9]})),
        Vec::<String>::new()
    );
    assert_eq!(update_errors(atomic, json!({"l": [9]}), json!({"l": [9, 1]})).len(), 1);
}

#[test]
fn an_update_tolerates_no_errors_inside_composites() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "allOf": [{"properties": {"a": {"maxLength": 1}}}]});
    assert_eq!(
        update_errors(schema, json!({"a": "long"}), json!({"a": "long", "b": ""})),
        [
            "spec.a: Too long: may not be more than 1 byte",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf). None validated",
        ]
    );
}

#[test]
fn duplicates_are_tolerated_while_the_old_object_has_some() {
    let schema = map_list(json!({"type": "integer"}));
    let twice = json!({"ports": [{"name": "a"}, {"name": "a"}]});
    assert_eq!(
        update_errors(schema.clone(), twice.clone(), twice.clone()),
        Vec::<String>::new()
    );
    assert_eq!(update_errors(schema, json!({}), twice).len(), 1);
}
