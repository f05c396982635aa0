//! Rules of `x-kubernetes-validations`, and their edge cases: paths, messages, nulls, and evaluation errors.
#![cfg(feature = "cel")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldError, Schema};
use serde_json::{Value, json};

fn parse(schema: &Value) -> Schema {
    Schema::parse(schema).expect("the schema of the test parses")
}

fn schema(spec: Value) -> Schema {
    parse(&json!({"type": "object", "properties": {"metadata": {"type": "object"}, "spec": spec}}))
}

/// A spec with a few fields and these rules.
fn with_rules(rules: Value) -> Schema {
    schema(
        json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
            "size": {"type": "integer"},
            "ratio": {"type": "number"},
            "name-of": {"type": "string"},
            "since": {"type": "string", "format": "date-time"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }}),
    )
}

fn lines(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

fn create(schema: &Schema, spec: Value) -> Vec<String> {
    lines(&schema.validate(&json!({"metadata": {"name": "w", "labels": {"a": "b"}}, "spec": spec})))
}

fn update(schema: &Schema, old: Value, new: Value) -> Vec<String> {
    lines(&schema.validate_update(&json!({"spec": new}), &json!({"spec": old})))
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

const NONE: [&str; 0] = [];

#[test]
fn a_failed_rule_reports_its_source_or_its_message() {
    let plain = with_rules(json!([{"rule": " self.size > 2 "}]));
    assert_eq!(create(&plain, json!({"size": 3})), NONE);
    assert_eq!(
        create(&plain, json!({"size": 2})),
        ["spec: Invalid value: failed rule: self.size > 2"]
    );
    let spoken = with_rules(json!([{"rule": "self.size > 2", "message": "too small"}]));
    assert_eq!(create(&spoken, json!({"size": 2})), ["spec: Invalid value: too small"]);
}

#[test]
fn reason_field_path_and_computed_message_are_in_the_error() {
    let with = |extra: Value| {
        let mut rule = json!({"rule": "self.size > 2", "message": "too small"});
        rule.as_object_mut()
            .expect("a map")
            .extend(extra.as_object().expect("a map").clone());
        create(&with_rules(json!([rule])), json!({"size": 2}))
    };
    assert_eq!(
        with(json!({"reason": "FieldValueForbidden"})),
        ["spec: Forbidden: too small"]
    );
    assert_eq!(
        with(json!({"reason": "FieldValueRequired", "fieldPath": ".size"})),
        ["spec.size: Required value: too small"]
    );
    assert_eq!(
        with(json!({"reason": "FieldValueDuplicate"})),
        ["spec: Duplicate value"]
    );
    assert_eq!(
        with(json!({"fieldPath": ".labels['a.b']"})),
        ["spec.labels[a.b]: Invalid value: too small"]
    );
    assert_eq!(
        with(json!({"messageExpression": "'size is ' + string(self.size)"})),
        ["spec: Invalid value: size is 2"]
    );
    assert_eq!(
        with(json!({"messageExpression": "'two\\nlines'"})),
        ["spec: Invalid value: too small"]
    );
}

#[test]
fn rules_receive_typed_values_with_escaped_names() {
    let schema = with_rules(json!([
        {"rule": "!has(self.ratio) || self.ratio / 2.0 < 1.0"},
        {"rule": "!has(self.since) || self.since < timestamp('2030-01-01T00:00:00Z')"},
        {"rule": "!has(self.name__dash__of) || self.name__dash__of.startsWith('a')"},
        {"rule": "!has(self.labels) || self.labels.all(key, key.size() == 1)"},
    ]));
    let good = json!({"ratio": 1, "since": "2024-01-01T00:00:00Z", "name-of": "ab", "labels": {"x": "y"}});
    assert_eq!(create(&schema, good), NONE);
    let bad = json!({"ratio": 2, "since": "2031-01-01T00:00:00Z", "name-of": "b", "labels": {"xx": "y"}});
    assert_eq!(create(&schema, bad).len(), 4);
}

#[test]
fn rules_at_the_root_receive_the_name_and_no_other_metadata() {
    let root = |rule: &str| {
        Schema::parse(&json!({"type": "object", "properties": {}, "x-kubernetes-validations": [{"rule": rule}]}))
            .expect("parses")
    };
    let object = json!({"apiVersion": "v1", "kind": "W", "metadata": {"name": "w", "labels": {}}});
    assert_eq!(
        root("self.metadata.name == 'w' && self.kind == 'W'").validate(&object),
        []
    );
    assert_eq!(
        lines(&root("size(self.metadata) == 2").validate(&object)),
        ["<nil>: Invalid value: failed rule: size(self.metadata) == 2"]
    );
}

#[test]
fn transition_rules_run_when_there_is_an_old_value() {
    let immutable = with_rules(json!([{"rule": "self.size == oldSelf.size", "message": "size is immutable"}]));
    assert_eq!(create(&immutable, json!({"size": 1})), NONE);
    assert_eq!(update(&immutable, json!({"size": 1}), json!({"size": 1})), NONE);
    assert_eq!(
        update(&immutable, json!({"size": 1}), json!({"size": 2})),
        ["spec: Invalid value: size is immutable"]
    );
    let optional = with_rules(json!([{
        "rule": "oldSelf.hasValue() ? oldSelf.value().size <= self.size : self.size == 0", "optionalOldSelf": true,
        "message": "starts at 0 and grows",
    }]));
    assert_eq!(create(&optional, json!({"size": 0})), NONE);
    assert_eq!(
        create(&optional, json!({"size": 1})),
        ["spec: Invalid value: starts at 0 and grows"]
    );
    assert_eq!(update(&optional, json!({"size": 2}), json!({"size": 1})).len(), 1);
}

#[test]
fn items_of_map_lists_correlate_by_key() {
    let ports = schema(json!({"type": "object", "properties": {"ports": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.port == oldSelf.port"}]},
    }}}));
    let list = |a: i64, b: i64| json!({"ports": [{"name": "b", "port": b}, {"name": "a", "port": a}]});
    let old = json!({"ports": [{"name": "a", "port": 1}]});
    assert_eq!(update(&ports, old.clone(), list(1, 7)), NONE);
    assert_eq!(
        update(&ports, old, list(2, 7)),
        ["spec.ports[1]: Invalid value: failed rule: self.port == oldSelf.port"]
    );
}

#[test]
fn lists_of_type_set_and_map_are_equal_in_any_order() {
    let list = |kind: &str| {
        schema(json!({
            "type": "object", "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
            "properties": {"l": {"type": "array", "x-kubernetes-list-type": kind, "items": {"type": "string"}}},
        }))
    };
    let (old, new) = (json!({"l": ["a", "b"]}), json!({"l": ["b", "a"]}));
    assert_eq!(update(&list("set"), old.clone(), new.clone()), NONE);
    assert_eq!(update(&list("set"), old.clone(), json!({"l": ["b", "c"]})).len(), 1);
    assert_eq!(update(&list("atomic"), old, new).len(), 1);
}

#[test]
fn an_update_tolerates_a_failed_rule_over_an_unchanged_value() {
    let schema = schema(json!({"type": "object", "properties": {
        "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]},
        "size": {"type": "integer"},
    }}));
    assert_eq!(
        create(&schema, json!({"name": "bad"})),
        ["spec.name: Invalid value: \"bad\": failed rule: self != 'bad'"]
    );
    assert_eq!(
        update(&schema, json!({"name": "bad"}), json!({"name": "bad", "size": 1})),
        NONE
    );
    assert_eq!(
        update(&schema, json!({"name": "good"}), json!({"name": "bad"})).len(),
        1
    );
}

#[test]
fn a_rule_that_cannot_be_evaluated_is_an_error() {
    let schema =
        with_rules(json!([{"rule": "self.labels['a'] == 'b'"}, {"rule": "10 / self.size > 1"}, {"rule": "self.size"}]));
    assert_eq!(
        create(&schema, json!({"size": 0, "labels": {}})),
        [
            "spec: Invalid value: \"object\": no such key: a evaluating rule: self.labels['a'] == 'b'",
            "spec: Invalid value: \"object\": division by zero evaluating rule: 10 / self.size > 1",
            "spec: Invalid value: \"object\": the rule is neither true nor false evaluating rule: self.size",
        ]
    );
}

/// The library panics for the least exponent.
#[test]
fn a_rule_that_the_evaluator_cannot_compute_is_an_error() {
    let rule = json!([{"rule": "quantity(self.labels.size).isInteger()"}]);
    let errors = create(&with_rules(rule), json!({"labels": {"size": ".0e-2147483648"}}));
    assert!(
        errors.iter().any(|error| error.contains("cannot be evaluated")),
        "{errors:?}"
    );
}

#[test]
fn rules_run_only_when_the_object_has_the_right_types() {
    let schema = with_rules(json!([{"rule": "self.size > 2"}]));
    assert_eq!(
        create(&schema, json!({"size": "1"})),
        [
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
             correct \
             the existing errors to complete validation",
        ]
    );
}

#[test]
fn rules_that_do_not_compile_are_rejected_with_the_schema() {
    let refusal = |rule: Value| {
        Schema::parse(&json!({"type": "object", "x-kubernetes-validations": [rule]}))
            .expect_err("refused")
            .to_string()
    };
    let place = "openAPIV3Schema.x-kubernetes-validations[0]";
    assert!(
        refusal(json!({"rule": "self ==", "message": "m"}))
            .starts_with(&format!("{place}.rule: `self ==` is not a rule"))
    );
    assert_eq!(
        refusal(json!({"rule": "type(self) == int"})),
        format!("{place}.rule: `type(self) == int` is not a rule: the function `type` is not available")
    );
    assert!(
        refusal(json!({"rule": "true", "messageExpression": "("})).starts_with(&format!("{place}.messageExpression"))
    );
    assert_eq!(
        refusal(json!({"rul": "true"})),
        format!("{place}: `rul` is not supported; remove it")
    );
}

#[test]
fn a_rule_is_checked_in_its_context() {
    let found = |spec: Value| {
        let base = "openAPIV3Schema.properties[spec]";
        lines(&schema(spec).violations())
            .iter()
            .map(|line| line.replace(base, "S"))
            .collect::<Vec<_>>()
    };
    let list = |rule: Value| json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [rule]}});
    assert_eq!(
        found(list(json!({"rule": "self != ''", "reason": "FieldValueInvalid"}))),
        NONE
    );
    assert_eq!(
        found(list(json!({"rule": "self == oldSelf"}))),
        [
            "S.items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be used on \
             the \
          uncorrelatable portion of the schema within S"
        ]
    );
    assert_eq!(
        found(list(
            json!({"rule": "true", "reason": "Wrong", "fieldPath": ".x", "message": "a\nb", "optionalOldSelf": true})
        )),
        [
            "S.items.x-kubernetes-validations[0].fieldPath: Invalid value: \".x\": must be a valid path",
            "S.items.x-kubernetes-validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
            "S.items.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is \
             not \
             used in rule",
            "S.items.x-kubernetes-validations[0].reason: Unsupported value: \"Wrong\": supported values: \
             \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
        ]
    );
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
