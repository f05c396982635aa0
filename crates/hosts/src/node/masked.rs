//! Comparing with a record in which secrets are masked.
//!
//! Ironic shows `******` in place of what it takes for a secret: whole values, and parts of URLs. What stands behind
//! it is unknown, so it is never compared; what stands around it is.

use serde_json::Value;

/// What Ironic shows in place of a secret.
const MASK: &str = "******";

/// What a look at a value says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It is what is wanted.
    Same,
    /// It is something else, or nothing.
    Different,
    /// As far as it is shown it is what is wanted.
    Hidden,
}

/// Looks whether a value is what is wanted.
pub(super) fn look(shown: Option<&Value>, wanted: &Value) -> Look {
    match shown {
        Some(shown) if shown == wanted => match shown {
            Value::String(text) if text.contains(MASK) => Look::Hidden,
            _ => Look::Same,
        },
        Some(Value::String(shown)) if shown.contains(MASK) => match wanted {
            Value::String(wanted) if fits(shown, wanted) => Look::Hidden,
            // A map, such as a config-drive, is masked as a whole.
            Value::Object(_) | Value::Array(_) if shown == MASK => Look::Hidden,
            _ => Look::Different,
        },
        _ => Look::Different,
    }
}

/// Whether the text could be behind the mask: its shown parts stand in it, in their order.
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
    fn a_mask_hides_what_fits_around_it_and_nothing_else() {
        let rows = [
            (json!("a"), json!("a"), Look::Same),
            (json!("a"), json!("b"), Look::Different),
            (json!("******"), json!("secret"), Look::Hidden),
            (json!("******"), json!("******"), Look::Hidden),
            (json!("******"), json!({"a": 1}), Look::Hidden),
            (json!("******"), json!(true), Look::Different),
            (
                json!("http://h/?token=******"),
                json!("http://h/?token=t"),
                Look::Hidden,
            ),
            (
                json!("http://h/?token=******"),
                json!("http://g/?token=t"),
                Look::Different,
            ),
            (json!("u:******@h/******/x"), json!("u:p@h/q/x"), Look::Hidden),
            (json!("u:******@h/******/x"), json!("u:p@g/q/x"), Look::Different),
            (json!("ab******ba"), json!("aba"), Look::Different),
        ];
        for (shown, wanted, expected) in rows {
            assert_eq!(look(Some(&shown), &wanted), expected, "{shown} {wanted}");
        }
        assert_eq!(look(None, &json!("a")), Look::Different);
    }

    proptest! {
        #[test]
        fn whatever_was_masked_counts_as_hidden(parts in proptest::collection::vec("[a-c]{0,3}", 2..5), secret in "[a-c*]{0,6}") {
            let (shown, wanted) = (parts.join(MASK), parts.join(&secret));
            prop_assert_eq!(look(Some(&json!(shown)), &json!(wanted)), Look::Hidden);
        }
    }
}
