//! Random documents of a schema, generated from a seed.
//!
//! They are valid in structure only: patterns are ignored, texts may be empty, references have no target, numbers fit
//! into 32 bits. Generation takes microseconds instead of the milliseconds of a proptest strategy, which allows ten
//! thousand objects of each kind.

use serde_json::{Map, Value, json};

/// A source of choices. The same seed gives the same document.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = bits ^ (bits >> 31);
        usize::try_from(bits % u64::try_from(bound).unwrap()).unwrap()
    }

    fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// An object of a kind, with metadata.
pub(crate) fn object(draw: &mut Draw, kind: &str, version: &str, schema: &Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"),
        "kind": kind,
        "metadata": { "name": "some", "namespace": "metal" },
    });
    if draw.below(3) == 0 {
        object["metadata"]["annotations"] = json!({ "keep": "me" });
        object["metadata"]["finalizers"] = json!(["keep/me"]);
    }
    for member in ["spec", "status"] {
        if let Some(schema) = schema["properties"].get(member)
            && draw.below(10) > 0
        {
            object[member] = value(draw, member, schema);
        }
    }
    object
}

fn value(draw: &mut Draw, name: &str, schema: &Value) -> Value {
    if let Some(Value::Array(choices)) = schema.get("enum") {
        return draw.one_of(choices).clone();
    }
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return draw.one_of(&[json!(6443), json!("web")]).clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => text(draw, name, schema),
        Some("integer") => number(draw, schema),
        Some("boolean") => (draw.below(2) == 0).into(),
        Some("array") => {
            let length = draw.below(3);
            (0..length)
                .map(|_| value(draw, "", &schema["items"]))
                .collect::<Vec<_>>()
                .into()
        }
        Some("object") => members(draw, schema).into(),
        _ => draw
            .one_of(&[
                Value::Null,
                json!(100),
                json!("fast"),
                json!(1.5),
                json!({ "a": [1, null] }),
                json!([]),
            ])
            .clone(),
    }
}

fn text(draw: &mut Draw, name: &str, schema: &Value) -> Value {
    if schema.get("format").is_some_and(|format| format == "date-time") {
        return (*draw.one_of(&["2026-03-04T05:06:07Z", "1999-12-31T23:59:59Z"])).into();
    }
    if name == "timeout" {
        return (*draw.one_of(&["0s", "300s", "1m40.9s", "90m", "1h2m3s", "-5s", "876000h"])).into();
    }
    (*draw.one_of(&["", "a", "b", "Reboot", "Running", "10.0.0.1", "é\"\n"])).into()
}

fn number(draw: &mut Draw, schema: &Value) -> Value {
    let numbers = [0, 0, 1, 2, 5, 1500, 6443, i64::from(i32::MAX), -1];
    let number = *draw.one_of(&numbers);
    let minimum = schema.get("minimum").and_then(Value::as_i64).unwrap_or(i64::MIN);
    number.max(minimum).into()
}

fn members(draw: &mut Draw, schema: &Value) -> Map<String, Value> {
    let mut members = Map::new();
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let required = schema.get("required").and_then(Value::as_array);
        for (name, schema) in properties {
            let needed = required.is_some_and(|required| required.iter().any(|other| other == name));
            if needed || draw.below(5) < 2 {
                members.insert(name.clone(), value(draw, name, schema));
            }
        }
    }
    if let Some(schema) = schema.get("additionalProperties") {
        for name in ["k", "l"] {
            if draw.below(2) == 0 {
                members.insert(name.into(), value(draw, "", schema));
            }
        }
    }
    members
}
