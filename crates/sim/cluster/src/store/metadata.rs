//! Metadata that the server writes, and the first checks of a request body.

use chrono::{DateTime, SecondsFormat, Utc};
use metal3_schema::FieldError;
use metal3_sim_faults::Random;
use serde_json::{Map, Value};

use super::golang::syntax;
use super::object;
use super::refusal::Refusal;
use super::request::{Call, Verb};
use super::wire;

/// Characters of generated name suffixes: no vowels and no lookalikes.
const SUFFIX: &[char] = &[
    'b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x', 'z', '2', '4', '5',
    '6', '7', '8', '9',
];

pub(super) fn timestamp(now: DateTime<Utc>) -> String {
    now.to_rfc3339_opts(SecondsFormat::Secs, true)
}

pub(super) fn uid(random: &mut Random) -> String {
    let (high, low) = (random.number(), random.number());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0xfff,
        low & 0xffff_ffff_ffff,
    )
}

pub(super) fn generated_name(prefix: &str, random: &mut Random) -> String {
    let suffix: String = (0..5).filter_map(|_| random.pick(SUFFIX)).collect();
    let kept: String = prefix.chars().take(58).collect();
    format!("{kept}{suffix}")
}

/// Reads the body of a create or an update and checks that its kind matches the path.
pub(super) fn read_body(call: &Call<'_>) -> Result<Value, Refusal> {
    let kind = &call.kind;
    if wire::is_binary(call.request) {
        if kind.is_custom() {
            return Err(Refusal::unknown_media_type("application/json, application/yaml"));
        }
        return normalize_type(call, wire::decode(&call.request.body, &kind.kind)?);
    }
    let body: Value = serde_json::from_slice(&call.request.body).map_err(|error| {
        let text = String::from_utf8_lossy(&call.request.body);
        let text = if text.is_empty() { "<empty>".into() } else { text };
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: \
             {} ({text})",
            kind.kind,
            syntax(&call.request.body, &error)
        ))
    })?;
    normalize_type(call, body)
}

/// Rejects a patch that takes the kind away from a custom object.
pub(super) fn check_kind_stays(call: &Call<'_>, body: &Value) -> Result<(), Refusal> {
    if !call.kind.is_custom() || body.get("kind").is_some_and(|kind| kind != "") {
        return Ok(());
    }
    let text = body.to_string();
    let error = FieldError::invalid("patch", text.as_str(), format!("Object 'Kind' is missing in '{text}'"));
    Err(Refusal::invalid("", "", "", &[error]))
}

/// Checks `kind` and `apiVersion`; built-in kinds may leave them out.
pub(super) fn normalize_type(call: &Call<'_>, mut body: Value) -> Result<Value, Refusal> {
    let kind = &call.kind;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (found_version, found_kind) = (text("apiVersion"), text("kind"));
    let wanted_version = kind.api_version(&call.target.version);
    let is_patch = call.verb == Verb::Patch && !call.request.is_apply();
    if kind.is_custom() && found_kind.is_empty() {
        let message = format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing",
            kind.kind
        );
        return Err(Refusal::bad_request(message));
    }
    if (kind.is_custom() || !found_version.is_empty()) && found_version != wanted_version {
        if kind.is_custom() && is_patch {
            let detail = format!("must be {wanted_version}");
            let error = FieldError::invalid("apiVersion", found_version.as_str(), detail);
            return Err(Refusal::invalid(&kind.kind, &kind.group, &call.target.name, &[error]));
        }
        let message = format!(
            "the API version in the data ({found_version}) does not match the expected API version ({wanted_version})"
        );
        return Err(Refusal::bad_request(message));
    }
    if !found_kind.is_empty() && found_kind != kind.kind {
        if !kind.is_custom() {
            let message = format!(
                "{found_kind} in version {:?} cannot be handled as a {}: converting (v1.{found_kind}) to ({}): unknown \
                 conversion",
                call.target.version, kind.kind, kind.kind
            );
            return Err(Refusal::bad_request(message));
        }
        let detail = format!("must be {}", kind.kind);
        let error = FieldError::invalid("kind", found_kind.as_str(), detail);
        return Err(Refusal::invalid(
            &found_kind,
            &kind.group,
            object::text(&body, "name"),
            &[error],
        ));
    }
    let map = object::as_map(&mut body);
    map.insert("apiVersion".into(), wanted_version.into());
    map.insert("kind".into(), kind.kind.clone().into());
    normalize_namespace(call, body)
}

/// Checks the namespace against the path and fills it in.
fn normalize_namespace(call: &Call<'_>, mut body: Value) -> Result<Value, Refusal> {
    let namespace = object::text(&body, "namespace");
    if !namespace.is_empty() && namespace != call.target.namespace && call.kind.namespaced {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(message));
    }
    if call.kind.namespaced {
        object::set(&mut body, "namespace", call.target.namespace.clone());
    }
    object::unset(&mut body, "selfLink");
    drop_empty(&mut body);
    Ok(body)
}

/// Removes empty maps and lists from metadata, as the server's types omit them.
fn drop_empty(body: &mut Value) {
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        // The server decodes both into string maps, where null becomes the empty string.
        for name in ["labels", "annotations"] {
            let map = metadata.get_mut(name).and_then(Value::as_object_mut);
            for value in map
                .into_iter()
                .flat_map(|map| map.values_mut())
                .filter(|value| value.is_null())
            {
                *value = Value::from("");
            }
        }
        let empty = |value: &Value| match value {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        // An empty `managedFields` list is a request to reset it.
        metadata.retain(|name, value| name == "managedFields" || !empty(value));
    }
}

/// Runs `work` on the body without its metadata, which the schema must not change.
pub(super) fn with_separate_metadata<T>(body: &mut Value, work: impl FnOnce(&mut Value) -> T) -> T {
    let metadata = object::as_map(body).remove("metadata");
    let done = work(body);
    object::as_map(body).insert("metadata".into(), metadata.unwrap_or_else(|| Value::Object(Map::new())));
    done
}
