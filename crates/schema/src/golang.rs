//! Values as Go prints them.
//!
//! Error texts match those of a real API server, so floats, quoted strings and JSON documents are printed as in Go.

use std::ops::Range;

use serde_json::{Number, Value};

use crate::number::Num;

/// A float as `%v` prints it: shortest digits, an exponent below 1e-4 and from 1e6 on.
pub(crate) fn float(value: f64) -> String {
    print_float(value, -4..6, true)
}

/// A float as `encoding/json` writes it.
fn json_float(value: f64) -> String {
    print_float(value, -6..21, false)
}

/// Shortest digits; an exponent when the power of ten is not in `plain`, padded to two digits if `pad`.
fn print_float(value: f64, plain: Range<i32>, pad: bool) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let Ok(power) = exponent.parse::<i32>() else {
        return scientific;
    };
    if value == 0.0 || plain.contains(&power) {
        return format!("{value}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    // `%v` pads an exponent to two digits; Go's JSON writer drops the zero of "e-09" again.
    let width = if pad { 2 } else { 1 };
    format!("{digits}e{sign}{:0width$}", power.unsigned_abs())
}

/// A string as `%q` prints it.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0b}' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            _ if c.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ if is_printable(c) => out.push(c),
            _ if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Letters, marks, numbers, punctuation and symbols. `escape_debug` has this table but also escapes a mark at the start
/// of a string: hence the letter in front.
fn is_printable(c: char) -> bool {
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().nth(1) == Some(c)
}

/// A value as `encoding/json` writes it: keys sorted, `<`, `>` and `&` escaped.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, &mut out);
    out
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&json_number(number)),
        Value::String(text) => write_json_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(key, out);
                out.push(':');
                write_json(item, out);
            }
            out.push('}');
        }
    }
}

fn json_number(number: &Number) -> String {
    match Num::of(number) {
        Num::Int(int) => int.to_string(),
        Num::Float(value) => json_float(value),
    }
}

fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{float, json, quote};

    #[test]
    fn floats_have_an_exponent_as_in_go() {
        for (value, text) in [
            (1.5, "1.5"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123456.5, "123456.5"),
            (1e6, "1e+06"),
            (1.5e21, "1.5e+21"),
        ] {
            assert_eq!(float(value), text);
        }
        assert_eq!(json(&json!([1e-7, 1e21, 0.00001, 2.0])), "[1e-7,1e+21,0.00001,2]");
    }

    #[test]
    fn strings_are_quoted_as_in_go() {
        assert_eq!(
            quote("a\"b\\\n\u{7f}\u{200b}é\u{301}"),
            "\"a\\\"b\\\\\\n\\x7f\\u200bé\u{301}\""
        );
        assert_eq!(
            quote("\u{7}\u{8}\u{c}\r\t\u{b}\u{e0001}"),
            r#""\a\b\f\r\t\v\U000e0001""#
        );
        assert_eq!(
            json(&json!({"b": "<&>", "a": null})),
            "{\"a\":null,\"b\":\"\\u003c\\u0026\\u003e\"}"
        );
        assert_eq!(json(&json!("\"\\\n\r\t\u{8}\u{c}\u{7}")), r#""\"\\\n\r\t\b\f\u0007""#);
    }
}
