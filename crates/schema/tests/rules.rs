//! Rules of `x-kubernetes-validations`.
#![cfg(feature = "cel")]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldError, Schema};
use serde_json::{Value, json};

fn schema(spec: Value) -> Schema {
    let root = json!({"type": "object", "properties": {"metadata": {"type": "object"}, "spec": spec}});
    Schema::parse(&root).expect("the schema of the test parses")
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
