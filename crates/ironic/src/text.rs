//! Checks of text: which may enter a node's fields, and which an error message may show.
//!
//! Ironic puts `driver_info` and `instance_info` on kernel command lines and into files of the ramdisk, so a control
//! character could add lines there. Ironic and proxies repeat parts of a request in their messages, so a message is
//! checked for secrets of the request before it is shown.

use serde_json::Value;
use thiserror::Error;

/// The fields of a node that appear on command lines and in files.
pub const CHECKED_FIELDS: [&str; 2] = ["driver_info", "instance_info"];
/// Keys with secret values, at any depth. Compared in lower case, as a part of the key.
const SECRET_KEYS: [&str; 7] = [
    "password",
    "secret",
    "token",
    "configdrive",
    "user_data",
    "headers",
    "private_key",
];
/// The longest message to show, in characters.
const MESSAGE_MAX: usize = 2000;

/// A value with a control character.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} has a control character (a line break, a tab or the like); remove it")]
pub struct ControlCharacter {
    /// Where: `driver_info/kernel_append_params`.
    pub field: String,
}

/// Checks every string and every key in the value. differs (`ironic-control-characters`): the Go manager sends them.
///
/// # Errors
/// Names the field of the first control character; never its value.
pub fn check(field: &str, value: &Value) -> Result<(), ControlCharacter> {
    let refuse = |field: &str| {
        Err(ControlCharacter {
            field: printable(field),
        })
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.chars().any(char::is_control) => refuse(field),
        Value::String(_) => Ok(()),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(at, item)| check(&format!("{field}/{at}"), item)),
        Value::Object(map) => map.iter().try_for_each(|(key, item)| {
            let inner = format!("{field}/{key}");
            if key.chars().any(char::is_control) {
                return refuse(&inner);
            }
            check(&inner, item)
        }),
    }
}

/// The text on one line, truncated.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MESSAGE_MAX)
        .collect()
}

/// Whether the text contains a string under a secret key of the body, or the value of a patch of such a key.
#[must_use]
pub fn repeats_secret(body: &Value, text: &str) -> bool {
    search(body, text, false)
}

fn search(value: &Value, text: &str, secret: bool) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(inner) => secret && !inner.is_empty() && text.contains(inner.as_str()),
        Value::Array(items) => items.iter().any(|item| search(item, text, secret)),
        Value::Object(map) => {
            // An operation of a JSON patch names its field in `path`.
            let patched = map.get("path").and_then(Value::as_str).is_some_and(is_secret_key);
            map.iter()
                .any(|(key, item)| search(item, text, secret || is_secret_key(key) || (patched && key == "value")))
        }
    }
}

fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_KEYS.iter().any(|secret| key.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn control_characters_are_rejected_with_the_field_and_without_the_value() {
        let value = json!({"ok": "plain", "list": ["a", "b\nc"], "n": 3});
        let error = check("driver_info", &value).unwrap_err();
        assert_eq!(error.field, "driver_info/list/1");
        assert!(!error.to_string().contains("b\nc"));
        for text in ["a\0", "a\tb", "\u{1b}[0m", "a\r", "\u{85}"] {
            assert!(check("x", &json!(text)).is_err(), "{text:?}");
        }
        assert!(check("x", &json!({"a\nb": 1})).is_err());
        assert_eq!(check("x", &json!({"käse": ["ünïcode ~!", null, true]})), Ok(()));
    }

    #[test]
    fn secrets_of_a_body_are_found_at_any_depth() {
        let body = json!({"driver_info": {"redfish_password": "pw-1", "redfish_address": "https://bmc"}});
        assert!(repeats_secret(&body, "refused pw-1"));
        assert!(!repeats_secret(&body, "refused https://bmc"));
        let patch = json!([{"op": "add", "path": "/driver_info/ipmi_password", "value": "pw-2"},
                           {"op": "add", "path": "/driver_info", "value": {"snmp_auth_Password": "pw-3"}},
                           {"op": "add", "path": "/instance_info/image_pull_secret", "value": "pw-4"}]);
        for secret in ["pw-2", "pw-3", "pw-4"] {
            assert!(repeats_secret(&patch, secret), "{secret}");
        }
        assert!(!repeats_secret(&patch, "/driver_info/ipmi_password"));
        assert!(repeats_secret(
            &json!({"configdrive": {"user_data": "#cloud"}}),
            "bad #cloud"
        ));
    }

    proptest! {
        #[test]
        fn printable_text_is_one_line_and_short(text in "\\PC*|[\\x00-\\x7f]{0,3000}") {
            let shown = printable(&text);
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert!(shown.chars().count() <= MESSAGE_MAX);
        }
    }
}
