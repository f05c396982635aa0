//! Generates texts of a schema by format, pattern and length.

use proptest::prelude::*;
use proptest::string::string_regex;
use serde_json::Value;

/// Limit for unbounded repetitions.
const OFTEN: &str = "5";
/// Most characters of a text without pattern, in addition to its minimum length.
const SHORT: usize = 12;

/// A valid text of the schema.
pub(super) fn text(schema: &Value) -> BoxedStrategy<Value> {
    let bound = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_u64)
            .and_then(|bound| usize::try_from(bound).ok())
    };
    let (least, most) = (
        bound("minLength").unwrap_or(0),
        bound("maxLength").unwrap_or(usize::MAX),
    );
    let texts = match (
        schema.get("pattern").and_then(Value::as_str),
        schema.get("format").and_then(Value::as_str),
    ) {
        (Some(pattern), _) => string_regex(&bounded(pattern)).unwrap().boxed(),
        (None, Some("date-time")) => moment(),
        (None, Some("uri")) => string_regex("https?://[a-z]{1,8}(:[1-9][0-9]{1,3})?(/[a-z0-9]{1,5}){0,3}")
            .unwrap()
            .boxed(),
        (None, Some(other)) => panic!("no texts of the format {other}"),
        (None, None) => string_regex(&format!("\\PC{{{least},{}}}", most.min(least + SHORT)))
            .unwrap()
            .boxed(),
    };
    texts
        .prop_filter("the length the schema allows", move |text| {
            (least..=most).contains(&text.chars().count())
        })
        .prop_map(Value::from)
        .boxed()
}

/// A time in the format of the API server.
fn moment() -> BoxedStrategy<String> {
    (1970..2100, 1..=12, 1..=28, 0..24, 0..60, 0..60)
        .prop_map(|(year, month, day, hour, minute, second)| {
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
        })
        .boxed()
}

/// The pattern without anchors, which have no effect on whole texts, and with bounded repetitions.
fn bounded(pattern: &str) -> String {
    let mut out = String::new();
    let (mut escaped, mut in_class) = (false, false);
    for character in pattern.chars() {
        match character {
            _ if escaped => out.push(character),
            '^' | '$' if !in_class => {}
            '*' if !in_class => out.push_str(&format!("{{0,{OFTEN}}}")),
            '+' if !in_class => out.push_str(&format!("{{1,{OFTEN}}}")),
            other => out.push(other),
        }
        in_class = !escaped && (character == '[' || in_class && character != ']');
        escaped = !escaped && character == '\\';
    }
    // In the `regex` crate `\d` matches digits of any script.
    out.replace("\\d", "[0-9]")
}

#[test]
fn anchors_are_removed_and_repetitions_bounded() {
    assert_eq!(bounded(r"^[a^$*]+(\.\d*)?$"), r"[a^$*]{1,5}(\.[0-9]{0,5})?");
}
