//! Schemas that parse but may not stand in a CRD, and schemas that do not parse.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use metal3_schema::Schema;
use serde_json::{Value, json};

fn violations(spec: Value) -> Vec<String> {
    let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).expect("parses");
    let base = "openAPIV3Schema.properties[spec]";
    schema
        .violations()
        .iter()
        .map(|error| error.to_string().replace(base, "S"))
        .collect()
}

fn refusal(schema: Value) -> String {
    Schema::parse(&schema).expect_err("does not parse").to_string()
}

#[test]
fn a_sound_schema_has_no_violations() {
    assert_eq!(
        violations(json!({
            "type": "object",
            "description": "d",
            "properties": {
                "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "ref": {"x-kubernetes-int-or-string": true,
                    "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maxLength": 3}]},
                "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                    "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
                "free": {"x-kubernetes-preserve-unknown-fields": true},
                "size": {"type": "integer", "default": 3, "maximum": 3},
            },
            "oneOf": [{"required": ["port"]}, {"properties": {"size": {"minimum": 1}}}],
        })),
        Vec::<String>::new()
    );
}

#[test]
fn every_node_names_its_type() {
    for (schema, text) in [
        (
            json!({}),
            "S.type: Required value: must not be empty for specified object fields",
        ),
        (json!({"type": "array"}), "S.items: Required value: must be specified"),
        (
            json!({"type": "array", "items": {}}),
            "S.items.type: Required value: must not be empty for specified array items",
        ),
    ] {
        assert_eq!(violations(schema), [text]);
    }
}

#[test]
fn alternatives_say_nothing_about_structure() {
    assert_eq!(
        violations(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{
                "type": "object", "description": "d", "properties": {"a": {"default": "", "nullable": true}, "metadata": {}},
            }]})
        ),
        [
            "S.anyOf[0].description: Forbidden: must be empty to be structural",
            "S.anyOf[0].properties[a].default: Forbidden: must be undefined to be structural",
            "S.anyOf[0].properties[a].nullable: Forbidden: must be false to be structural",
            "S.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
            "S.anyOf[0].type: Forbidden: must be empty to be structural",
        ]
    );
}

#[test]
fn list_and_map_words_agree_with_their_neighbours() {
    for (schema, text) in [
        (
            json!({"type": "string", "x-kubernetes-list-type": "set"}),
            "S.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
            "S.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
                "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            "S.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it \
             must have a default or be a required property",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": true}}),
            "S.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "S.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
    ] {
        assert_eq!(violations(schema), [text]);
    }
}

#[test]
fn defaults_are_valid_and_pruned() {
    assert_eq!(
        violations(json!({"type": "object", "properties": {
            "size": {"type": "integer", "maximum": 1, "default": 2},
            "disk": {"type": "object", "default": {"x": 1}, "properties": {"y": {"type": "string"}}},
        }})),
        [
            "S.properties[disk].default: Invalid value: {\"x\":1}: must not have unknown fields",
            "S.properties[size].default: Invalid value: 2:  in body should be less than or equal to 1",
        ]
    );
}

#[test]
fn the_root_is_an_object_with_plain_metadata() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "kind": {"type": "integer"},
        "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
        "apiVersion": {"type": "string", "default": "a"},
    }}))
    .expect("parses");
    let found: Vec<String> = schema.violations().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "openAPIV3Schema.properties[apiVersion].default: Forbidden: must not be set in top-level apiVersion",
            "openAPIV3Schema.properties[kind].type: Invalid value: \"integer\": must be string",
            "openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and \
             generateName, but metadata is implicitly specified",
        ]
    );
}

#[test]
fn what_cannot_be_evaluated_is_refused_with_its_place_and_a_cure() {
    for (schema, text) in [
        (json!([]), "openAPIV3Schema: must be an object"),
        (
            json!({"properties": {"a": {"$ref": "#/x"}}}),
            "openAPIV3Schema.properties[a]: `$ref` is not supported; write the schema out where it is used",
        ),
        (
            json!({"patternProperties": {}}),
            "openAPIV3Schema: `patternProperties` is not supported; use `additionalProperties` with a rule on its keys",
        ),
        (
            json!({"maxLenght": 1}),
            "openAPIV3Schema: `maxLenght` is not supported; remove it",
        ),
        (
            json!({"type": "text"}),
            "openAPIV3Schema.type: must be one of array, boolean, integer, number, object, string",
        ),
        (
            json!({"minLength": -1}),
            "openAPIV3Schema.minLength: must be a whole number, not negative",
        ),
        (json!({"items": []}), "openAPIV3Schema.items: must be an object"),
        (
            json!({"format": "email"}),
            "openAPIV3Schema: `format: email` is not supported; use a `pattern`",
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": false}),
            "openAPIV3Schema.x-kubernetes-preserve-unknown-fields: must be true or undefined",
        ),
    ] {
        assert_eq!(refusal(schema), text);
    }
    assert!(refusal(json!({"pattern": "("})).starts_with("openAPIV3Schema.pattern: `(` is not a regular expression"));
}

#[test]
fn schemas_nested_without_end_are_refused() {
    let deep = (0..200).fold(
        json!({"type": "object"}),
        |inner, _| json!({"type": "array", "items": inner}),
    );
    assert!(refusal(deep).contains("flatten it"));
}

#[cfg(not(feature = "cel"))]
#[test]
fn rules_are_refused_when_nothing_can_evaluate_them() {
    assert_eq!(
        refusal(json!({"type": "object", "x-kubernetes-validations": [{"rule": "true"}]})),
        "openAPIV3Schema.x-kubernetes-validations[0].rule: `true` is not a rule: rules need the feature `cel` of this crate"
    );
}
