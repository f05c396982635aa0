//! Comparison with a record in which secrets are masked.
//!
//! Ironic shows `******` instead of what it takes for a secret: whole values, and parts of URLs. The masked part is
//! unknown and not compared; the rest is.

use serde_json::Value;

const MASK: &str = "******";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Same,
    /// Different or missing.
    Different,
    /// Equal as far as it is not masked.
    Hidden,
}

pub(super) fn compare(shown: Option<&Value>, wanted: &Value) -> Match {
    match shown {
        Some(shown) if shown == wanted => match shown {
            Value::String(text) if text.contains(MASK) => Match::Hidden,
            _ => Match::Same,
        },
        Some(Value::String(shown)) if shown.contains(MASK) => match wanted {
            Value::String(wanted) if fits(shown, wanted) => Match::Hidden,
            // A map, such as a config drive, is masked as a whole.
            Value::Object(_) | Value::Array(_) if shown == MASK => Match::Hidden,
            _ => Match::Different,
        },
        _ => Match::Different,
    }
}

/// Whether a value of the record may be this text. A value that is masked as a whole says nothing.
pub(crate) fn may_be(shown: &Value, text: &str) -> bool {
    match shown {
        Value::String(shown) => shown == text || (shown.contains(MASK) && shown != MASK && fits(shown, text)),
        _ => false,
    }
}

/// Whether the text fits the mask: its visible parts occur in this order.
fn fits(shown: &str, text: &str) -> bool {
    let mut parts = shown.split(MASK);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn masked_value_matches_text_with_the_same_visible_parts() {
        let rows = [
            (json!("a"), json!("a"), Match::Same),
            (json!("a"), json!("b"), Match::Different),
            (json!("******"), json!("secret"), Match::Hidden),
            (json!("******"), json!("******"), Match::Hidden),
            (json!("******"), json!({"a": 1}), Match::Hidden),
            (json!("******"), json!(true), Match::Different),
            (
                json!("http://h/?token=******"),
                json!("http://h/?token=t"),
                Match::Hidden,
            ),
            (
                json!("http://h/?token=******"),
                json!("http://g/?token=t"),
                Match::Different,
            ),
            (json!("u:******@h/******/x"), json!("u:p@h/q/x"), Match::Hidden),
            (json!("u:******@h/******/x"), json!("u:p@g/q/x"), Match::Different),
            (json!("ab******ba"), json!("aba"), Match::Different),
        ];
        for (shown, wanted, expected) in rows {
            assert_eq!(compare(Some(&shown), &wanted), expected, "{shown} {wanted}");
        }
        assert_eq!(compare(None, &json!("a")), Match::Different);
    }

    proptest! {
        #[test]
        fn masked_text_always_compares_as_hidden(parts in proptest::collection::vec("[a-c]{0,3}", 2..5), secret in "[a-c*]{0,6}") {
            let (shown, wanted) = (parts.join(MASK), parts.join(&secret));
            prop_assert_eq!(compare(Some(&json!(shown)), &json!(wanted)), Match::Hidden);
        }
    }
}
