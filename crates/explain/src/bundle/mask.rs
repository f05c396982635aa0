//! Masks what could be a secret in an object.

use std::borrow::Cow;

use metal3_api::infrastructure::names::NODE_ANNOTATIONS_BACKUP;
use metal3_api::ipam::names::REQUESTED_ADDRESS_ANNOTATION;
use metal3_domain::uri::{public_text, redacted_url};
use serde_json::{Map, Value};

/// What a masked value is replaced with.
pub(super) const MASK: &str = "***";
/// Parts of the names of members that contain secrets.
const SENSITIVE: [&str; 15] = [
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
    "pwd",
    "psk",
    "keydata",
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
            let is_bmc = members.contains_key("credentialsName");
            let has_certificate = ["crt", "cert", "certificate"]
                .iter()
                .any(|name| members.contains_key(*name));
            for (name, member) in members.iter_mut() {
                let is_key = has_certificate && name == "key" && is_content(member);
                if (is_pair && name == "value") || is_key || (is_sensitive(name) && is_content(member)) {
                    *member = Value::from(MASK);
                } else if let (true, Some(annotations)) = (name == "annotations", member.as_object_mut()) {
                    // Those of the object, and those of objects that are made from it.
                    mask_annotations(annotations);
                } else if let (true, Some(address)) = (is_bmc && name == "address", member.as_str()) {
                    // One that is no URL may contain a login, too.
                    *member = Value::from(redacted_url(address));
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
    // `ADMIN_PASS`, and not `bypass`.
    let is_pass = name.ends_with("pass") && !name.ends_with("bypass");
    (is_login || is_pass || SENSITIVE.iter().any(|part| name.contains(part))) && !is_reference
}

/// A text without logins of URLs, queries of URLs, and what follows the name of a secret.
pub(crate) fn masked_text(text: &str) -> String {
    let text = without_keys(text);
    let lines = text.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        format!("{}{end}", masked_line(&public_text(line)))
    });
    lines.collect()
}

/// A text without private keys in their usual form, whose lines may be parts of one JSON text.
fn without_keys(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "PRIVATE KEY-----";
    const END: &str = "-----END ";
    if !text.contains(BEGIN) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        let end = behind.split_once(END).and_then(|(_, end)| end.split_once(BEGIN));
        shown.push_str(&format!("{before}{BEGIN}{MASK}"));
        rest = end.map_or("", |(_, rest)| rest);
    }
    Cow::Owned(shown + rest)
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
    while let Some((mark, found)) = line.get(from..)?.match_indices(['=', ':', ' ', '\t', '>']).next() {
        let at = from + mark;
        from = at + found.len();
        let (before, behind) = (line.get(..at)?, line.get(from..)?);
        let name = name_before(before);
        let is_named = is_sensitive(name) || (name == LOGIN_OPTION && found == " ");
        if !is_named || is_object(before, found) || (found == " " && !is_before_value(name, behind)) {
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

/// The option of curl whose value is a login.
const LOGIN_OPTION: &str = "-u";
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

/// Whether the value of a name follows behind a blank: `password = abc`, `password is abc`, `--password abc`, `password 'abc'`. `the
/// Secret is missing` says none, and `User "x" cannot list` only who it is.
fn is_before_value(name: &str, rest: &str) -> bool {
    const KINDS: [&str; 4] = ["secret", "secrets", "credential", "credentials"];
    const LOGINS: [&str; 3] = ["user", "username", "login"];
    let lower = name.to_ascii_lowercase();
    let is_quoted = rest.starts_with(['"', '\'']) && !LOGINS.contains(&lower.as_str());
    let has_mark = || {
        ["= ", "=> ", "is ", ": ", "=\"", ":\""]
            .iter()
            .any(|mark| rest.starts_with(mark))
    };
    let is_option = name.starts_with('-') && !rest.starts_with('-');
    !KINDS.contains(&lower.as_str()) && (is_option || is_quoted || has_mark())
}

/// The place of the value behind a mark: after blanks, further marks and the scheme of a login.
fn start_of_value(line: &str, from: usize) -> usize {
    const BEFORE: [&str; 8] = ["=", ":", ">", "is ", "bearer ", "basic ", "digest ", "token "];
    let mut at = from;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let word = rest.get(blanks..).unwrap_or_default();
        let quote = Quote::at(word).map_or(0, |quote| quote.length());
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

/// A quote before a value, and the backslashes before it: JSON that is part of a JSON text has one or more.
#[derive(Clone, Copy)]
struct Quote {
    mark: char,
    backslashes: usize,
    /// What is before them.
    prefix: usize,
}

impl Quote {
    fn at(text: &str) -> Option<Self> {
        // Bytes of Python have a letter before the quote.
        let bare = text.strip_prefix('b').filter(|rest| rest.starts_with(['"', '\'']));
        if let Some(bare) = bare {
            return Self::at(bare).map(|quote| Self { prefix: 1, ..quote });
        }
        let rest = text.trim_start_matches('\\');
        let mark = rest.chars().next().filter(|first| ['"', '\''].contains(first))?;
        Some(Self {
            mark,
            backslashes: text.len() - rest.len(),
            prefix: 0,
        })
    }

    const fn length(self) -> usize {
        self.prefix + self.backslashes + self.mark.len_utf8()
    }

    /// What follows the closing quote. A quote of the value itself has more backslashes.
    fn after(self, value: &str) -> Option<&str> {
        let mut backslashes = 0;
        for (at, one) in value.char_indices().skip(self.length()) {
            let is_escaped = match self.backslashes {
                0 => backslashes % 2 == 1,
                own => backslashes > own,
            };
            if one == self.mark && !is_escaped {
                return value.get(at + one.len_utf8()..);
            }
            backslashes = if one == '\\' { backslashes + 1 } else { 0 };
        }
        None
    }
}

/// What follows a value: behind its closing quote, or its first blank or separator.
fn after_value(value: &str, is_open_ended: bool) -> &str {
    if is_open_ended {
        return "";
    }
    // A list, as Go prints the values of a header, and as JSON has them.
    if let Some(items) = value.strip_prefix('[') {
        return after_list(items);
    }
    let after = match Quote::at(value) {
        Some(quote) => quote.after(value),
        None => value
            .find([' ', '&', ',', ';', '}', ')'])
            .and_then(|at| value.get(at..)),
    };
    after.unwrap_or_default()
}

/// What follows the bracket that closes a list. One in quotes does not.
fn after_list(mut items: &str) -> &str {
    while let Some(at) = items.find(['"', '\'', ']']) {
        let found = items.get(at..).unwrap_or_default();
        match found.strip_prefix(']') {
            Some(rest) => return rest,
            None => {
                items = Quote::at(found)
                    .and_then(|quote| quote.after(found))
                    .unwrap_or_default()
            }
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn private_key_is_masked_in_any_text_and_next_to_its_certificate() {
        let pem = "-----BEGIN EC PRIVATE KEY-----\ncanary\n-----END EC PRIVATE KEY-----";
        for text in [
            format!("a {pem} z"),
            format!("a {} z", pem.replace('\n', "\\n")),
            format!("{pem}\n{pem} z"),
        ] {
            let masked = masked_text(&text);
            assert!(!masked.contains("canary") && masked.ends_with(" z"), "{masked}");
        }
        assert!(!masked_text("-----BEGIN PRIVATE KEY-----\ncanary").contains("canary"));
        let pair = masked(json!({ "status": { "client": { "crt": "x", "key": "canary" } } }));
        assert!(!pair.to_string().contains("canary"), "{pair}");
    }

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
        for word in ["a:", "a://b:c "] {
            let text = word.repeat(1 << 18);
            assert_eq!(masked_text(&text), text);
        }
    }

    #[test]
    fn login_in_the_address_of_a_bmc_is_masked_whatever_its_form() {
        for address in [
            "root:canary@192.0.2.1",
            "redfish:/root:canary@192.0.2.1/x",
            "redfish://root:12/canary@192.0.2.1/x",
            "redfish://root:my canary@192.0.2.1",
        ] {
            let masked =
                masked(json!({ "spec": { "bmc": { "address": address, "credentialsName": "bmc" } } })).to_string();
            assert!(!masked.contains("canary") && masked.contains("192.0.2.1"), "{masked}");
        }
    }

    #[test]
    fn requested_address_of_a_claim_is_kept() {
        let claim = json!({ "metadata": { "annotations": { "ipAddress": "192.0.2.7" } } });
        assert_eq!(masked(claim.clone()), claim);
    }

    #[test]
    fn value_behind_an_option_a_tab_an_arrow_a_tag_or_a_quote_is_masked() {
        for (text, shown) in [
            ("{\"password\":[\"a]canary\"],\"x\":1}", "{\"password\":***,\"x\":1}"),
            ("curl --password canary https://h", "curl --password *** https://h"),
            ("curl -u root:canary https://h", "curl -u *** https://h"),
            ("<Password>canary</Password> <x>", "<Password>*** <x>"),
            ("password => canary", "password => ***"),
            ("password\tcanary", "password\t***"),
            ("invalid password 'canary canary' of x", "invalid password *** of x"),
            ("User \"x\" cannot list secrets", "User \"x\" cannot list secrets"),
            ("the password was refused", "the password was refused"),
        ] {
            assert_eq!(masked_text(text), shown);
        }
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
            ("map[Authorization:[Basic canary]]", "map[Authorization:***]"),
            (
                "{\"Authorization\":[\"Bearer canary\"],\"x\":1}",
                "{\"Authorization\":***,\"x\":1}",
            ),
            ("{'Authorization': b'Basic canary'}", "{'Authorization': b'Basic ***}"),
            ("{'password': b'canary canary', 'x': 1}", "{'password': ***, 'x': 1}"),
            ("Authorization: Token canary", "Authorization: Token ***"),
            ("pwd=canary", "pwd=***"),
            ("rootpwd=\"canary\" quiet", "rootpwd=*** quiet"),
            ("ADMIN_PASS=canary", "ADMIN_PASS=***"),
            ("client-key-data: canary", "client-key-data: ***"),
            ("{\"psk\":\"canary\"}", "{\"psk\":***}"),
            ("bypass=1", "bypass=1"),
            // JSON in a JSON text, once and twice.
            (
                r#"{\"password\": \"canary \\\"canary\\\" canary\", \"x\": 1}"#,
                r#"{\"password\": ***, \"x\": 1}"#,
            ),
            (
                r#"{\\\"password\\\":\\\"canary canary\\\",\\\"x\\\":1}"#,
                r#"{\\\"password\\\":***,\\\"x\\\":1}"#,
            ),
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
