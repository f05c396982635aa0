//! Checks JSON against the schema of a type, as Go's decoder does: unknown members and values of another type are
//! rejected, member names ignore case, null is accepted everywhere, and no member is required.

use serde_json::{Map, Value};

use crate::meta::Time;

/// The first JSON value of the text. As in Go's decoder, the rest is not read.
pub(super) fn first_value(text: &str) -> Result<Value, String> {
    match serde_json::Deserializer::from_str(text).into_iter::<Value>().next() {
        Some(value) => value.map_err(|error| error.to_string()),
        None => Err("it holds no JSON".to_owned()),
    }
}

/// Finds a member regardless of case; the exact spelling wins.
pub(super) fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let any_case = || members.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
    members.get(name).or_else(|| any_case().map(|(_, value)| value))
}

/// The first violation of the structural schema.
pub(super) fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    mismatch_at("", schema, value)
}

fn mismatch_at(path: &str, schema: &Value, value: &Value) -> Option<String> {
    let expected = |what: &str| {
        Some(format!(
            "{}: expected {what}",
            if path.is_empty() { "it" } else { path }
        ))
    };
    let is = |key: &str, word: &str| schema.get(key).and_then(Value::as_str) == Some(word);
    match (schema.get("type").and_then(Value::as_str), value) {
        (_, Value::Null) => None,
        (Some("object"), Value::Object(members)) => mismatch_in_members(path, schema, members),
        (Some("object"), _) => expected("an object"),
        (Some("array"), Value::Array(items)) => {
            let item = schema.get("items")?;
            let mut numbered = items.iter().enumerate();
            numbered.find_map(|(position, value)| mismatch_at(&format!("{path}[{position}]"), item, value))
        }
        (Some("array"), _) => expected("a list"),
        (Some("string"), Value::String(_)) if !is("format", "date-time") => None,
        (Some("string"), _) if is("format", "date-time") => {
            let read = serde_json::from_value::<Time>(value.clone());
            read.err().and_then(|_| expected("a time such as 2026-01-31T12:00:00Z"))
        }
        (Some("string"), _) => expected("text"),
        (Some("boolean"), Value::Bool(_)) | (Some("number"), Value::Number(_)) => None,
        (Some("boolean"), _) => expected("true or false"),
        (Some("number"), _) => expected("a number"),
        (Some("integer"), _) => match value.as_i64() {
            Some(number) if !is("format", "int32") || i32::try_from(number).is_ok() => None,
            _ => expected("a whole number"),
        },
        _ => None,
    }
}

fn mismatch_in_members(path: &str, schema: &Value, members: &Map<String, Value>) -> Option<String> {
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let known = schema.get("properties").and_then(Value::as_object);
    members.iter().find_map(|(name, value)| {
        let path = below(name);
        match (known, schema.get("additionalProperties")) {
            (Some(known), _) => match member(known, name) {
                Some(schema) => mismatch_at(&path, schema, value),
                None => Some(format!("{path}: unknown field")),
            },
            (None, Some(entry)) => mismatch_at(&path, entry, value),
            (None, None) => Some(format!("{path}: unknown field")),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({ "type": "object", "properties": {
            "name": { "type": "string" },
            "seen": { "type": "string", "format": "date-time" },
            "count": { "type": "integer" },
            "vlan": { "type": "integer", "format": "int32" },
            "clock": { "type": "number" },
            "on": { "type": "boolean" },
            "nics": { "type": "array", "items": { "type": "object", "properties": { "mac": { "type": "string" } } } },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        } })
    }

    #[test]
    fn values_that_go_decodes_are_accepted() {
        for value in [
            json!(null),
            json!({}),
            json!({ "name": "a", "seen": "2026-01-31T12:00:00Z", "count": 3, "vlan": 7, "clock": 2.5, "on": true }),
            json!({ "NAME": "a", "count": null, "nics": null, "nics": [{ "mac": "x" }, null, {}], "labels": { "a": "b" } }),
        ] {
            assert_eq!(mismatch(&schema(), &value), None, "{value}");
        }
    }

    #[test]
    fn values_that_go_rejects_are_reported_with_their_path() {
        for (value, problem) in [
            (json!([]), "it: expected an object"),
            (json!({ "foo": 1 }), "foo: unknown field"),
            (json!({ "name": 1 }), "name: expected text"),
            (
                json!({ "seen": "today" }),
                "seen: expected a time such as 2026-01-31T12:00:00Z",
            ),
            (
                json!({ "seen": 5 }),
                "seen: expected a time such as 2026-01-31T12:00:00Z",
            ),
            (json!({ "count": 1.5 }), "count: expected a whole number"),
            (json!({ "count": "1" }), "count: expected a whole number"),
            (json!({ "vlan": 4_294_967_296_i64 }), "vlan: expected a whole number"),
            (json!({ "clock": "fast" }), "clock: expected a number"),
            (json!({ "on": "yes" }), "on: expected true or false"),
            (json!({ "nics": {} }), "nics: expected a list"),
            (json!({ "nics": [{}, { "ip": "x" }] }), "nics[1].ip: unknown field"),
            (json!({ "labels": { "a": 1 } }), "labels.a: expected text"),
        ] {
            assert_eq!(mismatch(&schema(), &value).as_deref(), Some(problem));
        }
    }

    #[test]
    fn only_the_first_value_of_a_text_is_read() {
        assert_eq!(first_value("{} nonsense"), Ok(json!({})));
        assert!(first_value("  ").is_err());
        assert!(first_value("{").is_err());
    }
}
