//! Schemas that parse but are not allowed in a CRD, and schemas that do not parse.
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
fn a_valid_schema_has_no_violations() {
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
fn every_node_declares_its_type() {
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
        (
            json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            "S.type: Required value: must be object if x-kubernetes-embedded-resource is true",
        ),
    ] {
        assert_eq!(violations(schema), [text]);
    }
}

#[test]
fn int_or_string_alternatives_may_declare_types() {
    let pair = json!({"anyOf": [{"type": "integer"}, {"type": "string"}]});
    assert_eq!(
        violations(json!({"x-kubernetes-int-or-string": true, "allOf": [pair, pair]})),
        [
            "S.allOf[1].anyOf[0].type: Forbidden: must be empty to be structural",
            "S.allOf[1].anyOf[1].type: Forbidden: must be empty to be structural",
        ]
    );
    let more = json!([{"type": "integer", "items": {}}, {"type": "string"}]);
    assert_eq!(
        violations(json!({"x-kubernetes-int-or-string": true, "anyOf": more})),
        [
            "S.anyOf[0].type: Forbidden: must be empty to be structural",
            "S.anyOf[1].type: Forbidden: must be empty to be structural",
        ]
    );
}

#[test]
fn alternatives_declare_no_structure() {
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
fn alternatives_may_close_an_object_and_not_open_it() {
    let arm = |additional: Value| {
        violations(json!({"type": "object", "properties": {"a": {"type": "string"}},
            "anyOf": [{"additionalProperties": additional}]}))
    };
    let forbidden = "S.anyOf[0].additionalProperties: Forbidden: must be undefined to be structural";
    assert_eq!(arm(json!(false)), Vec::<String>::new());
    assert_eq!(arm(json!(true)), [forbidden]);
    assert_eq!(arm(json!({"minLength": 1})), [forbidden]);
}

#[test]
fn items_of_a_set_are_atomic() {
    let set = |items: Value| violations(json!({"type": "array", "x-kubernetes-list-type": "set", "items": items}));
    let list = |list_type: Option<&str>| {
        let mut list = json!({"type": "array", "items": {"type": "string"}});
        if let Some(list_type) = list_type {
            list["x-kubernetes-list-type"] = list_type.into();
        }
        set(list)
    };
    let atomic = "must be atomic as item of a list with x-kubernetes-list-type=set";
    for list_type in [None, Some("atomic")] {
        assert_eq!(list(list_type), Vec::<String>::new());
    }
    for list_type in ["set", "map"] {
        let text = format!("S.items.x-kubernetes-list-type: Invalid value: \"{list_type}\": {atomic}");
        let found = list(Some(list_type));
        assert!(found.contains(&text), "{found:?}");
    }
    assert_eq!(
        set(json!({"type": "object", "x-kubernetes-map-type": "atomic"})),
        Vec::<String>::new()
    );
    for items in [
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-map-type": "granular"}),
    ] {
        assert_eq!(
            set(items),
            [format!("S.items.x-kubernetes-map-type: Invalid value: null: {atomic}")]
        );
    }
}

#[test]
fn defaults_in_type_and_metadata_have_no_further_errors() {
    let root = |name: &str, schema: Value| {
        let schema = Schema::parse(&json!({"type": "object", "properties": {name: schema}})).expect("parses");
        let found: Vec<String> = schema.violations().iter().map(ToString::to_string).collect();
        found
    };
    for (name, ty, default) in [("kind", "string", json!("K")), ("metadata", "object", json!({}))] {
        assert_eq!(
            root(name, json!({"type": ty, "default": default})),
            [format!(
                "openAPIV3Schema.properties[{name}].default: Forbidden: must not be set in top-level {name}"
            )]
        );
    }
    let name = json!({"type": "object", "properties": {"name": {"type": "string", "default": 1}}});
    assert_eq!(root("metadata", name.clone()), Vec::<String>::new());
    assert_eq!(root("spec", name).len(), 1);
    assert_eq!(root("spec", json!({"type": "string", "default": 1})).len(), 1);
}

#[test]
fn list_and_map_keywords_agree_with_each_other() {
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
fn unsupported_keywords_are_rejected_with_path_and_cure() {
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
            json!({"dependencies": {}}),
            "openAPIV3Schema: `dependencies` is not supported; use a rule in `x-kubernetes-validations`",
        ),
        (
            json!({"additionalItems": {}}),
            "openAPIV3Schema: `additionalItems` is not supported; use one schema in `items`",
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
fn schemas_nested_too_deep_are_rejected() {
    let ways: [fn(Value) -> Value; 4] = [
        |inner| json!({"type": "array", "items": inner}),
        |inner| json!({"type": "object", "properties": {"a": inner}}),
        |inner| json!({"type": "object", "additionalProperties": inner}),
        |inner| json!({"type": "object", "allOf": [inner]}),
    ];
    for nest in ways {
        let deep = |levels: usize| (0..levels).fold(json!({"type": "object"}), |inner, _| nest(inner));
        assert!(Schema::parse(&deep(96)).is_ok(), "{}", nest(json!({})));
        for levels in [97, 200] {
            assert!(refusal(deep(levels)).contains("flatten it"), "{}", nest(json!({})));
        }
    }
}

#[test]
fn keywords_of_metadata_count_only_with_an_effective_value() {
    for (word, value, counts) in [
        ("required", json!([]), false),
        ("required", json!(["name"]), true),
        ("description", json!(""), false),
        ("description", json!("d"), true),
        ("nullable", json!(false), false),
        ("maxProperties", json!(0), true),
        ("not", json!({}), true),
        ("additionalProperties", json!(false), true),
        (
            "properties",
            json!({"name": {"type": "string"}, "generateName": {"type": "string"}}),
            false,
        ),
        (
            "properties",
            json!({"name": {"type": "string"}, "uid": {"type": "string"}}),
            true,
        ),
    ] {
        let metadata = json!({"type": "object", word: value});
        let schema = Schema::parse(&json!({"type": "object", "properties": {"metadata": metadata}})).expect("parses");
        assert_eq!(!schema.violations().is_empty(), counts, "{metadata}");
    }
}

#[cfg(not(feature = "cel"))]
#[test]
fn rules_are_rejected_without_the_cel_feature() {
    assert_eq!(
        refusal(json!({"type": "object", "x-kubernetes-validations": [{"rule": "true"}]})),
        "openAPIV3Schema.x-kubernetes-validations[0].rule: `true` is not a rule: rules need the feature `cel` of this crate"
    );
}
