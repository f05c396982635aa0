//! The choice between failing alternatives: the one that passed most checks is reported, counted as in the API server;
//! the first one on a tie.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::{FieldError, Schema};
use serde_json::{Map, Value, json};

/// A value of each form, with the schema that an alternative has for it. All of them pass.
fn form(name: &str) -> (Value, Value) {
    match name {
        "flag" => (json!(true), json!({})),
        "number" => (json!(1), json!({})),
        "integer" => (json!(1), json!({"type": "integer"})),
        "text" => (json!("x"), json!({})),
        "date" => (json!("2024-02-29"), json!({"format": "date"})),
        "list" => (json!([]), json!({})),
        _ => (json!({}), json!({})),
    }
}

/// Adds members of these forms to the object, and returns an alternative that checks them and fails.
fn alternative(prefix: &str, forms: &[&str], object: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    for (index, name) in forms.iter().enumerate() {
        let (value, schema) = form(name);
        object.insert(format!("{prefix}{index}"), value);
        properties.insert(format!("{prefix}{index}"), schema);
    }
    json!({"properties": properties, "required": [prefix]})
}

/// The missing fields of the reported alternative.
fn reported(word: &str, first: &[&str], second: &[&str]) -> Vec<String> {
    let mut object = Map::new();
    let arms = [
        alternative("first", first, &mut object),
        alternative("second", second, &mut object),
    ];
    let schema =
        Schema::parse(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, word: arms})).unwrap();
    let errors = schema.validate(&object.into());
    errors.iter().skip(1).map(FieldError::to_string).collect()
}

#[test]
fn the_alternative_with_most_passed_checks_is_reported() {
    for (first, second, expected) in [
        (vec!["flag"], vec!["flag"], "first"),
        (vec!["flag"], vec!["number"], "second"),
        (vec!["flag"; 2], vec!["flag"; 3], "second"),
        (vec!["flag"; 3], vec!["number"; 2], "first"),
        (vec!["number"; 2], vec!["flag"; 3], "first"),
        (vec!["flag"; 2], vec!["integer"], "first"),
        (vec!["integer"], vec!["flag"; 2], "first"),
        (vec!["text"; 4], vec!["flag"; 5], "first"),
        (vec!["date"], vec!["flag"; 2], "first"),
        (vec!["list"; 2], vec!["flag"; 3], "first"),
        (vec!["map"; 4], vec!["flag"; 5], "first"),
    ] {
        for word in ["anyOf", "oneOf"] {
            assert_eq!(
                reported(word, &first, &second),
                [format!("{expected}: Required value")],
                "{word} {first:?} {second:?}"
            );
        }
    }
}

#[test]
fn failures_are_left_out_when_too_many_alternatives_are_valid() {
    let arms = json!([{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]);
    let schema =
        Schema::parse(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "oneOf": arms})).unwrap();
    assert_eq!(schema.validate(&json!({"a": 1})), []);
    assert_eq!(schema.validate(&json!({"a": 1, "b": 1})).len(), 1);
    let found: Vec<String> = schema.validate(&json!({})).iter().map(FieldError::to_string).collect();
    assert_eq!(
        found,
        [
            "<nil>: Invalid value: \"\": \"\" must validate one and only one schema (oneOf). Found none valid",
            "a: Required value",
        ]
    );
}
