//! What was read, and what is still to be read.
//!
//! An explanation asks for objects as it follows them. The caller reads them and explains again, until nothing is asked
//! for: nothing is listed that no link needs. *Unknown* is never *absent*.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::kind::Kind;
use serde::Serialize;
use serde_json::Value;

use crate::labels;
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
}

impl Unread {
    /// An object that cannot be decoded. The message of the decoder repeats what the object says, which may be a login; what it
    /// expects instead is enough.
    pub(crate) fn undecodable(error: &serde_json::Error) -> Self {
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
        }
    }
}

/// The result of a read. An object that does not exist is an empty list.
pub type Answer = Result<Vec<Value>, Unread>;

/// The name of an object.
pub(crate) fn name_of(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// The namespace of an object.
pub(crate) fn namespace_of(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// A text of an object; empty if it has none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

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

    /// The result of a read, also of an object that a list has.
    pub(crate) fn get(&self, read: &Read) -> Option<Answer> {
        self.answers.get(read).cloned().or_else(|| self.listed(read))
    }

    /// Those reads that have no result.
    pub(crate) fn missing(&self, wanted: BTreeSet<Read>) -> BTreeSet<Read> {
        let is_missing = |read: &Read| !self.answers.contains_key(read) && self.listed(read).is_none();
        wanted.into_iter().filter(is_missing).collect()
    }

    /// An object that a list has. A list of all objects of the kind shows too that an object does not exist, and has those
    /// that a selector matches.
    fn listed(&self, read: &Read) -> Option<Answer> {
        let id = match read {
            Read::Object(id) => id,
            Read::List { kind, labels } if !labels.is_empty() => {
                let all = Read::List {
                    kind: kind.clone(),
                    labels: String::new(),
                };
                let selects = |found: &Vec<Value>| {
                    found
                        .iter()
                        .filter(|one| labels::selects(labels, one))
                        .cloned()
                        .collect()
                };
                return self
                    .answers
                    .get(&all)
                    .map(|answer| answer.as_ref().map(selects).map_err(Clone::clone));
            }
            Read::List { .. } | Read::Events(_) => return None,
        };
        let lists = self.answers.iter().filter_map(|(read, answer)| match (read, answer) {
            (Read::List { kind, labels }, Ok(found)) if kind.group == id.group && kind.kind == id.kind => {
                Some((labels, found))
            }
            _ => None,
        });
        let mut is_absent = false;
        for (labels, found) in lists {
            if let Some(one) = found.iter().find(|one| name_of(one) == id.name) {
                return Some(Ok(vec![one.clone()]));
            }
            is_absent |= labels.is_empty();
        }
        is_absent.then(|| Ok(Vec::new()))
    }

    /// The same with the objects of one namespace. What was not read remains unknown.
    #[must_use]
    pub(crate) fn of_namespace(&self, namespace: &str) -> Self {
        let answers = self.answers.iter().map(|(read, answer)| {
            let answer = answer.as_ref().map_err(Clone::clone).map(|found| {
                let found = found.iter().filter(|one| namespace_of(one) == namespace);
                found.cloned().collect()
            });
            (read.clone(), answer)
        });
        Self {
            answers: answers.collect(),
        }
    }

    /// All results.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (&Read, &Answer)> {
        self.answers.iter()
    }
}

#[cfg(test)]
mod tests {
    use metal3_api::cluster::Machine;
    use serde_json::json;

    use super::*;

    #[test]
    fn message_about_an_object_that_cannot_be_decoded_repeats_nothing_of_it() {
        let shown = |value: serde_json::Value| {
            let error = serde_json::from_value::<Machine>(value).unwrap_err();
            Unread::undecodable(&error).to_string()
        };
        let login = shown(json!({ "metadata": "https://u:canary, expected x@h" }));
        assert!(login.contains("expected") && !login.contains("canary"), "{login}");
        let part = shown(json!({ "metadata": { "labels": { "a": ["canary"] } } }));
        assert!(!part.contains("canary"), "{part}");
    }

    #[test]
    fn list_of_all_answers_for_a_selector_and_for_an_object() {
        let machine = |name: &str, cluster: &str| json!({ "metadata": { "name": name, "labels": { CLUSTER_NAME_LABEL: cluster } } });
        let mut snapshot = Snapshot::default();
        snapshot.insert(
            Read::list::<Machine>(None),
            Ok(vec![machine("a", "edge"), machine("b", "far")]),
        );
        let of_cluster = Read::list::<Machine>(Some("edge"));
        assert_eq!(snapshot.get(&of_cluster), Some(Ok(vec![machine("a", "edge")])));
        assert_eq!(
            snapshot.get(&Read::Object(ObjectId::of::<Machine>("c"))),
            Some(Ok(Vec::new()))
        );
        snapshot.insert(Read::list::<Machine>(None), Err(Unread::NotInstalled));
        assert_eq!(snapshot.get(&of_cluster), Some(Err(Unread::NotInstalled)));
    }
}
