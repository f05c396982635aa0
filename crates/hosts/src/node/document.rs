//! Maps in YAML or JSON, as Secrets hold them.
//!
//! Words are read as the Go manager reads them, by the older YAML: `yes` is true and `010` is eight. No message repeats
//! what was read.

use serde_json::{Map, Value};

use super::Refusal;

/// Reads a map. Nothing and null are an empty one.
///
/// # Errors
/// When it is something else. `field` is the reference to the Secret.
pub(super) fn map(field: &'static str, text: &str) -> Result<Map<String, Value>, Refusal> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let read = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => yaml(text).map_err(|line| Refusal::NotMap { field, line })?,
    };
    match read {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Refusal::NotMap { field, line: None })
        }
    }
}

/// The line in which reading ended is all that an error tells: the rest may be secret.
fn yaml(text: &str) -> Result<Value, Option<u64>> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.location().map(|place| place.line()))
}
