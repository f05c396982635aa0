//! Bodies in the binary encoding of Kubernetes: protobuf in an envelope that names version and kind.
//!
//! Each table has the public field numbers and names of a built-in kind, and how a strategic merge patch merges its lists.
//! A body becomes the JSON that the same client sends. Nothing recurses deeper than the tables, which have no cycles. A real server
//! ignores fields that it does not know; here they are rejected, so that no field of a client is lost.

mod form;
mod kinds;
mod meta;
mod pods;
mod reader;
mod volumes;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

pub(super) use form::{Form, Message};
use reader::{Item, Reader};

use super::refusal::Refusal;
use super::request::Request;

const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// Bytes of a malformed body that the answer repeats.
const SHOWN: usize = 30;
/// The largest body, as on a real server.
const LARGEST: usize = 3 << 20;

/// Why a body does not decode.
#[derive(Debug, PartialEq)]
enum Fault {
    Malformed(&'static str),
    /// A field that is not in the table of the message.
    Unknown(u32, &'static str),
}

/// The table of a built-in kind, or of a document that clients send to the server.
pub(super) fn table(kind: &str) -> Option<&'static Message> {
    Some(match kind {
        "ClusterRole" => &kinds::CLUSTER_ROLE,
        "ClusterRoleBinding" => &kinds::CLUSTER_ROLE_BINDING,
        "ConfigMap" => &kinds::CONFIG_MAP,
        "DeleteOptions" => &meta::DELETE_OPTIONS,
        "Deployment" => &pods::DEPLOYMENT,
        "EndpointSlice" => &kinds::ENDPOINT_SLICE,
        "Event" => &kinds::EVENT,
        "Lease" => &kinds::LEASE,
        "LimitRange" => &kinds::LIMIT_RANGE,
        "Namespace" => &kinds::NAMESPACE,
        "Node" => &kinds::NODE,
        "Pod" => &pods::POD,
        "ReplicaSet" => &pods::REPLICA_SET,
        "ResourceQuota" => &kinds::RESOURCE_QUOTA,
        "Role" => &kinds::ROLE,
        "RoleBinding" => &kinds::ROLE_BINDING,
        "Secret" => &kinds::SECRET,
        "SelfSubjectAccessReview" => &kinds::SELF_SUBJECT_ACCESS_REVIEW,
        "SelfSubjectRulesReview" => &kinds::SELF_SUBJECT_RULES_REVIEW,
        "SelfSubjectReview" => &kinds::SELF_SUBJECT_REVIEW,
        "Service" => &kinds::SERVICE,
        "ServiceAccount" => &kinds::SERVICE_ACCOUNT,
        "VolumeAttachment" => &kinds::VOLUME_ATTACHMENT,
        _ => return None,
    })
}

/// Whether the body of a request is in the binary encoding.
pub(super) fn is_binary(request: &Request) -> bool {
    let media_type = request.content_type.split(';').next().unwrap_or_default();
    media_type.trim() == MEDIA_TYPE
}

/// The beginning of a body: the whole may be large, and a Secret.
fn summary(body: &[u8]) -> String {
    let start = &body.get(..SHOWN).unwrap_or(body);
    let shown = match str::from_utf8(start) {
        Ok(text) if text.starts_with('{') => text.to_owned(),
        _ => start.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let rest = if body.len() > SHOWN { " ..." } else { "" };
    format!("{shown}{rest}")
}

/// Decodes a body as the kind that its envelope names; the caller compares it with the kind that the path names.
///
/// # Errors
/// When the body is too large or malformed, or has a kind or a field without a table.
pub(super) fn decode(body: &[u8], wanted: &str) -> Result<Value, Refusal> {
    if body.len() > LARGEST {
        return Err(Refusal::too_large(LARGEST));
    }
    let unrecognized = |why: &str| {
        let shown = summary(body);
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {wanted}): {why} ({shown})"
        ))
    };
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        let why = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(unrecognized(why));
    };
    let (mut named, raw) = open(envelope).map_err(unrecognized)?;
    let text = |name: &str| named.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let Some(table) = table(if kind.is_empty() { wanted } else { &kind }) else {
        return Err(Refusal::unsupported(&format!("protobuf bodies of the kind {kind:?}")));
    };
    let fields = fields(raw, table).map_err(|fault| match fault {
        Fault::Malformed(why) => Refusal::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {wanted}: {why}"
        )),
        Fault::Unknown(number, message) => Refusal::unsupported(&format!(
            "the field {number} of {message} in a protobuf body of the kind {kind:?}"
        )),
    })?;
    named.extend(fields);
    Ok(Value::Object(named))
}

/// The version and kind of an envelope, and the encoded object.
fn open(envelope: &[u8]) -> Result<(Map<String, Value>, &[u8]), &'static str> {
    const PLAIN: &str = "the envelope has an encoding of its own";
    let (mut named, mut raw) = (Map::new(), &[][..]);
    let mut reader = Reader::new(envelope);
    while let Some((number, item)) = reader.next()? {
        match (number, item) {
            (1, Item::Bytes(bytes)) => {
                named = fields(bytes, &meta::TYPE_META).map_err(|_| "the envelope names no version and kind")?;
            }
            (2, Item::Bytes(bytes)) => raw = bytes,
            (3 | 4, Item::Bytes([])) => {}
            (3 | 4, _) => return Err(PLAIN),
            _ => return Err("the envelope has unknown fields"),
        }
    }
    Ok((named, raw))
}

impl From<&'static str> for Fault {
    fn from(why: &'static str) -> Self {
        Self::Malformed(why)
    }
}

fn fields(bytes: &[u8], message: &'static Message) -> Result<Map<String, Value>, Fault> {
    let mut object = Map::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, item)) = reader.next()? {
        let field = message.fields.iter().find(|field| field.number == number);
        let field = field.ok_or(Fault::Unknown(number, message.name))?;
        let place = || field.name.to_owned();
        match &field.form {
            Form::Inline(inlined) => object.extend(fields(item.bytes()?, inlined)?),
            Form::Map(form) => {
                let (key, value) = entry(item.bytes()?, form)?;
                let map = object.entry(place()).or_insert_with(|| json!({}));
                super::object::as_map(map).insert(key, value);
            }
            Form::Many(form) | Form::Union(form) => {
                let items = list(object.entry(place()).or_insert_with(|| json!([])));
                repeated(item, form, items)?;
            }
            Form::Keyed(_, of) => {
                let items = list(object.entry(place()).or_insert_with(|| json!([])));
                items.push(fields(item.bytes()?, of)?.into());
            }
            form => {
                if let Some(value) = single(&item, form)? {
                    object.insert(place(), value);
                }
            }
        }
    }
    Ok(object)
}

/// The value as a list; any other value is replaced with an empty one.
fn list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = json!([]);
    }
    match value {
        Value::Array(items) => items,
        _ => unreachable!("it was made a list above"),
    }
}

/// Adds an item to a list; numbers may come many at a time.
fn repeated(item: Item<'_>, form: &'static Form, items: &mut Vec<Value>) -> Result<(), Fault> {
    if let (Form::Int, Item::Bytes(packed)) = (form, &item) {
        let mut reader = Reader::new(packed);
        while !reader.is_empty() {
            items.push(reader.varint()?.cast_signed().into());
        }
        return Ok(());
    }
    items.push(kept(&item, form)?);
    Ok(())
}

fn entry(bytes: &[u8], form: &'static Form) -> Result<(String, Value), Fault> {
    let (mut key, mut value) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some((number, item)) = reader.next()? {
        match number {
            1 => item.text()?.clone_into(&mut key),
            2 => value = Some(kept(&item, form)?),
            _ => return Err(Fault::Unknown(number, "a map's entry")),
        }
    }
    let value = match value {
        Some(value) => value,
        None => kept(&Item::Bytes(&[]), form)?,
    };
    Ok((key, value))
}

/// A value in a list or a map, where empty values stay.
fn kept(item: &Item<'_>, form: &'static Form) -> Result<Value, Fault> {
    match form {
        Form::Text => Ok(item.text()?.into()),
        Form::Int => Ok(item.number()?.into()),
        Form::Flag => Ok((item.number()? != 0).into()),
        Form::Many(form) => {
            let mut items = Vec::new();
            let mut reader = Reader::new(item.bytes()?);
            while let Some((_, item)) = reader.next()? {
                repeated(item, form, &mut items)?;
            }
            Ok(items.into())
        }
        form => Ok(single(item, form)?.unwrap_or_default()),
    }
}

/// The value of a field that is no list and no map; `None` when JSON omits it.
fn single(item: &Item<'_>, form: &'static Form) -> Result<Option<Value>, Fault> {
    Ok(Some(match form {
        Form::Text | Form::SetText => {
            let text = item.text()?;
            return Ok((matches!(form, Form::SetText) || !text.is_empty()).then(|| text.into()));
        }
        Form::Int | Form::SetInt => {
            let number = item.number()?;
            return Ok((matches!(form, Form::SetInt) || number != 0).then(|| number.into()));
        }
        Form::Flag | Form::SetFlag => {
            let flag = item.number()? != 0;
            return Ok((matches!(form, Form::SetFlag) || flag).then(|| flag.into()));
        }
        Form::Bytes => STANDARD.encode(item.bytes()?).into(),
        Form::Time => return time(item.bytes()?, SecondsFormat::Secs),
        Form::MicroTime => return time(item.bytes()?, SecondsFormat::Micros),
        Form::Quantity => match wrapped(item.bytes()?)?.text()? {
            "" => "0".into(),
            text => text.into(),
        },
        Form::IntOrText => int_or_text(item.bytes()?)?,
        Form::Json => {
            let raw = wrapped(item.bytes()?)?;
            serde_json::from_slice(raw.bytes()?).map_err(|_| Fault::Malformed("a field is not JSON"))?
        }
        Form::One(message) => fields(item.bytes()?, message)?.into(),
        Form::Inline(_) | Form::Map(_) | Form::Many(_) | Form::Union(_) | Form::Keyed(..) => {
            return Err(Fault::Malformed("a list in a list"));
        }
    }))
}

/// The only field of a message.
fn wrapped(bytes: &[u8]) -> Result<Item<'_>, Fault> {
    let mut found = Item::Bytes(&[]);
    let mut reader = Reader::new(bytes);
    while let Some((number, item)) = reader.next()? {
        found = match number {
            1 => item,
            _ => return Err(Fault::Unknown(number, "a value")),
        };
    }
    Ok(found)
}

fn time(bytes: &[u8], digits: SecondsFormat) -> Result<Option<Value>, Fault> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanoseconds) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, item)) = reader.next()? {
        match number {
            1 => seconds = item.number()?,
            2 => nanoseconds = item.number()?,
            _ => return Err(Fault::Unknown(number, "a time")),
        }
    }
    let nanoseconds = u32::try_from(nanoseconds).map_err(|_| Fault::Malformed("a time is out of range"))?;
    let time = DateTime::from_timestamp(seconds, nanoseconds).ok_or(Fault::Malformed("a time is out of range"))?;
    Ok(Some(time.to_rfc3339_opts(digits, true).into()))
}

fn int_or_text(bytes: &[u8]) -> Result<Value, Fault> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    let mut reader = Reader::new(bytes);
    while let Some((field, item)) = reader.next()? {
        match field {
            1 => is_text = item.number()? != 0,
            2 => number = item.number()?,
            3 => text = item.text()?,
            _ => return Err(Fault::Unknown(field, "a number or text")),
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

#[cfg(test)]
mod tests;
