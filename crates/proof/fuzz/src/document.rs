//! Documents of a structural schema: mostly valid, with short lists and texts.

use metal3_sim_faults::Random;
use serde_json::{Map, Value, json};

use crate::chance::below;

const TEXTS: [&str; 16] = [
    "",
    "a",
    "worker-1",
    "192.0.2.10",
    "2001:db8::1",
    "192.0.2.0/24",
    "00:11:22:33:44:55",
    "https://images.example/os.qcow2",
    "redfish://192.0.2.1/redfish/v1/Systems/1",
    "10m",
    "1h0m0s",
    "2026-01-31T12:00:00Z",
    "eth0",
    "default",
    "sha256",
    "{}",
];

/// A value of the schema.
pub(crate) fn draw(schema: &Value, random: &mut Random, depth: u8) -> Value {
    if let Some(Value::Array(values)) = schema.get("enum") {
        return random.pick(values).cloned().unwrap_or(Value::Null);
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && random.below(2) == 0 {
        return integer(schema, random);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => Value::Bool(random.below(2) == 0),
        Some("integer") => integer(schema, random),
        Some("number") => json!(random.below(1000)),
        Some("array") => {
            let Some(items) = schema.get("items").filter(|_| depth > 0) else {
                return json!([]);
            };
            let number = 1 + random.below(2);
            (0..number).map(|_| draw(items, random, depth - 1)).collect()
        }
        Some("object") => object(schema, random, depth),
        _ => random.pick(&TEXTS).copied().unwrap_or_default().into(),
    }
}

fn integer(schema: &Value, random: &mut Random) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    let least = bound("minimum").unwrap_or(0);
    let most = bound("maximum").unwrap_or(least.saturating_add(100)).max(least);
    let span = u64::try_from(most.saturating_sub(least)).unwrap_or(0).saturating_add(1);
    let more = i64::try_from(random.below(span)).unwrap_or(0);
    json!(least.saturating_add(more))
}

fn object(schema: &Value, random: &mut Random, depth: u8) -> Value {
    let mut members = Map::new();
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if let Some(Value::Object(properties)) = schema.get("properties") {
        // Many members of a large object, and most of a small one.
        let chance = if properties.len() > 8 { 3 } else { 2 };
        for (name, property) in properties {
            let needed = required.contains(&name.as_str());
            if needed || (depth > 0 && random.below(chance) == 0) {
                members.insert(name.clone(), draw(property, random, depth.saturating_sub(1)));
            }
        }
    }
    if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties")
        && depth > 0
    {
        for name in TEXTS.iter().skip(1).take(below(random, 3)) {
            members.insert((*name).to_owned(), draw(additional, random, depth - 1));
        }
    }
    Value::Object(members)
}
