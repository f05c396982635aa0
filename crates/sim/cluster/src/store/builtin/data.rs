//! Secrets and ConfigMaps: strings, bytes and keys.

use std::borrow::Cow;

use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{DecodeError, Engine as _};
use metal3_schema::FieldError;
use serde_json::{Map, Value};

use crate::store::object::{self, as_map};

/// Base64 as the API server reads it: trailing bits are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes strings and bytes: null becomes empty, and bytes become canonical base64.
pub(super) fn decode(kind: &str, body: &mut Value) -> Result<(), String> {
    let (texts, bytes) = match kind {
        "Secret" => ("stringData", "data"),
        _ => ("data", "binaryData"),
    };
    for value in entries(body, texts).filter(|value| value.is_null()) {
        *value = "".into();
    }
    for value in entries(body, bytes) {
        let text = value.as_str().unwrap_or_default();
        *value = canonical(text)?.into();
    }
    Ok(())
}

fn entries<'a>(body: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let map = body.get_mut(name).and_then(Value::as_object_mut);
    map.into_iter().flat_map(|map| map.values_mut())
}

fn canonical(text: &str) -> Result<String, String> {
    // Line breaks are allowed anywhere.
    let text: Cow<'_, str> = if text.contains(['\r', '\n']) {
        text.replace(['\r', '\n'], "").into()
    } else {
        text.into()
    };
    let bytes = LENIENT.decode(text.as_bytes()).map_err(|error| {
        let place = match error {
            DecodeError::InvalidByte(place, _) => place,
            // The last four letters are not complete.
            _ => text.len().saturating_sub(text.len() % 4),
        };
        format!("illegal base64 data at input byte {place}")
    })?;
    Ok(STANDARD.encode(bytes))
}

/// Moves `stringData` into `data`, defaults the type of a Secret and removes empty maps.
pub(super) fn normalize(kind: &str, body: &mut Value) {
    let map = as_map(body);
    if kind == "Secret" {
        if map.get("type").is_none_or(|given| given.is_null() || given == "") {
            map.insert("type".to_owned(), "Opaque".into());
        }
        if let Some(Value::Object(texts)) = map.remove("stringData") {
            let data = as_map(map.entry("data").or_insert(Value::Null));
            for (key, text) in texts {
                let text = text.as_str().unwrap_or_default();
                data.insert(key, STANDARD.encode(text).into());
            }
        }
    }
    let empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    map.retain(|name, value| !(matches!(name.as_str(), "data" | "binaryData") && empty(value)));
}

/// Errors of invalid keys and of changes to immutable objects.
pub(super) fn errors(kind: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let keys = |name: &str| new.get(name).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let mut errors = Vec::new();
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    for name in ["data", "binaryData"] {
        for key in keys(name).filter(|key| key.is_empty() || !key.chars().all(allowed)) {
            let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                          or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            errors.push(FieldError::invalid(format!("{name}[{key}]"), key.as_str(), detail));
        }
    }
    for key in keys("binaryData").filter(|key| new.pointer("/data").is_some_and(|data| data.get(key).is_some())) {
        let detail = "duplicate of key present in binaryData";
        errors.push(FieldError::invalid(format!("data[{key}]"), key.as_str(), detail));
    }
    if kind == "Secret" {
        errors.extend(required(new));
    }
    errors.extend(size_error(kind, new));
    let finalizers = object::finalizers(new);
    let has = |name: &str| finalizers.iter().any(|found| found == name);
    if old.is_some() && has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", finalizers.clone(), detail));
    }
    let Some(old) = old.filter(|old| old.get("immutable") == Some(&Value::Bool(true))) else {
        return errors;
    };
    let fields: &[&str] = if kind == "Secret" {
        &["immutable", "data"]
    } else {
        &["immutable", "data", "binaryData"]
    };
    for field in fields.iter().filter(|field| old.get(**field) != new.get(**field)) {
        errors.push(FieldError::forbidden(
            *field,
            "field is immutable when `immutable` is set",
        ));
    }
    errors
}

/// The most bytes of all values.
const LARGEST: usize = 1 << 20;

/// The error of too much data.
fn size_error(kind: &str, new: &Value) -> Option<FieldError> {
    let texts = |name: &str| {
        let values = new
            .get(name)
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values);
        values.filter_map(Value::as_str)
    };
    let plain = |text: &str| text.len();
    let decoded = |text: &str| STANDARD.decode(text).map_or(0, |bytes| bytes.len());
    let size: usize = match kind {
        "Secret" => texts("data").map(decoded).sum(),
        _ => texts("data").map(plain).sum::<usize>() + texts("binaryData").map(decoded).sum::<usize>(),
    };
    let field = if kind == "Secret" { "data" } else { "[]" };
    (size > LARGEST).then(|| FieldError::too_long(field, 1 << 20))
}

/// Errors of the data that a type of Secret requires.
fn required(secret: &Value) -> Vec<FieldError> {
    let has = |key: &str| secret.get("data").is_some_and(|data| data.get(key).is_some());
    let keys: &[&str] = match secret.get("type").and_then(Value::as_str) {
        // One of them is enough.
        Some("kubernetes.io/basic-auth") if has("username") || has("password") => &[],
        Some("kubernetes.io/basic-auth") => &["username", "password"],
        Some("kubernetes.io/ssh-auth") => &["ssh-privatekey"],
        Some("kubernetes.io/tls") => &["tls.crt", "tls.key"],
        Some("kubernetes.io/dockerconfigjson") => &[".dockerconfigjson"],
        _ => &[],
    };
    let missing = keys.iter().filter(|key| !has(key));
    missing
        .map(|key| FieldError::required(format!("data[{key}]"), ""))
        .collect()
}
