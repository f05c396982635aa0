//! Generates valid documents of a structural schema, for property tests.
//!
//! A [`proptest`] strategy is built from an `openAPIV3Schema`: it respects types, values, bounds, patterns, formats,
//! required members, list keys and nullability. Every generated document is valid, but not every valid document is
//! generated: texts and lists are short, maps have few members.

mod text;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// Most items of a list and members of a map, unless the schema asks for more.
const FEW: usize = 3;

/// A whole object of a kind, with `apiVersion`, `kind` and some metadata.
pub(crate) fn document(api_version: String, kind: &'static str, schema: &Value) -> BoxedStrategy<Value> {
    (object(schema), metadata())
        .prop_map(move |(mut document, metadata)| {
            document["apiVersion"] = api_version.as_str().into();
            document["kind"] = kind.into();
            document["metadata"] = metadata;
            document
        })
        .boxed()
}

fn metadata() -> impl Strategy<Value = Value> {
    let pairs = || btree_map("[a-z]{1,5}(/[a-z]{1,5})?", "[ -~]{0,8}", 0..FEW);
    (
        "[a-z]{1,12}",
        "[a-z]{1,8}",
        pairs(),
        pairs(),
        vec("[a-z]{1,5}/[a-z]{1,5}", 0..FEW),
    )
        .prop_map(|(name, namespace, labels, annotations, finalizers)| {
            json!({
                "name": name, "namespace": namespace, "labels": labels, "annotations": annotations,
                "finalizers": finalizers, "creationTimestamp": "2026-01-31T12:00:00Z", "generation": 3,
            })
        })
}

/// A valid value of the schema.
pub(crate) fn value(schema: &Value) -> BoxedStrategy<Value> {
    let stated = stated(schema);
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        return prop_oneof![4 => stated, 1 => Just(Value::Null)].boxed();
    }
    stated
}

fn stated(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(Value::Array(values)) = schema.get("enum") {
        return select(values.clone()).boxed();
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return prop_oneof![integer(schema), text::text(&json!({}))].boxed();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => integer(schema),
        Some("number") => number(schema),
        Some("string") => text::text(schema),
        Some("array") => list(schema),
        Some("object") => object(schema),
        Some(other) => panic!("a structural schema has no type {other}"),
        None => anything(),
    }
}

/// Any JSON but null.
pub(crate) fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z]{1,6}", inner, 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

fn integer(schema: &Value) -> BoxedStrategy<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let (least, most) = (bound("minimum").unwrap_or(least), bound("maximum").unwrap_or(most));
    prop_oneof![Just(least), Just(most), Just(0.clamp(least, most)), least..=most]
        .prop_map(Value::from)
        .boxed()
}

fn number(schema: &Value) -> BoxedStrategy<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let (least, most) = (bound("minimum").unwrap_or(-1e9), bound("maximum").unwrap_or(1e9));
    (least..=most).prop_map(Value::from).boxed()
}

fn size(schema: &Value, least: &str, most: &str) -> std::ops::RangeInclusive<usize> {
    let bound = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_u64)
            .and_then(|bound| usize::try_from(bound).ok())
    };
    let least = bound(least).unwrap_or(0);
    least..=bound(most).unwrap_or(usize::MAX).min(least + FEW)
}

fn list(schema: &Value) -> BoxedStrategy<Value> {
    let size = size(schema, "minItems", "maxItems");
    let least = *size.start();
    let keys: Option<Vec<String>> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("map") => Some(keys(schema)),
        Some("set") => Some(vec![]),
        _ => None,
    };
    let items = vec(value(&schema["items"]), size);
    match keys {
        None => items.prop_map(Value::from).boxed(),
        Some(keys) => items
            .prop_map(move |items| distinct(items, &keys))
            .prop_filter("enough items with distinct keys", move |items| items.len() >= least)
            .prop_map(Value::from)
            .boxed(),
    }
}

fn keys(schema: &Value) -> Vec<String> {
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    keys.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Removes items with repeated keys; without keys, the item is the key.
fn distinct(items: Vec<Value>, keys: &[String]) -> Vec<Value> {
    let mut seen = Vec::new();
    let mut kept = Vec::new();
    for item in items {
        let key = if keys.is_empty() {
            item.clone()
        } else {
            keys.iter().map(|key| item[key].clone()).collect()
        };
        if !seen.contains(&key) {
            seen.push(key);
            kept.push(item);
        }
    }
    kept
}

fn object(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema.get("additionalProperties") {
        let size = size(schema, "minProperties", "maxProperties");
        let members = btree_map("[a-z]{1,8}", value(values), size);
        return members
            .prop_map(|members| Value::Object(members.into_iter().collect()))
            .boxed();
    }
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let least = *size(schema, "minProperties", "maxProperties").start();
    let members = schema
        .get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, schema)| {
            let wanted = if required.contains(&name.as_str()) {
                value(&schema).prop_map(Some).boxed()
            } else {
                proptest::option::of(value(&schema)).boxed()
            };
            wanted.prop_map(move |value| value.map(|value| (name.clone(), value)))
        })
        .collect();
    members
        .prop_map(|members| members.into_iter().flatten().collect::<Map<_, _>>())
        .prop_filter("enough members", move |members| members.len() >= least)
        .prop_map(Value::from)
        .boxed()
}
