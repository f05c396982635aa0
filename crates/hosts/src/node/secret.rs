//! Text and YAML or JSON maps in Secrets. They are never logged.
//!
//! Scalars are parsed by YAML 1.1 rules like in the Go manager: `yes` is true and `010` is eight. No message contains
//! the parsed text.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde_json::{Map, Value};

use super::invalid_host::InvalidHost;

pub(super) type Values = BTreeMap<String, ByteString>;

const ANY: &str = "value";

/// The text under a key, or under `value`. `None`: neither key exists.
///
/// # Errors
/// When it is not UTF-8. `field` is the reference to the Secret.
pub(super) fn text<'a>(values: &'a Values, key: &str, field: &'static str) -> Result<Option<&'a str>, InvalidHost> {
    let found = values.get(key).or_else(|| values.get(ANY));
    found
        .map(|bytes| std::str::from_utf8(&bytes.0).map_err(|_| InvalidHost::NotText { field }))
        .transpose()
}

/// Parses a map. Empty text and null are an empty map.
///
/// # Errors
/// When it is anything else. `field` is the reference to the Secret.
pub(super) fn map(field: &'static str, text: &str) -> Result<Map<String, Value>, InvalidHost> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let read = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => yaml(text).map_err(|line| InvalidHost::NotMap { field, line })?,
    };
    match read {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(InvalidHost::NotMap { field, line: None })
        }
    }
}

/// Errors contain only the line, since the rest may be secret.
fn yaml(text: &str) -> Result<Value, Option<u64>> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.location().map(|place| place.line()))
}
