//! YAML for manifests and for the output of commands: sorted members, block style, and quotes for every text that a YAML 1.1 parser could read as
//! another type.
//!
//! The writer is implemented here because generated files are reviewed and compared byte by byte: their form must not
//! depend on a library version. A library does the parsing.

use serde_json::Value;

/// One document, with the separator before it.
#[must_use]
pub fn document(value: &Value) -> String {
    format!("---\n{}", text(value))
}

/// The same without the separator.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

fn block(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                indent(depth, out);
                out.push_str(&scalar_text(name));
                member(child, depth, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                element(item, depth, out);
            }
        }
        _ => {
            indent(depth, out);
            out.push_str(&scalar(value));
            out.push('\n');
        }
    }
}

fn member(child: &Value, depth: usize, out: &mut String) {
    out.push(':');
    match child {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(child, depth + 1, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(child, depth, out);
        }
        _ => {
            out.push(' ');
            out.push_str(&scalar(child));
            out.push('\n');
        }
    }
}

/// An item of a list: its first line has the dash, the rest is indented.
fn element(item: &Value, depth: usize, out: &mut String) {
    let mut inner = String::new();
    match item {
        Value::Object(map) if !map.is_empty() => block(item, depth + 1, &mut inner),
        Value::Array(items) if !items.is_empty() => block(item, depth + 1, &mut inner),
        _ => {
            indent(depth + 1, &mut inner);
            inner.push_str(&scalar(item));
            inner.push('\n');
        }
    }
    indent(depth, out);
    out.push_str("- ");
    out.push_str(inner.trim_start_matches(' '));
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => scalar_text(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

/// Plain if unambiguous, otherwise a JSON string, which is also YAML.
fn scalar_text(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

fn is_plain(text: &str) -> bool {
    let starts_well = text
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || "./$^".contains(first));
    let words = [
        "true", "false", "yes", "no", "on", "off", "null", "y", "n", "inf", "nan",
    ];
    starts_well
        && !words.contains(&text.trim_start_matches('.').to_ascii_lowercase().as_str())
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && text.chars().all(|c| !c.is_control() && c != '\u{feff}')
        && !(text.starts_with('.') && text.chars().nth(1).is_some_and(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_round_trip() {
        let awkward = json!({
            "texts": ["yes", "No", "010", "1e3", "~", "", " a", "a ", "a: b", "a #b", "- x", "12:30:45", "<<", "é", "a\nb", ".5", ".inf", "\"q\"", "'"],
            "numbers": [1, -2, 2.5], "flags": [true, false], "nothing": null,
            "empty": { "list": [], "map": {} }, "nested": [[1, 2], { "a": { "b": [{ "c": "d" }] } }],
            "true": 1, "1": 2,
        });
        let text = document(&awkward);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, awkward, "{text}");
    }
}
