//! Members of JSON values, and differences of two.

use std::collections::BTreeSet;

use serde_json::Value;

/// The text at a JSON pointer; empty if absent.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a JSON pointer; null if absent.
pub(crate) fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}

/// The list at a JSON pointer; empty if absent.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// A line for each difference: its path, the expected and the found value.
pub(crate) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    look(Some(expected), Some(found), "", &mut lines);
    lines
}

fn look(expected: Option<&Value>, found: Option<&Value>, path: &str, lines: &mut Vec<String>) {
    match (expected, found) {
        (Some(Value::Object(expected)), Some(Value::Object(found))) => {
            for name in expected.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                look(expected.get(name), found.get(name), &path, lines);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(found))) => {
            for index in 0..expected.len().max(found.len()) {
                look(
                    expected.get(index),
                    found.get(index),
                    &format!("{path}[{index}]"),
                    lines,
                );
            }
        }
        (expected, found) if expected != found => {
            let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let place = if path.is_empty() { "the value" } else { path };
            lines.push(format!("{place}: expected {}, found {}", text(expected), text(found)));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_difference_has_a_line_with_both_values() {
        let expected = json!({ "a": 1, "b": [1, 2], "c": { "d": "x" } });
        let found = json!({ "b": [1, 3, 4], "c": { "d": "y" } });
        assert_eq!(
            differences(&expected, &found),
            [
                "a: expected 1, found nothing",
                "b[1]: expected 2, found 3",
                "b[2]: expected nothing, found 4",
                "c.d: expected \"x\", found \"y\"",
            ]
        );
        assert!(differences(&expected, &expected).is_empty());
    }
}
