//! Texts that the real server's language prints: values in messages, and what is wrong with a JSON document.

use serde_json::Value;

/// A document as the server prints a map of any values.
pub(super) fn printed(value: &Value) -> String {
    let joined = |items: Vec<String>| items.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(printed).collect())),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{name}:{}", printed(value));
            format!("map[{}]", joined(members.iter().map(member).collect()))
        }
    }
}

/// What is wrong with a document that does not parse.
pub(super) fn syntax(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = line.get(..error.column().saturating_sub(1)).unwrap_or_default();
    let found = line.get(before.len()..).and_then(|rest| rest.chars().next());
    let said = error.to_string();
    let place = match said.split(" at line").next().unwrap_or_default() {
        "key must be a string" => "looking for beginning of object key string",
        "trailing comma" => "looking for beginning of object key string",
        "expected value" => "looking for beginning of value",
        "trailing characters" => "after top-level value",
        "expected `:`" => "after object key",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        _ => return said,
    };
    match found {
        Some(found) => format!("invalid character '{found}' {place}"),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_are_printed_with_sorted_names() {
        let patch = json!({ "spec": { "b": [{ "x": 1.5 }, null], "a": "t u" } });
        assert_eq!(printed(&patch), "map[spec:map[a:t u b:[map[x:1.5] <nil>]]]");
    }

    #[test]
    fn syntax_errors_name_the_character() {
        for (text, expected) in [
            (
                "{bad",
                "invalid character 'b' looking for beginning of object key string",
            ),
            ("{}{}", "invalid character '{' after top-level value"),
            ("metadata: x", "invalid character 'm' looking for beginning of value"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("{\"a\":", "unexpected end of JSON input"),
        ] {
            let error = serde_json::from_str::<Value>(text).unwrap_err();
            assert_eq!(syntax(text.as_bytes(), &error), expected, "{text}");
        }
    }
}
