//! Properties of all schemas and objects. Proptest prints and keeps failing cases.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use metal3_schema::{CustomResource, Schema, Scope, metadata_errors, metadata_update_errors};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NAMES: [&str; 6] = ["a", "b", "c", "metadata", "kind", "x.y"];

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(NAMES.to_vec()).prop_map(String::from)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..6).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// One keyword with a value that is often, but not always, valid.
fn keyword(inner: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = (String, Value)> {
    let list = proptest::collection::vec(inner.clone(), 1..3).prop_map(Value::from);
    let keywords = prop_oneof![
        (
            -1_i64..4,
            proptest::sample::select(vec![
                "minimum",
                "maximum",
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "maxProperties",
                "multipleOf"
            ])
        )
            .prop_map(|(count, word)| (word.to_owned(), Value::from(count))),
        proptest::sample::select(vec![
            "nullable",
            "exclusiveMinimum",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string"
        ])
        .prop_map(|word| (word.to_owned(), Value::from(true))),
        proptest::collection::vec(scalar(), 0..3).prop_map(|values| ("enum".to_owned(), Value::from(values))),
        proptest::collection::vec(name(), 0..3).prop_map(|names| ("required".to_owned(), Value::from(names))),
        proptest::sample::select(vec!["^a", "[b-c]+$", r"\d"]).prop_map(|text| ("pattern".to_owned(), text.into())),
        proptest::sample::select(vec!["date-time", "ipv4", "int32", "uri", "duration", "hostname"])
            .prop_map(|text| ("format".to_owned(), text.into())),
        proptest::sample::select(vec!["set", "map", "atomic"])
            .prop_map(|text| ("x-kubernetes-list-type".to_owned(), text.into())),
        document().prop_map(|value| ("default".to_owned(), value)),
    ];
    prop_oneof![
        4 => keywords,
        1 => (list, proptest::sample::select(vec!["anyOf", "oneOf", "allOf"])).prop_map(|(arms, word)| (word.to_owned(), arms)),
        1 => inner.prop_map(|schema| ("not".to_owned(), schema)),
    ]
}

/// A schema of some type with a few keywords, valid or not.
fn schema() -> impl Strategy<Value = Value> {
    let leaf =
        proptest::sample::select(vec!["string", "integer", "number", "boolean"]).prop_map(|ty| json!({"type": ty}));
    leaf.boxed().prop_recursive(4, 24, 4, |inner| {
        let object = proptest::collection::btree_map(name(), inner.clone(), 1..4)
            .prop_map(|properties| json!({"type": "object", "properties": properties}));
        let map = inner
            .clone()
            .prop_map(|entry| json!({"type": "object", "additionalProperties": entry}));
        let list = inner.clone().prop_map(|items| json!({"type": "array", "items": items}));
        let shape = prop_oneof![3 => object, 1 => map, 1 => list, 1 => inner.clone()];
        (shape, proptest::collection::vec(keyword(inner), 0..3)).prop_map(|(mut schema, keywords)| {
            if let Some(map) = schema.as_object_mut() {
                map.extend(keywords);
            }
            schema
        })
    })
}

fn resource(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "spec": spec}})
}

/// The schema, if it is valid in a CRD.
fn valid_schema(spec: &Value) -> Option<Schema> {
    Schema::parse(&resource(spec))
        .ok()
        .filter(|schema| schema.violations().is_empty())
}

/// A value of the schema, with occasional unexpected values.
fn shaped(schema: &Value, unexpected: &Value, pick: &mut impl FnMut() -> u8) -> Value {
    if pick().is_multiple_of(8) {
        return unexpected.clone();
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let mut map = Map::new();
        for (name, property) in properties {
            if !pick().is_multiple_of(4) {
                map.insert(name.clone(), shaped(property, unexpected, pick));
            }
        }
        return map.into();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let entry = schema.get("additionalProperties").cloned().unwrap_or(json!({}));
            json!({"a": shaped(&entry, unexpected, pick)})
        }
        Some("array") => {
            let items = schema.get("items").cloned().unwrap_or(json!({}));
            (0..pick() % 3).map(|_| shaped(&items, unexpected, pick)).collect()
        }
        Some("string") => "ab".into(),
        Some("boolean") => true.into(),
        _ => (pick() % 5).into(),
    }
}

fn shaped_object(spec: &Value, unexpected: &Value, bytes: &[u8]) -> Value {
    let mut source = bytes.iter().cycle();
    let mut pick = || *source.next().expect("the bytes of a case are not empty");
    json!({"apiVersion": "example.org/v1", "kind": "Widget", "spec": shaped(spec, unexpected, &mut pick)})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_document_is_a_schema_or_an_error(document in document()) {
        let _ = Schema::parse(&document);
        let _ = CustomResource::parse(&document);
        let _ = metadata_errors(&document, Scope::Namespaced);
        let _ = metadata_update_errors(&document, &json!({"metadata": document.clone()}));
        let _ = metadata_errors(&json!({"metadata": document.clone()}), Scope::Cluster);
    }

    #[test]
    fn any_text_is_a_rule_or_an_error(
        rule in prop_oneof![any::<String>(), r"[a-z(){}\[\]'.?:+&|!=<>0-9 -]{0,24}"],
        object in document(),
    ) {
        let has_rules = json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": rule}]});
        if let Ok(schema) = Schema::parse(&has_rules) {
            let _ = schema.validate(&object);
        }
    }

    #[test]
    fn any_schema_validates_any_document(spec in schema(), object in document(), old in document()) {
        if let Ok(schema) = Schema::parse(&spec) {
            let _ = schema.violations();
            let mut object = object;
            let _ = schema.prune(&mut object);
            schema.default(&mut object);
            for error in schema.validate_update(&object, &old).iter().chain(&schema.validate(&object)) {
                prop_assert!(!error.body().is_empty());
            }
        }
    }

    #[test]
    fn pruning_is_idempotent(spec in schema(), unexpected in document(), bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
        if let Ok(schema) = Schema::parse(&resource(&spec)) {
            let mut once = shaped_object(&spec, &unexpected, &bytes);
            let _ = schema.prune(&mut once);
            let mut twice = once.clone();
            prop_assert_eq!(schema.prune(&mut twice), Vec::<String>::new());
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn defaulting_is_idempotent(spec in schema(), unexpected in document(), bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
        if let Some(schema) = valid_schema(&spec) {
            let mut once = shaped_object(&spec, &unexpected, &bytes);
            schema.default(&mut once);
            let mut twice = once.clone();
            schema.default(&mut twice);
            prop_assert_eq!(twice, once);
        }
    }

    #[test]
    fn an_accepted_object_stays_unchanged_and_accepted(spec in schema(), unexpected in document(), bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
        if let Some(schema) = valid_schema(&spec) {
            let mut object = shaped_object(&spec, &unexpected, &bytes);
            let _ = schema.prune(&mut object);
            schema.default(&mut object);
            if schema.validate(&object).is_empty() {
                let mut again = object.clone();
                prop_assert_eq!(schema.prune(&mut again), Vec::<String>::new());
                schema.default(&mut again);
                prop_assert_eq!(&again, &object);
                prop_assert_eq!(schema.validate(&again), vec![]);
                prop_assert_eq!(schema.validate_update(&again, &object), vec![]);
            }
        }
    }

    #[test]
    fn an_update_is_never_stricter_than_a_create(
        spec in schema(),
        unexpected in document(),
        bytes in proptest::collection::vec(any::<u8>(), 1..40),
        others in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        if let Ok(schema) = Schema::parse(&resource(&spec)) {
            let (new, old) = (shaped_object(&spec, &unexpected, &bytes), shaped_object(&spec, &unexpected, &others));
            let create: BTreeSet<String> = schema.validate(&new).iter().map(ToString::to_string).collect();
            for error in schema.validate_update(&new, &old) {
                prop_assert!(create.contains(&error.to_string()), "{} is new", error);
            }
        }
    }
}
