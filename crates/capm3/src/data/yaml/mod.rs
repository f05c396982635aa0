//! YAML of rendered data: block style, keys in natural order, and quotes wherever an older parser could change the type
//! of a text.
//!
//! The bytes are part of the contract: they equal those of the Go manager's encoder, so this encoder uses no library.
//! Where the Go encoder writes plain text that a parser of YAML 1.1 retypes or rejects, this one quotes it.
//!
//! Invariant: YAML 1.1 and 1.2 parsers read back the same value.

mod ambiguous;
mod order;
mod output;
mod scalar;

use serde_json::{Map, Value};

use output::{Output, STEP};
use scalar::Use;

/// The limit in bytes of a key on the line of its colon.
const LONGEST_SIMPLE_KEY: usize = 128;

/// A document without separator.
pub(super) fn document(value: &Value) -> String {
    let mut out = Output::default();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(map, 0, false, &mut out),
        Value::Array(items) if !items.is_empty() => sequence(items, 0, false, &mut out),
        other => plain_line(other, 0, &mut out),
    }
    out.into_text()
}

/// Entries of a map. `begun`: the first entry continues an indented line.
fn mapping(map: &Map<String, Value>, indent: usize, begun: bool, out: &mut Output) {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by(|(left, _), (right, _)| order::natural(left, right));
    for (position, (key, value)) in entries.into_iter().enumerate() {
        if position > 0 || !begun {
            out.indent(indent);
        }
        if key.contains('\n') || key.len() > LONGEST_SIMPLE_KEY {
            out.push_str("? ");
            scalar::write(key, Use::Value, indent + STEP, out);
            out.end_line();
            out.indent(indent);
            out.push_str(":");
            child(value, indent, indent + STEP, out);
        } else {
            scalar::write(key, Use::Key, indent, out);
            out.push_str(":");
            child(value, indent, indent, out);
        }
    }
}

/// The value of a key: on the same line, or on the next ones.
fn child(value: &Value, indent: usize, sequence_indent: usize, out: &mut Output) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.end_line();
            mapping(map, indent + STEP, false, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.end_line();
            sequence(items, sequence_indent, false, out);
        }
        other => {
            out.push_str(" ");
            plain_line(other, indent + STEP, out);
        }
    }
}

/// Items of a list, each with a dash.
fn sequence(items: &[Value], indent: usize, begun: bool, out: &mut Output) {
    for (position, item) in items.iter().enumerate() {
        if position > 0 || !begun {
            out.indent(indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => mapping(map, indent + STEP, true, out),
            Value::Array(items) if !items.is_empty() => sequence(items, indent + STEP, true, out),
            other => plain_line(other, indent + STEP, out),
        }
    }
}

/// A scalar or an empty collection, to the end of its line.
fn plain_line(value: &Value, indent: usize, out: &mut Output) {
    match value {
        Value::String(text) => scalar::write(text, Use::Value, indent, out),
        Value::Number(number) => out.push_str(&scalar::number(number)),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
    }
    out.end_line();
}

#[cfg(test)]
mod tests;
