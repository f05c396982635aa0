//! What an explanation reads, and why it could not.

use std::fmt;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::kind::Kind;
use serde::{Serialize, Serializer};

use crate::object::ObjectId;

/// One read, in the namespace of the explanation or in all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// An object. Of a Secret its metadata are enough.
    Object(ObjectId),
    /// All objects of a kind, or those that a label selector matches. The name is not used.
    List {
        /// Group and kind.
        kind: ObjectId,
        /// The selector, as `kubectl -l` takes it; empty for all.
        labels: String,
    },
    /// The Events of an object; without a name those of all objects.
    Events(ObjectId),
}

impl Read {
    /// The list of a kind of the API, of a Cluster or of all.
    #[must_use]
    pub fn list<K: Kind>(cluster: Option<&str>) -> Self {
        let of_cluster = cluster.map(|cluster| format!("{CLUSTER_NAME_LABEL}={cluster}"));
        Self::selected::<K>(&of_cluster.unwrap_or_default())
    }

    /// The objects of a kind that a label selector matches.
    #[must_use]
    pub fn selected<K: Kind>(labels: &str) -> Self {
        Self::List {
            kind: ObjectId::of::<K>(""),
            labels: labels.to_owned(),
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => write!(f, "{object}"),
            Self::List { kind, .. } => write!(f, "the objects of the kind {}", kind.kind),
            Self::Events(object) if object.name.is_empty() => f.write_str("the Events"),
            Self::Events(object) => write!(f, "the Events of {object}"),
        }
    }
}

/// Why something is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unread {
    /// The viewer lacks a permission.
    Forbidden {
        /// The verb of the permission.
        verb: String,
        /// The resource with its group, as in `kubectl auth can-i`.
        resource: String,
    },
    /// The kind is not installed.
    NotInstalled,
    /// The object cannot be decoded.
    Undecodable(String),
    /// The request failed.
    Failed(String),
    /// It was not requested, or is not used.
    LeftOut(String),
}

impl Unread {
    /// An object that cannot be decoded. The message of the decoder repeats what the object says, which may be a login; what it
    /// expects instead is enough.
    #[must_use]
    pub fn undecodable(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let expected = text
            .rsplit_once(", expected ")
            .map(|(_, what)| format!("expected {what}"));
        let is_without_value = text.starts_with("missing field");
        Self::Undecodable(expected.unwrap_or_else(|| if is_without_value { text } else { "malformed".to_owned() }))
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden { verb, resource } => write!(f, "you may not {verb} {resource}"),
            Self::NotInstalled => f.write_str("the kind is not installed"),
            Self::Undecodable(why) => write!(f, "it cannot be decoded: {why}"),
            Self::Failed(why) => write!(f, "the request failed: {why}"),
            Self::LeftOut(why) => f.write_str(why),
        }
    }
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotRead {
    /// What.
    #[serde(serialize_with = "as_text")]
    pub what: Read,
    /// Why.
    pub why: Unread,
}

fn as_text<S: Serializer>(read: &Read, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(read)
}
