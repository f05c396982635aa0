//! Decodes the bytes of lists and watches.
//!
//! Each object is decoded separately: an object that does not match its type fails neither its page nor the watch.
//! Error messages contain nothing of its content, which may be a secret.

use std::borrow::Cow;
use std::fmt;

use kube_core::Resource;
use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::RawValue;
use serde_path_to_error::{Path, Segment};

use crate::cache::{Identity, Item, Key, MissingMetadata, prune};
use crate::version::{NotComparable, ResourceVersion};

/// The server sent neither a list nor an event.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The envelope cannot be decoded.
    #[error("the response is not a {0}: {1:?} error at line {2}, column {3}; check for a proxy before the API server")]
    Envelope(&'static str, serde_json::error::Category, usize, usize),
    /// An object without identity cannot be cached.
    #[error(transparent)]
    MissingMetadata(#[from] MissingMetadata),
    /// A list or bookmark has no comparable version.
    #[error(transparent)]
    Version(#[from] NotComparable),
    /// The server sent more than is kept.
    #[error("{0} is larger than any that a cluster needs, so it is not kept")]
    TooLarge(&'static str),
    /// The event type is unknown.
    #[error("the watch sent an event of the unknown type {0:?}")]
    Event(String),
}

fn envelope_error(what: &'static str, error: &serde_json::Error) -> DecodeError {
    DecodeError::Envelope(what, error.classify(), error.line(), error.column())
}

/// A page of a list.
#[derive(Debug)]
pub struct Page<K> {
    /// The objects, in the order of the server.
    pub items: Vec<Item<K>>,
    /// The version of the whole list.
    pub at: ResourceVersion,
    /// The continue token.
    pub rest: Option<String>,
}

#[derive(Deserialize)]
struct ListBody<'a> {
    metadata: ListMetadata,
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    rest: String,
}

/// Reads a page of a list. A page of more than `most` objects is an error before any of them is decoded.
///
/// # Errors
/// When it is no list, or an object has no identity.
pub fn page<K: Resource + DeserializeOwned>(text: &str, most: usize) -> Result<Page<K>, DecodeError> {
    let body: ListBody<'_> = serde_json::from_str(text).map_err(|error| envelope_error("list", &error))?;
    let objects = body.items.map(|items| elements(items, most)).transpose()?;
    let objects = objects.unwrap_or_default();
    Ok(Page {
        items: objects.into_iter().map(item).collect::<Result<_, _>>()?,
        at: ResourceVersion::parse(&body.metadata.resource_version)?,
        rest: Some(body.metadata.rest).filter(|rest| !rest.is_empty()),
    })
}

/// The elements of an array, undecoded.
fn elements(array: &RawValue, most: usize) -> Result<Vec<&RawValue>, DecodeError> {
    let mut is_longer = false;
    let reader = AtMost {
        most,
        is_longer: &mut is_longer,
    };
    let read = serde_json::Deserializer::from_str(array.get()).deserialize_seq(reader);
    if is_longer {
        return Err(DecodeError::TooLarge("the list"));
    }
    read.map_err(|error| envelope_error("list", &error))
}

/// Reads an array up to a number of elements.
struct AtMost<'a> {
    most: usize,
    is_longer: &'a mut bool,
}

impl<'de> Visitor<'de> for AtMost<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = array.next_element()? {
            if elements.len() >= self.most {
                *self.is_longer = true;
                return Err(A::Error::custom("too many elements"));
            }
            elements.push(element);
        }
        Ok(elements)
    }
}

/// An event of a watch.
#[derive(Debug)]
pub enum Event<K> {
    /// An object was created or changed.
    Applied(Item<K>),
    /// An object was deleted.
    Deleted(Identity),
    /// The version up to which all changes were sent.
    Bookmark(ResourceVersion),
    /// The server ends the watch.
    Ended {
        /// The status code.
        code: u16,
        /// The server's text.
        message: String,
    },
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bare {
    #[serde(default)]
    metadata: BareMetadata,
}

/// What identifies an object. Other members are skipped: decoded, a list of bookkeeping takes many times its length.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BareMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

/// Reads a line of a watch.
///
/// # Errors
/// When it is no event, or its object has no identity.
pub fn event<K: Resource + DeserializeOwned>(line: &[u8]) -> Result<Event<K>, DecodeError> {
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| envelope_error("event", &error))?;
    match &*line.type_ {
        "ADDED" | "MODIFIED" => Ok(Event::Applied(item(line.object)?)),
        "DELETED" => Ok(Event::Deleted(identity(line.object)?)),
        "BOOKMARK" => {
            let version = metadata(line.object)?.resource_version.unwrap_or_default();
            Ok(Event::Bookmark(ResourceVersion::parse(&version)?))
        }
        "ERROR" => {
            let Status { code, message } =
                serde_json::from_str(line.object.get()).map_err(|error| envelope_error("status", &error))?;
            Ok(Event::Ended { code, message })
        }
        other => Err(DecodeError::Event(other.to_owned())),
    }
}

fn item<K: Resource + DeserializeOwned>(raw: &RawValue) -> Result<Item<K>, DecodeError> {
    let mut reader = serde_json::Deserializer::from_str(raw.get());
    match serde_path_to_error::deserialize::<_, K>(&mut reader) {
        Ok(mut object) => {
            // Immediately, because most of a long list is bookkeeping.
            prune(&mut object);
            Ok(Item::Object(object))
        }
        Err(error) => Ok(Item::Unreadable {
            identity: identity(raw)?,
            why: format!(
                "{}: {}",
                place(error.path()),
                without_content(&error.inner().to_string())
            ),
        }),
    }
}

fn metadata(raw: &RawValue) -> Result<BareMetadata, DecodeError> {
    let bare: Bare = serde_json::from_str(raw.get()).map_err(|error| envelope_error("object", &error))?;
    Ok(bare.metadata)
}

fn identity(raw: &RawValue) -> Result<Identity, DecodeError> {
    let meta = metadata(raw)?;
    let need = |text: Option<String>, member| text.ok_or(MissingMetadata::Missing(member));
    Ok(Identity {
        key: Key {
            namespace: meta.namespace.unwrap_or_default(),
            name: need(meta.name, "name")?,
        },
        uid: need(meta.uid, "uid")?,
        version: ResourceVersion::parse(&need(meta.resource_version, "resourceVersion")?)?,
    })
}

/// The members whose keys are content.
const MAPS: [&str; 7] = [
    "annotations",
    "binaryData",
    "data",
    "labels",
    "matchLabels",
    "settings",
    "stringData",
];

/// The path of a member, without the keys that a user has written.
fn place(path: &Path) -> String {
    let (mut text, mut is_map) = (String::new(), false);
    for segment in path {
        let shown = match segment {
            Segment::Map { .. } if is_map => ".*".to_owned(),
            Segment::Map { key } => format!(".{key}"),
            Segment::Seq { index } => format!("[{index}]"),
            Segment::Enum { .. } | Segment::Unknown => ".?".to_owned(),
        };
        is_map = matches!(segment, Segment::Map { key } if !is_map && MAPS.contains(&key.as_str()));
        text.push_str(&shown);
    }
    text.trim_start_matches('.').to_owned()
}

/// What the decoder expected, without what it found.
fn without_content(message: &str) -> &str {
    if message.starts_with("missing field") {
        return message;
    }
    let expected = message.rfind("expected ").and_then(|at| message.get(at..));
    expected.unwrap_or("not what its type can hold")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;

    fn version(number: u64) -> ResourceVersion {
        ResourceVersion::parse(&number.to_string()).unwrap()
    }

    #[test]
    fn path_of_an_error_shows_no_key_that_a_user_has_written() {
        let text = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7","labels":{"hunter2":null}}}"#;
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        let Ok(Item::Unreadable { why, .. }) = item::<Secret>(&raw) else {
            panic!("a label without a value cannot be decoded");
        };
        assert!(why.starts_with("metadata.labels.*: expected"), "{why}");
    }

    #[test]
    fn object_that_cannot_be_decoded_fails_no_page_and_shows_no_content() {
        let text = r#"{"kind":"SecretList","metadata":{"resourceVersion":"9","continue":"more"},"items":[
            {"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","managedFields":[{}]}},
            {"metadata":{"name":"b","namespace":"n","uid":"v","resourceVersion":"8"},"type":["hunter2, expected x"]},
            {"metadata":{"name":"c","namespace":"n","uid":"w","resourceVersion":"8"},"data":{"password":"hunter2!"}}]}"#;
        let page: Page<Secret> = page(text, usize::MAX).unwrap();
        assert_eq!((page.at, page.rest.as_deref()), (version(9), Some("more")));
        let [
            Item::Object(first),
            Item::Unreadable { identity, why },
            Item::Unreadable { why: third, .. },
        ] = &page.items[..]
        else {
            panic!("{:?}", page.items.len());
        };
        assert_eq!(first.metadata.managed_fields, None);
        assert_eq!(
            (identity.key.to_string().as_str(), &identity.version),
            ("n/b", &version(8))
        );
        assert!(why.starts_with("type: expected"), "{why}");
        for why in [why, third] {
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn object_without_identity_is_rejected() {
        let text = r#"{"metadata":{"resourceVersion":"9"},"items":[{"data":7}]}"#;
        assert!(matches!(
            page::<ConfigMap>(text, usize::MAX),
            Err(DecodeError::MissingMetadata(MissingMetadata::Missing("name")))
        ));
    }

    #[test]
    fn empty_lists_come_as_null_too() {
        let page: Page<ConfigMap> = page(r#"{"metadata":{"resourceVersion":"9"},"items":null}"#, usize::MAX).unwrap();
        assert!(page.items.is_empty() && page.rest.is_none());
    }

    #[test]
    fn page_of_more_objects_than_are_kept_is_an_error_before_they_are_decoded() {
        // Without names: an error of its own, if one of them were decoded.
        let text = r#"{"metadata":{"resourceVersion":"9"},"items":[{"data":7},{"data":7},{"data":7}]}"#;
        let decoded = |most| page::<ConfigMap>(text, most);
        assert!(matches!(decoded(2), Err(DecodeError::TooLarge("the list"))));
        assert!(matches!(decoded(3), Err(DecodeError::MissingMetadata(_))));
        let other = page::<ConfigMap>(r#"{"metadata":{"resourceVersion":"9"},"items":{}}"#, 2);
        assert!(matches!(other, Err(DecodeError::Envelope("list", ..))));
    }

    #[test]
    fn events_of_every_type_are_read() {
        let read = |line: &str| event::<ConfigMap>(line.as_bytes());
        let object = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
        let line = |what: &str, object: &str| format!(r#"{{"type":"{what}","object":{object}}}"#);
        assert!(matches!(
            read(&line("ADDED", object)),
            Ok(Event::Applied(Item::Object(_)))
        ));
        assert!(matches!(read(&line("MODIFIED", object)), Ok(Event::Applied(_))));
        assert!(matches!(read(&line("DELETED", object)), Ok(Event::Deleted(last)) if last.version == version(7)));
        assert!(matches!(read(&line("BOOKMARK", object)), Ok(Event::Bookmark(at)) if at == version(7)));
        let status = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
        assert!(matches!(
            read(&line("ERROR", status)),
            Ok(Event::Ended { code: 410, .. })
        ));
        assert!(matches!(read(&line("RENAMED", object)), Err(DecodeError::Event(what)) if what == "RENAMED"));
        assert!(matches!(read("<html>"), Err(DecodeError::Envelope("event", ..))));
    }

    #[test]
    fn deleted_object_that_cannot_be_decoded_is_deleted_from_the_cache() {
        let line = r#"{"type":"DELETED","object":{"data":7,"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}}"#;
        assert!(matches!(event::<ConfigMap>(line.as_bytes()), Ok(Event::Deleted(_))));
    }
}
