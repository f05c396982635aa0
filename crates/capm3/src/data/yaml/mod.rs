//! YAML as rendered data has it: block style, keys in natural order, and quotes wherever an older reader could take
//! text for something else.
//!
//! It is written here and by no library, because the bytes are part of the contract: they are those of the Go manager's
//! writer, recorded from it, so that a Secret looks the same whoever rendered it. Where that writer leaves text bare
//! that some reader of YAML 1.1 retypes or refuses, it is quoted here. Reading is not done here.
//!
//! Invariant: what is written reads back as the value it was, by YAML 1.1 as by 1.2.

mod lookalike;
mod order;
mod scalar;
mod sheet;

use serde_json::{Map, Value};

use scalar::Use;
use sheet::Sheet;

/// Columns by which a level is indented.
const STEP: usize = 2;
/// Longest key that is written before its colon on one line, in bytes.
const LONGEST_SIMPLE_KEY: usize = 128;

/// A document, without a separator before it.
pub(super) fn document(value: &Value) -> String {
    let mut sheet = Sheet::default();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(map, 0, false, &mut sheet),
        Value::Array(items) if !items.is_empty() => sequence(items, 0, false, &mut sheet),
        other => plain_line(other, 0, &mut sheet),
    }
    sheet.into_text()
}

/// Entries of a map. `begun`: the first stands on a line that has its indentation already.
fn mapping(map: &Map<String, Value>, indent: usize, begun: bool, sheet: &mut Sheet) {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_by(|(left, _), (right, _)| order::natural(left, right));
    for (position, (key, value)) in entries.into_iter().enumerate() {
        if position > 0 || !begun {
            sheet.indent(indent);
        }
        if key.contains('\n') || key.len() > LONGEST_SIMPLE_KEY {
            sheet.push_str("? ");
            scalar::write(key, Use::Value, indent + STEP, sheet);
            sheet.end_line();
            sheet.indent(indent);
            sheet.push_str(":");
            child(value, indent, indent + STEP, sheet);
        } else {
            scalar::write(key, Use::Key, indent, sheet);
            sheet.push_str(":");
            child(value, indent, indent, sheet);
        }
    }
}

/// What stands behind a colon: on the same line, or on the next ones.
fn child(value: &Value, indent: usize, sequence_indent: usize, sheet: &mut Sheet) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            sheet.end_line();
            mapping(map, indent + STEP, false, sheet);
        }
        Value::Array(items) if !items.is_empty() => {
            sheet.end_line();
            sequence(items, sequence_indent, false, sheet);
        }
        other => {
            sheet.push_str(" ");
            plain_line(other, indent + STEP, sheet);
        }
    }
}

/// Items of a list, each behind a dash.
fn sequence(items: &[Value], indent: usize, begun: bool, sheet: &mut Sheet) {
    for (position, item) in items.iter().enumerate() {
        if position > 0 || !begun {
            sheet.indent(indent);
        }
        sheet.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => mapping(map, indent + STEP, true, sheet),
            Value::Array(items) if !items.is_empty() => sequence(items, indent + STEP, true, sheet),
            other => plain_line(other, indent + STEP, sheet),
        }
    }
}

/// A value without members, to the end of its line.
fn plain_line(value: &Value, indent: usize, sheet: &mut Sheet) {
    match value {
        Value::String(text) => scalar::write(text, Use::Value, indent, sheet),
        Value::Number(number) => sheet.push_str(&scalar::number(number)),
        Value::Object(_) => sheet.push_str("{}"),
        Value::Array(_) => sheet.push_str("[]"),
        Value::Null => sheet.push_str("null"),
        Value::Bool(true) => sheet.push_str("true"),
        Value::Bool(false) => sheet.push_str("false"),
    }
    sheet.end_line();
}

#[cfg(test)]
mod tests;
