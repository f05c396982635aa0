//! What cosign prints about attestations: an envelope a line, whose payload is the statement in base64.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The predicates of the statements.
pub(super) fn predicates(printed: &str) -> Result<Vec<Value>> {
    printed
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(predicate)
        .collect()
}

fn predicate(line: &str) -> Result<Value> {
    let envelope: Value = serde_json::from_str(line).context("read the envelope of an attestation")?;
    let payload = envelope
        .get("payload")
        .and_then(Value::as_str)
        .context("an attestation has no payload")?;
    let statement: Value = serde_json::from_slice(&STANDARD.decode(payload).context("read the payload")?)?;
    statement
        .get("predicate")
        .cloned()
        .context("a statement has no predicate")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn predicate_of_each_line_is_read() {
        let line = |number: u8| {
            let statement = json!({ "predicateType": "x", "predicate": { "number": number } }).to_string();
            json!({ "payload": STANDARD.encode(statement) }).to_string()
        };
        let printed = format!("{}\n{}\n", line(1), line(2));
        assert_eq!(
            predicates(&printed).unwrap(),
            [json!({ "number": 1 }), json!({ "number": 2 })]
        );
        assert!(predicates("{}").is_err());
    }
}
