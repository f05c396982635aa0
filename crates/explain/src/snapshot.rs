//! What was read, and what is still to be read.
//!
//! An explanation asks for objects as it follows them. The caller reads them and explains again, until nothing is asked
//! for: nothing is listed that no link needs. *Unknown* is never *absent*.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use metal3_api::kind::Kind;
use serde::Serialize;
use serde_json::Value;

use crate::object::ObjectId;

/// One read, in the namespace of the explanation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// An object. Of a Secret its metadata are enough.
    Object(ObjectId),
    /// All objects of a kind, or those with the label of a Cluster. The name is not used.
    List {
        /// Group and kind.
        kind: ObjectId,
        /// The Cluster.
        cluster: Option<String>,
    },
}

impl Read {
    /// The list of a kind of the API.
    #[must_use]
    pub fn list<K: Kind>(cluster: Option<&str>) -> Self {
        Self::List {
            kind: ObjectId::of::<K>(""),
            cluster: cluster.map(ToOwned::to_owned),
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => write!(f, "{object}"),
            Self::List { kind, .. } => write!(f, "the objects of the kind {}", kind.kind),
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
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden { verb, resource } => write!(f, "you may not {verb} {resource}"),
            Self::NotInstalled => f.write_str("the kind is not installed"),
            Self::Undecodable(why) => write!(f, "it cannot be decoded: {why}"),
            Self::Failed(why) => write!(f, "the request failed: {why}"),
        }
    }
}

/// The result of a read. An object that does not exist is an empty list.
pub type Answer = Result<Vec<Value>, Unread>;

/// The results so far.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    answers: BTreeMap<Read, Answer>,
}

impl Snapshot {
    /// Adds a result.
    pub fn insert(&mut self, read: Read, answer: Answer) {
        self.answers.insert(read, answer);
    }

    pub(crate) fn get(&self, read: &Read) -> Option<&Answer> {
        self.answers.get(read)
    }

    /// Those reads that have no result.
    pub(crate) fn missing(&self, wanted: BTreeSet<Read>) -> BTreeSet<Read> {
        wanted
            .into_iter()
            .filter(|read| !self.answers.contains_key(read))
            .collect()
    }
}
