//! Masks what could be a secret in an object.

use metal3_api::infrastructure::names::NODE_ANNOTATIONS_BACKUP;
use metal3_domain::uri::public_text;
use serde_json::{Map, Value};

/// What a masked value is replaced with.
const MASK: &str = "***";
/// Parts of the names of members that contain secrets.
const SENSITIVE: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "privatekey",
    "apikey",
    "userdata",
    "authorization",
    "cookie",
    "signature",
];
/// Ends of names of members that only refer to one.
const REFERENCES: [&str; 7] = ["name", "namespace", "ref", "reference", "version", "kind", "error"];
/// Domains whose annotations have a known content. Others contain what a user or a tool of theirs wrote.
const DOMAINS: [&str; 4] = ["metal3.io", "cluster.x-k8s.io", "kubernetes.io", "k8s.io"];
/// The annotation that repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object without what could be a secret.
pub(super) fn masked(mut object: Value) -> Value {
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    mask(&mut object);
    object
}

fn mask_annotations(annotations: &mut Map<String, Value>) {
    annotations.remove(LAST_APPLIED);
    for (key, value) in annotations {
        *value = annotation(key, value);
    }
}

fn annotation(key: &str, value: &Value) -> Value {
    let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
    let is_known = DOMAINS.iter().any(|known| {
        let rest = domain.strip_suffix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let text = value.as_str().unwrap_or_default();
    if !is_known {
        return Value::from(if text.is_empty() { "" } else { MASK });
    }
    // An annotation that holds an object, such as the status of a host.
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(mut inner)) if key == NODE_ANNOTATIONS_BACKUP => {
            mask_annotations(&mut inner);
            Value::Object(inner).to_string().into()
        }
        Ok(mut inner @ (Value::Object(_) | Value::Array(_))) => {
            mask(&mut inner);
            Value::from(inner.to_string())
        }
        _ => Value::from(masked_text(text)),
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // A pair of a name and a free value, as in variables of a topology and in meta data.
            let is_pair =
                members.contains_key("value") && (members.contains_key("name") || members.contains_key("key"));
            for (name, member) in members.iter_mut() {
                if (is_pair && name == "value") || (is_sensitive(name) && is_content(member)) {
                    *member = Value::from(MASK);
                } else if let (true, Some(annotations)) = (name == "annotations", member.as_object_mut()) {
                    // Those of the object, and those of objects that are made from it.
                    mask_annotations(annotations);
                } else {
                    mask(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) => *text = masked_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a member holds a value itself, and not an object that names one.
fn is_content(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
        Value::Array(items) => items.iter().any(is_content),
        Value::Null | Value::Bool(_) | Value::Object(_) => false,
    }
}

fn is_sensitive(name: &str) -> bool {
    let name: String = name
        .to_ascii_lowercase()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let is_reference = REFERENCES.iter().any(|end| name.ends_with(end)) && !name.ends_with("username");
    let is_login = name == "username" || name == "user" || name == "login";
    (is_login || SENSITIVE.iter().any(|part| name.contains(part))) && !is_reference
}

/// A text without logins of URLs, queries of URLs, and what follows the name of a secret.
pub(super) fn masked_text(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        format!("{}{end}", masked_line(&public_text(line)))
    });
    lines.collect()
}

/// Words keep their places: output is in columns.
fn masked_line(line: &str) -> String {
    let mut hides_next = false;
    let words = line.split(' ').map(|word| {
        if hides_next && !word.is_empty() {
            hides_next = is_before_value(word);
            return if hides_next { word.to_owned() } else { MASK.to_owned() };
        }
        let (shown, is_open) = masked_word(word);
        hides_next = hides_next || is_open;
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `Authorization: Bearer abc` has a word before the value, and so has `password = abc`.
fn is_before_value(word: &str) -> bool {
    const SCHEMES: [&str; 3] = ["bearer", "basic", "digest"];
    let bare = word.trim_matches(|one: char| !one.is_ascii_alphanumeric());
    ["is", "=", ":"].contains(&word) || SCHEMES.contains(&bare.to_ascii_lowercase().as_str())
}

/// A word, and whether the next one is a value to hide.
fn masked_word(word: &str) -> (String, bool) {
    for (at, mark) in word.match_indices(['=', ':']) {
        let (before, rest) = word.split_at_checked(at).unwrap_or((word, ""));
        let name = before.rsplit(['{', ',', ';', '&', '?', '(']).next().unwrap_or_default();
        // `Secret/bmc: ` names an object.
        if (mark == ":" && name.contains('/')) || !is_sensitive(name) {
            continue;
        }
        let value = rest.get(mark.len()..).unwrap_or_default();
        return match value.trim_matches(['"', '\'']) {
            "" => (word.to_owned(), true),
            scheme if is_before_value(scheme) => (word.to_owned(), true),
            _ => (format!("{before}{mark}{MASK}"), false),
        };
    }
    (word.to_owned(), false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_kept_and_values_are_masked() {
        let object = json!({
            "metadata": { "annotations": { "metal3.io/x": "https://u:canary@h/p", "example.com/x": "canary" } },
            "spec": { "bmc": { "credentialsName": "bmc", "address": "redfish://u:canary@192.0.2.1" },
                "password": "canary", "AdminPassword": "canary", "userData": { "name": "data", "namespace": "lab" },
                "bootstrap": { "dataSecretName": "b" }, "variables": [{ "name": "registry", "value": { "x": "canary" } }] },
        });
        let masked = masked(object);
        assert!(!masked.to_string().contains("canary"), "{masked}");
        assert_eq!(masked["spec"]["bmc"]["credentialsName"], "bmc");
        assert_eq!(masked["spec"]["userData"]["name"], "data");
        assert_eq!(masked["spec"]["bootstrap"]["dataSecretName"], "b");
    }

    #[test]
    fn text_is_kept_except_for_values_after_the_name_of_a_secret() {
        for (text, shown) in [
            (
                "HTTP 401 from the BMC: login required",
                "HTTP 401 from the BMC: login required",
            ),
            ("password=canary was refused", "password=*** was refused"),
            ("Password: canary refused", "Password: *** refused"),
            ("Authorization: Bearer canary", "Authorization: Bearer ***"),
            ("\"redfish_password\": \"canary\"", "\"redfish_password\": ***"),
            ("{'Authorization': 'Basic canary'}", "{'Authorization': 'Basic ***"),
            ("Authorization:Basic canary", "Authorization:Basic ***"),
            (
                "{\"node\":\"x\",\"redfish_password\":\"canary\"}",
                "{\"node\":\"x\",\"redfish_password\":***",
            ),
            ("timeout=3&password=canary", "timeout=3&password=***"),
            ("/redfish/v1/x?token=canary failed", "/redfish/v1/x?token=*** failed"),
            ("password: = canary", "password: = ***"),
            ("get https://h/i?sig=canary now", "get https://h/i?*** now"),
            ("Secret/bmc: does not exist", "Secret/bmc: does not exist"),
            ("BMCCredentialError: not found", "BMCCredentialError: not found"),
            ("NAME  BMC\nh0    redfish://h", "NAME  BMC\nh0    redfish://h"),
        ] {
            assert_eq!(masked_text(text), shown);
        }
    }
}
