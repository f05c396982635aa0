//! Losses of a document in a round trip through a type.
//!
//! Pure. Decoding ignores unknown fields, so a document is decoded and encoded again, and every path of the input is
//! compared with the output. Null, `{}` and `[]` count as absent.

use metal3_api::meta::Time;
use serde_json::Value;

/// Paths of the input that the output lacks or changes.
pub(super) fn lost(input: &Value, output: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(input, output, "", &mut found);
    found
}

fn look(input: &Value, output: &Value, path: &str, found: &mut Vec<String>) {
    match (input, output) {
        (Value::Object(members), Value::Object(written)) => {
            for (name, value) in members.iter().filter(|(_, value)| !is_empty(value)) {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match written.get(name) {
                    Some(output) => look(value, output, &path, found),
                    None => found.push(format!("{path} is lost")),
                }
            }
        }
        (Value::Array(items), Value::Array(written)) => {
            if items.len() != written.len() {
                found.push(format!(
                    "{path} has {} items, written with {}",
                    items.len(),
                    written.len()
                ));
            }
            for (index, (item, output)) in items.iter().zip(written).enumerate() {
                look(item, output, &format!("{path}[{index}]"), found);
            }
        }
        (input, output) if !same_scalar(input, output) => found.push(format!("{path} is {input}, written as {output}")),
        _ => {}
    }
}

/// Null, an empty list, and a map that contains only such values.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Equal, or the same number or time in another notation.
fn same_scalar(input: &Value, output: &Value) -> bool {
    let moment = |value: &Value| serde_json::from_value::<Time>(value.clone()).ok();
    input == output
        || (input.is_number() && input.as_f64() == output.as_f64())
        || moment(input).is_some_and(|time| moment(output) == Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lost_members_items_and_values_are_reported() {
        let input = json!({ "a": { "b": 1, "c": "x" }, "l": [{ "d": 1 }, { "e": 2 }], "s": [1] });
        let output = json!({ "a": { "c": "y" }, "l": [{ "d": 1 }, {}], "s": [] });
        assert_eq!(
            lost(&input, &output),
            [
                "a.b is lost",
                "a.c is \"x\", written as \"y\"",
                "l[1].e is lost",
                "s has 1 items, written with 0"
            ]
        );
    }

    #[test]
    fn empty_values_may_be_dropped_and_false_may_not() {
        let input = json!({ "a": null, "b": {}, "c": [], "d": { "e": {} }, "f": false, "g": 0, "h": "" });
        assert_eq!(lost(&input, &json!({})), ["f is lost", "g is lost", "h is lost"]);
    }

    #[test]
    fn equal_times_in_another_notation_match() {
        let input = json!({ "t": "2026-03-04T06:06:07+01:00", "n": 1.0 });
        assert!(lost(&input, &json!({ "t": "2026-03-04T05:06:07Z", "n": 1 })).is_empty());
        assert_eq!(lost(&input, &json!({ "t": "2026-03-04T05:06:08Z", "n": 2 })).len(), 2);
    }
}
