//! Masks what could be a secret in an object.

use metal3_api::infrastructure::names::NODE_ANNOTATIONS_BACKUP;
use metal3_api::ipam::names::REQUESTED_ADDRESS_ANNOTATION;
use metal3_domain::uri::public_text;
use serde_json::{Map, Value};

/// What a masked value is replaced with.
pub(super) const MASK: &str = "***";
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
    if key == REQUESTED_ADDRESS_ANNOTATION {
        return value.clone();
    }
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
pub(crate) fn masked_text(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        format!("{}{end}", masked_line(&public_text(line)))
    });
    lines.collect()
}

/// Words keep their places: output is in columns.
fn masked_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, value)) = next_value(rest) {
        shown.push_str(before);
        shown.push_str(MASK);
        rest = after_value(value, is_open_ended(before));
    }
    shown.push_str(rest);
    shown
}

/// Splits a line before the first value that follows the name of a secret.
fn next_value(line: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    while let Some((mark, found)) = line.get(from..)?.match_indices(['=', ':', ' ']).next() {
        let at = from + mark;
        from = at + found.len();
        let (before, behind) = (line.get(..at)?, line.get(from..)?);
        let name = name_before(before);
        if !is_sensitive(name) || is_object(before, found) || (found == " " && !is_before_value(name, behind)) {
            continue;
        }
        let start = start_of_value(line, from);
        let value = line.get(start..)?;
        if !value.is_empty() {
            return Some((line.get(..start)?, value));
        }
    }
    None
}

/// The longest name that is looked at.
const LONGEST_NAME: usize = 64;

/// The name that a text ends with, without its quotes.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches(['"', '\'', '\\']);
    let is_of_name = |one: &char| one.is_ascii_alphanumeric() || ['_', '-', '.'].contains(one);
    let length: usize = text
        .chars()
        .rev()
        .take(LONGEST_NAME)
        .take_while(is_of_name)
        .map(char::len_utf8)
        .sum();
    text.get(text.len().saturating_sub(length)..).unwrap_or_default()
}

/// `Secret/bmc: ` names an object.
fn is_object(before: &str, mark: &str) -> bool {
    mark == ":"
        && before
            .strip_suffix(name_before(before))
            .is_some_and(|text| text.ends_with("Secret/"))
}

/// Whether the value of a name follows behind a blank: `password = abc`, `password is abc`. `the Secret is missing` says none.
fn is_before_value(name: &str, rest: &str) -> bool {
    let is_kind = ["secret", "secrets", "credential", "credentials"].contains(&name.to_ascii_lowercase().as_str());
    !is_kind
        && ["= ", "is ", ": ", "=\"", ":\""]
            .iter()
            .any(|mark| rest.starts_with(mark))
}

/// The place of the value behind a mark: after blanks, further marks and the scheme of a login.
fn start_of_value(line: &str, from: usize) -> usize {
    const BEFORE: [&str; 6] = ["=", ":", "is ", "bearer ", "basic ", "digest "];
    let mut at = from;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let word = rest.get(blanks..).unwrap_or_default();
        let quote = usize::from(word.starts_with(['"', '\'']));
        let bare = word.get(quote..).unwrap_or_default();
        let is = |mark: &&&str| {
            bare.get(..mark.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(mark))
        };
        match BEFORE.iter().find(is) {
            Some(mark) => at += blanks + quote + mark.len(),
            None => return at + blanks,
        }
    }
}

/// Whether the value of this name goes on to the end of the line.
fn is_open_ended(before: &str) -> bool {
    let end = before.len().saturating_sub(LONGEST_NAME);
    let end = (end..before.len())
        .find(|at| before.is_char_boundary(*at))
        .unwrap_or_default();
    before
        .get(end..)
        .unwrap_or_default()
        .to_ascii_lowercase()
        .contains("cookie")
}

/// What follows a value: behind its closing quote, or its first blank or separator.
fn after_value(value: &str, is_open_ended: bool) -> &str {
    if is_open_ended {
        return "";
    }
    let quote = value.chars().next().filter(|first| ['"', '\''].contains(first));
    let mut is_escaped = false;
    let mut inside = value.char_indices().skip(usize::from(quote.is_some()));
    let end = inside.find(|(_, one)| match quote {
        Some(quote) => {
            let is_end = *one == quote && !is_escaped;
            is_escaped = *one == '\\' && !is_escaped;
            is_end
        }
        None => [' ', '&', ',', ';', '}', ')'].contains(one),
    });
    match (end, quote) {
        (Some((at, _)), Some(_)) => value.get(at + 1..).unwrap_or_default(),
        (Some((at, _)), None) => value.get(at..).unwrap_or_default(),
        (None, _) => "",
    }
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

    /// One log line, or one annotation, of a tenant.
    #[test]
    fn long_word_is_masked_in_a_time_that_grows_with_its_length() {
        let text = "password:".repeat(200_000);
        assert!(masked_text(&text).len() < 100);
        let text = "a:".repeat(1 << 20);
        assert_eq!(masked_text(&text), text);
    }

    #[test]
    fn requested_address_of_a_claim_is_kept() {
        let claim = json!({ "metadata": { "annotations": { "ipAddress": "192.0.2.7" } } });
        assert_eq!(masked(claim.clone()), claim);
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
            ("{'Authorization': 'Basic canary'}", "{'Authorization': 'Basic ***}"),
            ("Authorization:Basic canary", "Authorization:Basic ***"),
            (
                "{\"node\":\"x\",\"redfish_password\":\"canary\"}",
                "{\"node\":\"x\",\"redfish_password\":***}",
            ),
            ("password = canary, next", "password = ***, next"),
            ("the password is canary today", "the password is *** today"),
            ("{\"password\":\"ca \\\"nary\",\"x\":1}", "{\"password\":***,\"x\":1}"),
            ("password=\"canary canary\" x", "password=*** x"),
            ("Cookie: a=canary; b=canary", "Cookie: ***"),
            ("bmc/password: canary", "bmc/password: ***"),
            ("the token was refused", "the token was refused"),
            ("the Secret is missing", "the Secret is missing"),
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
