//! Schema nodes.

use serde_json::{Value, json};

use super::super::difference::Direction::{self, Narrower, Other, Wider};
use super::super::schema;
use super::{Row, outline, root, row};

fn compare(upstream: &Value, project: &Value) -> Vec<Row> {
    outline(&schema::compare(&root(), upstream, project).0)
}

fn table<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    serde_saphyr::from_str(text).unwrap()
}

/// Aspect, the looser schema, the stricter one.
const RESTRICTIONS: &str = r#"
- [type, { type: number }, { type: integer }]
- [type, { x-kubernetes-int-or-string: true }, { type: string }]
- [type, { x-kubernetes-int-or-string: true }, { type: integer }]
- [type, {}, { type: object }]
- [enum, { type: string }, { type: string, enum: [a] }]
- [enum, { type: string, enum: [b, a] }, { type: string, enum: [a] }]
- [pattern, { type: string }, { type: string, pattern: ^a$ }]
- [format, { type: string }, { type: string, format: date-time }]
- [format, { type: integer, format: int64 }, { type: integer, format: int32 }]
- [minimum, { minimum: 1 }, { minimum: 2 }]
- [minimum, {}, { minimum: 0 }]
- [maximum, { maximum: 2 }, { maximum: 1 }]
- [maximum, {}, { maximum: 65535 }]
- [exclusiveMinimum, { minimum: 1 }, { minimum: 1, exclusiveMinimum: true }]
- [exclusiveMaximum, { maximum: 1 }, { maximum: 1, exclusiveMaximum: true }]
- [multipleOf, {}, { multipleOf: 2 }]
- [minLength, { minLength: 0 }, { minLength: 1 }]
- [maxLength, { maxLength: 9 }, { maxLength: 8 }]
- [minItems, {}, { minItems: 1 }]
- [maxItems, {}, { maxItems: 1 }]
- [minProperties, {}, { minProperties: 1 }]
- [maxProperties, { maxProperties: 2 }, { maxProperties: 1 }]
- [uniqueItems, {}, { uniqueItems: true }]
- [nullable, { nullable: true }, {}]
- [preserve-unknown, { x-kubernetes-preserve-unknown-fields: true }, {}]
- [preserve-unknown, { additionalProperties: true }, { additionalProperties: false }]
- [x-kubernetes-embedded-resource, {}, { x-kubernetes-embedded-resource: true }]
- [rules, {}, { x-kubernetes-validations: [{ rule: self.a }] }]
- [anyOf, {}, { anyOf: [{ required: [a] }] }]
- [oneOf, {}, { oneOf: [{ required: [a] }] }]
- [allOf, {}, { allOf: [{ required: [a] }] }]
- [not, {}, { not: { required: [a] } }]
"#;

#[test]
fn stricter_restrictions_are_narrower_and_looser_ones_wider() {
    for (aspect, loose, strict) in table::<(String, Value, Value)>(RESTRICTIONS) {
        assert_eq!(
            compare(&loose, &strict),
            [row("", &aspect, Narrower)],
            "{aspect}: {strict}"
        );
        assert_eq!(compare(&strict, &loose), [row("", &aspect, Wider)], "{aspect}: {loose}");
    }
}

/// Aspect, upstream's schema, the project's schema.
const INCOMPARABLE: &str = r"
- [default, { default: 1 }, {}]
- [default, {}, { default: 1 }]
- [default, { default: 1 }, { default: 2 }]
- [type, { type: string }, { type: integer }]
- [pattern, { pattern: ^a$ }, { pattern: '^[a]$' }]
- [enum, { enum: [a, b] }, { enum: [b, c] }]
- [format, { format: date-time }, { format: date }]
- [list-type, {}, { x-kubernetes-list-type: set }]
- [list-type, { x-kubernetes-list-type: set }, { x-kubernetes-list-type: map }]
- [list-keys, { x-kubernetes-list-map-keys: [a, b] }, { x-kubernetes-list-map-keys: [a] }]
";

#[test]
fn unordered_restrictions_count_as_narrower() {
    for (aspect, upstream, project) in table::<(String, Value, Value)>(INCOMPARABLE) {
        assert_eq!(
            compare(&upstream, &project),
            [row("", &aspect, Narrower)],
            "{aspect}: {project}"
        );
    }
}

/// Aspect, upstream's schema, the project's schema.
const NEITHER: &str = r"
- [list-type, { x-kubernetes-list-type: set }, {}]
- [list-keys, { x-kubernetes-list-map-keys: [a] }, { x-kubernetes-list-map-keys: [a, b] }]
- [map-type, {}, { x-kubernetes-map-type: atomic }]
- [map-type, { x-kubernetes-map-type: atomic }, {}]
- [x-new, { x-new: 1 }, {}]
- [x-new, {}, { x-new: 1 }]
";

#[test]
fn differences_without_direction_are_reported() {
    for (aspect, upstream, project) in table::<(String, Value, Value)>(NEITHER) {
        assert_eq!(
            compare(&upstream, &project),
            [row("", &aspect, Other)],
            "{aspect}: {project}"
        );
    }
}

/// Two writings of one meaning.
const EQUAL: &str = r"
- [{ type: integer, format: int64 }, { type: integer }]
- [{ anyOf: [{ type: integer }, { type: string }], x-kubernetes-int-or-string: true }, { x-kubernetes-int-or-string: true }]
- [{ description: upstream }, { description: project }]
- [{ x-kubernetes-list-type: atomic }, {}]
- [{ x-kubernetes-map-type: granular }, {}]
- [{ minLength: 0, nullable: false }, {}]
- [{ enum: [a, b] }, { enum: [b, a] }]
- [{ maximum: 128 }, { maximum: 128.0 }]
";

#[test]
fn equivalent_schemas_are_equal() {
    for (one, other) in table::<(Value, Value)>(EQUAL) {
        assert_eq!(compare(&one, &other), [], "{one} -> {other}");
        assert_eq!(compare(&other, &one), [], "{other} -> {one}");
    }
}

fn object(properties: &str, required: &[&str]) -> Value {
    let properties: Value = serde_saphyr::from_str(properties).unwrap();
    json!({ "properties": { "spec": { "properties": properties, "required": required } } })
}

#[test]
fn missing_added_required_and_optional_members_are_reported() {
    const ONE: &str = "{ a: { type: string } }";
    const TWO: &str = "{ a: { type: string }, b: { type: string } }";
    const FILLED_IN: &str = "{ a: { type: string, default: x } }";
    type Case = (Value, Value, Vec<(&'static str, &'static str, Direction)>);
    let cases: Vec<Case> = vec![
        (object(TWO, &[]), object(ONE, &[]), vec![("b", "property", Narrower)]),
        (object(ONE, &[]), object(TWO, &[]), vec![("b", "property", Wider)]),
        (
            object(ONE, &[]),
            object(TWO, &["b"]),
            vec![("b", "property", Wider), ("b", "required", Narrower)],
        ),
        (object(ONE, &[]), object(ONE, &["a"]), vec![("a", "required", Narrower)]),
        (object(ONE, &["a"]), object(ONE, &[]), vec![("a", "required", Wider)]),
        (object(FILLED_IN, &[]), object(FILLED_IN, &["a"]), vec![]),
    ];
    for (upstream, project, expected) in cases {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(name, aspect, direction)| row(&format!("spec.{name}"), aspect, direction))
            .collect();
        assert_eq!(compare(&upstream, &project), expected, "{upstream} -> {project}");
    }
}

#[test]
fn items_and_map_values_are_compared_at_their_own_path() {
    let list = |item: &Value| json!({ "properties": { "a": { "type": "array", "items": item } } });
    let map = |value: &Value| json!({ "properties": { "a": { "type": "object", "additionalProperties": value } } });
    let (short, long) = (json!({ "maxLength": 1 }), json!({ "maxLength": 2 }));
    assert_eq!(
        compare(&list(&long), &list(&short)),
        [row("a[]", "maxLength", Narrower)]
    );
    assert_eq!(compare(&map(&short), &map(&long)), [row("a{}", "maxLength", Wider)]);
    let closed = json!({ "properties": { "a": { "type": "object" } } });
    assert_eq!(compare(&map(&long), &closed), [row("a{}", "property", Narrower)]);
    assert_eq!(compare(&closed, &map(&long)), [row("a{}", "property", Wider)]);
}

#[test]
fn a_parent_that_keeps_unknown_members_keeps_a_member_it_does_not_describe() {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let mut described = open.clone();
    described["properties"] = json!({ "a": { "type": "string" } });
    assert_eq!(compare(&described, &open), [row("a", "property", Wider)]);
    assert_eq!(compare(&open, &described), [row("a", "property", Narrower)]);
}

#[test]
fn nodes_are_counted_with_their_items_and_values() {
    let schema = json!({ "properties": {
        "a": { "type": "array", "items": { "type": "string" } },
        "b": { "additionalProperties": { "type": "string" } },
    }});
    assert_eq!(schema::compare(&root(), &schema, &schema).1, 5);
    assert_eq!(schema::count(&schema), 5);
}
