//! YAML or JSON maps in Secrets.
//!
//! Scalars are parsed by YAML 1.1 rules like in the Go manager: `yes` is true and `010` is eight. No message contains
//! the parsed text.

use serde_json::{Map, Value};

use super::invalid_host::InvalidHost;

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
