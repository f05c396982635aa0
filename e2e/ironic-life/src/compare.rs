//! Differences between the ordered and the actual document, each with its path.

use serde_json::Value;

/// Each path at which `actual` differs from `expected`.
#[must_use]
pub fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk("", expected, actual, &mut found);
    found
}

fn walk(path: &str, expected: &Value, actual: &Value, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys: Vec<_> = left.keys().chain(right.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let side = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
                walk(&format!("{path}/{key}"), &side(left), &side(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                walk(&format!("{path}/{index}"), left, right, found);
            }
        }
        _ if expected == actual => {}
        _ => found.push(format!("{path}: ordered {expected}, found {actual}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn difference_has_its_path() {
        let (left, right) = (json!({ "a": [{ "b": 1 }], "c": 2 }), json!({ "a": [{ "b": 3 }] }));
        assert_eq!(
            differences(&left, &right),
            ["/a/0/b: ordered 1, found 3", "/c: ordered 2, found null"]
        );
        assert!(differences(&left, &left).is_empty());
    }
}
