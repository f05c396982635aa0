//! Limits from both sides, and formats of values that are no text.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldError, Schema};
use serde_json::{Value, json};

fn errors(limits: &Value, value: &Value) -> Vec<String> {
    let schema = Schema::parse(&json!({"type": "object", "properties": {"f": limits}})).unwrap();
    let errors = schema.validate(&json!({ "f": value }));
    errors.iter().map(FieldError::to_string).collect()
}

#[test]
fn values_at_the_limits_are_accepted() {
    let list = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1, "uniqueItems": true});
    for (limits, value) in [
        (json!({"type": "string", "minLength": 1, "maxLength": 1}), json!("é")),
        (list, json!(["a"])),
        (
            json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": true}),
            json!({"a": 1}),
        ),
        (json!({"type": "integer", "minimum": 1, "maximum": 1}), json!(1)),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            json!(["a", "b"]),
        ),
    ] {
        assert_eq!(errors(&limits, &value), Vec::<String>::new(), "{value}");
    }
    let unique = json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true});
    assert_eq!(
        errors(&unique, &json!(["a", "b", "a"])),
        ["f: Invalid value: \"\": f in body shouldn't contain duplicates"]
    );
}

#[test]
fn multiples_use_whole_factors_for_integers_and_fractions_for_floats() {
    for (ty, factor, value, fits) in [
        ("integer", json!(4), json!(8), true),
        ("integer", json!(4), json!(0), true),
        ("integer", json!(4), json!(-8), true),
        ("integer", json!(4), json!(9), false),
        ("number", json!(0.5), json!(1.5), true),
        ("number", json!(0.5), json!(1.25), false),
        ("number", json!(0.1), json!(0.3), true),
        ("number", json!(2.5), json!(7.5), true),
        ("number", json!(2.5), json!(6.0), false),
        ("number", json!(1.0), json!(2.5), false),
    ] {
        let limits = json!({"type": ty, "multipleOf": factor});
        let expected = if fits {
            vec![]
        } else {
            vec![format!(
                "f: Invalid value: {}: f in body should be a multiple of {}",
                value.to_string().trim_end_matches(".0"),
                factor.to_string().trim_end_matches(".0")
            )]
        };
        assert_eq!(errors(&limits, &value), expected, "{value} by {factor}");
    }
    for (factor, value, text) in [(json!(-0.5), json!(1.5), "-0.5"), (json!(0.5), json!(1), "0")] {
        assert_eq!(
            errors(&json!({"type": "number", "multipleOf": factor}), &value),
            [format!(
                "f: Invalid value: {text}: factor MultipleOf declared for f must be positive: {text}"
            )]
        );
    }
}

#[test]
fn a_format_replaces_the_type() {
    let type_error = |wanted: &str, found: &str| {
        vec![format!(
            "f: Invalid value: \"{found}\": f in body must be of type {wanted}: \"{found}\""
        )]
    };
    for (ty, format, value, expected) in [
        ("string", "date", json!([]), vec![]),
        ("boolean", "date", json!("2024-02-29"), vec![]),
        ("boolean", "date", json!("soon"), type_error("date", "soon")),
        ("string", "date", json!(1), type_error("date", "int64")),
        ("string", "date", json!(1.5), type_error("date", "float64")),
        ("string", "date", json!(true), type_error("date", "")),
        ("integer", "uri", json!(1), vec![]),
        ("integer", "uri", json!("/a"), type_error("integer", "string")),
        ("number", "uri", json!("/a"), type_error("number", "string")),
    ] {
        let limits = json!({"type": ty, "format": format});
        assert_eq!(errors(&limits, &value), expected, "{limits} {value}");
    }
}

#[test]
fn an_error_in_the_type_of_an_object_is_never_tolerated() {
    let short = json!({"type": "string", "maxLength": 1});
    for (name, count) in [("apiVersion", 1), ("kind", 1), ("mood", 0)] {
        let spec = json!({"type": "object", "properties": {name: short}});
        let schema = Schema::parse(&json!({"type": "object", "properties": {name: short, "spec": spec}})).unwrap();
        let object = json!({name: "long", "spec": {name: "long"}});
        let mut changed = object.clone();
        changed["other"] = json!(1);
        assert_eq!(schema.validate_update(&changed, &object).len(), count, "{name}");
    }
}

#[test]
fn numbers_are_compared_in_the_type_of_the_enumeration_member() {
    for (members, value, fits) in [
        (json!([1, 3]), json!(3), true),
        (json!([1, 3]), json!(2), false),
        (json!([1, 3]), json!(3.5), true),
        (json!([1, 3]), json!(2.5), false),
        (json!([1.5, 3.0]), json!(3), true),
        (json!([1.5, 3.0]), json!(1), false),
        (json!([1.5, 3.0]), json!(1.5), true),
        (json!([1.5, 3.0]), json!(2.5), false),
    ] {
        let limits = json!({"type": "number", "enum": members});
        assert_eq!(errors(&limits, &value).is_empty(), fits, "{value} of {members}");
    }
}
