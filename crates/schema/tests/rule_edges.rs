//! Edge cases of `x-kubernetes-validations`: paths, messages, nulls, and evaluation errors.
#![cfg(feature = "cel")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldError, Schema};
use serde_json::{Value, json};

fn parse(schema: &Value) -> Schema {
    Schema::parse(schema).expect("the schema of the test parses")
}

fn lines(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

/// The errors of a spec with this rule.
fn broken(rule: &Value, spec: &Value) -> Vec<String> {
    let schema = parse(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "x-kubernetes-validations": [rule], "properties": {
            "size": {"type": "integer"},
            "since": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }}}));
    lines(&schema.validate(&json!({ "spec": spec })))
}

#[test]
fn keys_in_field_paths_are_unescaped() {
    for (written, read) in [
        (r"\a", "\u{7}"),
        (r"\b", "\u{8}"),
        (r"\f", "\u{c}"),
        (r"\n", "\n"),
        (r"\r", "\r"),
        (r"\t", "\t"),
        (r"\v", "\u{b}"),
        (r"\'", "'"),
        (r"\\", "\\"),
    ] {
        let rule = json!({"rule": "false", "message": "m", "fieldPath": format!(".labels['x{written}']")});
        assert_eq!(
            broken(&rule, &json!({})),
            [format!("spec.labels[x{read}]: Invalid value: m")],
            "{written}"
        );
    }
    for path in [r".labels['\x']", ".labels['x'", ".labels[x]", ".", ".none", ".size.x"] {
        let rule = json!({"rule": "true", "fieldPath": path});
        let schema = parse(&json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-validations": [rule],
            "properties": {"size": {"type": "integer"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}}},
        }}}));
        let found = lines(&schema.violations());
        assert!(
            found.len() == 1 && found.concat().ends_with("must be a valid path"),
            "{path}: {found:?}"
        );
    }
}

#[test]
fn computed_messages_are_shown_unless_empty_or_too_long() {
    let limit = 5 * 1024;
    for (text, shown) in [
        ("", "m".to_owned()),
        ("  ", "m".to_owned()),
        (" x ", "x".to_owned()),
        (&"x".repeat(limit), "x".repeat(limit)),
        (&"x".repeat(limit + 1), "m".to_owned()),
    ] {
        let rule = json!({"rule": "false", "message": "m", "messageExpression": format!("'{text}'")});
        assert_eq!(
            broken(&rule, &json!({})),
            [format!("spec: Invalid value: {shown}")],
            "{}",
            text.len()
        );
    }
}

#[test]
fn evaluation_errors_of_rules_are_reported() {
    for (rule, spec, problem) in [
        (
            "undeclared == 1",
            json!({}),
            "undeclared reference to 'undeclared' evaluating rule",
        ),
        (
            "1 % self.size == 0",
            json!({"size": 0}),
            "modulus by zero evaluating rule",
        ),
        (
            "9223372036854775807 + self.size > 0",
            json!({"size": 1}),
            "integer overflow evaluating rule",
        ),
        (
            "[1][self.size] == 1",
            json!({"size": 2}),
            "index out of bounds: 2 evaluating rule",
        ),
        (
            "self.size + 'x' == ''",
            json!({"size": 2}),
            "'no such overload': call arguments did not match a supported operator, function or macro signature for rule",
        ),
        (
            "timestamp(self.since) > timestamp('2024-01-01T00:00:00Z')",
            json!({"since": "soon"}),
            "timestamp: ",
        ),
    ] {
        let found = broken(&json!({ "rule": rule }), &spec).concat();
        let start = format!("spec: Invalid value: \"object\": {problem}");
        assert!(found.starts_with(&start), "{rule}: {found}");
    }
}

#[test]
fn rules_skip_nulls_and_read_untyped_values() {
    let schema = parse(&json!({"type": "object", "properties": {
        "a": {"type": "string", "nullable": true, "x-kubernetes-validations": [{"rule": "self == 'a'"}]},
        "open": {"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "self.x == 1"}]},
    }}));
    assert_eq!(schema.validate(&json!({"a": null, "open": {"x": 1}})), []);
    assert_eq!(schema.validate(&json!({"a": "b", "open": {"x": 2}})).len(), 2);
}

#[test]
fn a_failed_rule_over_the_type_of_an_object_is_never_tolerated() {
    let rule = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == ''"}]});
    for (name, errors) in [("apiVersion", 1), ("kind", 1), ("mood", 0)] {
        let schema = parse(&json!({"type": "object", "properties": {name: rule}}));
        let object = json!({name: "x"});
        assert_eq!(schema.validate_update(&object, &object).len(), errors, "{name}");
        let schema =
            parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {name: rule}}}}));
        let object = json!({"spec": {name: "x"}});
        assert_eq!(schema.validate_update(&object, &object), [], "spec.{name}");
    }
}

#[test]
fn rules_receive_times_as_times_and_the_type_of_the_object_as_text() {
    let rules = json!([
        {"rule": "self.apiVersion == 'v1' && self.kind == 'W'"},
        {"rule": "self.ratio / 2.0 < 1.0"},
        {"rule": "self.day < timestamp('2024-02-29T00:00:01Z')"},
        {"rule": "self.span < duration('2h')"},
        {"rule": "!has(self.open)"},
    ]);
    let schema = parse(
        &json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
            "ratio": {"type": "number"},
            "day": {"type": "string", "format": "date"},
            "span": {"type": "string", "format": "duration"},
            "open": {"x-kubernetes-preserve-unknown-fields": true},
        }}),
    );
    let object = |ratio: i64, day: &str, span: &str| json!({"apiVersion": "v1", "kind": "W", "ratio": ratio, "day": day, "span": span, "open": 1});
    assert_eq!(schema.validate(&object(1, "2024-02-29", "90m")), []);
    assert_eq!(schema.validate(&object(2, "2024-03-01", "3h")).len(), 3);
}

#[test]
fn lists_with_keys_are_equal_in_any_order() {
    let items =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    let schema = parse(
        &json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.l == oldSelf.l"}], "properties": {
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": items},
        }}),
    );
    let list = |order: [(&str, i64); 3]| json!({"l": order.map(|(a, b)| json!({"a": a, "b": b}))});
    let old = list([("x", 1), ("y", 2), ("z", 3)]);
    let moved = list([("z", 3), ("x", 1), ("y", 2)]);
    assert_eq!(schema.validate_update(&moved, &old), []);
    let changed = list([("z", 3), ("x", 1), ("y", 4)]);
    assert_eq!(schema.validate_update(&changed, &old).len(), 1);
}
