//! What was read, and what is still to be read.
//!
//! An explanation asks for objects as it follows them. The caller reads them and explains again, until nothing is asked
//! for: nothing is listed that no link needs. *Unknown* is never *absent*.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::kind::Kind;
use serde_json::Value;

use crate::index::Index;
use crate::labels;
use crate::listed::Listed;
use crate::object::ObjectId;
use crate::older::newest;
use crate::order;
use crate::read::{NotRead, Read, Unread};
use crate::values::{name_of, namespace_of};
use crate::work;

/// The result of a read. An object that does not exist is an empty list.
pub type Answer = Result<Vec<Value>, Unread>;

/// The result of a read, whose objects are shared.
pub(crate) type Found = Result<Vec<Arc<Value>>, Unread>;

/// What was computed from the results, by its type and the question.
type Memo = Mutex<BTreeMap<(TypeId, String), Arc<dyn Any + Send + Sync>>>;

/// The results so far.
///
/// Objects of lists are found by their name, and machines by their Cluster; what is computed from a whole list is computed once.
#[derive(Debug, Default)]
pub struct Snapshot {
    answers: BTreeMap<Read, Found>,
    kinds: BTreeMap<(String, String), OfKind>,
    memo: Memo,
}

/// The objects of the lists of a kind.
#[derive(Debug, Default)]
struct OfKind {
    by_name: Index<String, Arc<Value>>,
    by_cluster: Index<String, Arc<Value>>,
    /// Whether a list without a selector is among the lists: a name that it lacks does not exist.
    is_complete: bool,
}

impl Snapshot {
    /// Adds a result.
    pub fn insert(&mut self, read: Read, answer: Answer) {
        self.store(read, answer.map(|found| found.into_iter().map(Arc::new).collect()));
    }

    /// Adds a result whose objects the caller keeps, too.
    pub fn insert_shared(&mut self, read: Read, found: Result<Vec<Arc<Value>>, Unread>) {
        self.store(read, found);
    }

    fn store(&mut self, read: Read, found: Found) {
        if let (Read::List { kind, labels }, Ok(found)) = (&read, &found) {
            let of_kind = self.kinds.entry((kind.group.clone(), kind.kind.clone())).or_default();
            of_kind.is_complete |= labels.is_empty();
            let found = || found.iter().inspect(|_| work::visit());
            let named = found().map(|object| (name_of(object).to_owned(), Arc::clone(object)));
            of_kind.by_name.add(named);
            if labels.is_empty() {
                let of_cluster = |object: &Arc<Value>| Some((cluster_of(object)?.to_owned(), Arc::clone(object)));
                of_kind.by_cluster.add(found().filter_map(of_cluster));
            }
        }
        self.answers.insert(read, found);
        self.memo.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether each of these reads has a result.
    #[must_use]
    pub fn has_all(&self, reads: &BTreeSet<Read>) -> bool {
        reads.iter().all(|read| self.has(read))
    }

    /// The result of a read, also of an object that a list has.
    pub(crate) fn get(&self, read: &Read) -> Option<Found> {
        self.answers.get(read).cloned().or_else(|| self.listed(read))
    }

    /// Those reads that have no result.
    pub(crate) fn missing(&self, wanted: BTreeSet<Read>) -> BTreeSet<Read> {
        wanted.into_iter().filter(|read| !self.has(read)).collect()
    }

    fn has(&self, read: &Read) -> bool {
        let is_listed = || match read {
            Read::Object(id) => self.of_kind(id).is_some_and(|of_kind| of_kind.find(&id.name).is_some()),
            Read::List { kind, labels } => !labels.is_empty() && self.answers.contains_key(&all_of(kind)),
            Read::Events(_) => false,
        };
        self.answers.contains_key(read) || is_listed()
    }

    fn of_kind(&self, id: &ObjectId) -> Option<&OfKind> {
        self.kinds.get(&(id.group.clone(), id.kind.clone()))
    }

    /// An object that a list has. A list of all objects of the kind shows too that an object does not exist, and has those
    /// that a selector matches.
    fn listed(&self, read: &Read) -> Option<Found> {
        match read {
            Read::Object(id) => {
                work::visit();
                self.of_kind(id)?.find(&id.name).map(Ok)
            }
            Read::List { kind, labels } if !labels.is_empty() => {
                let found = match self.answers.get(&all_of(kind))? {
                    Ok(found) => found,
                    Err(why) => return Some(Err(why.clone())),
                };
                if let Some(cluster) = labels
                    .strip_prefix(CLUSTER_NAME_LABEL)
                    .and_then(|rest| rest.strip_prefix('='))
                {
                    let of_kind = self.of_kind(kind).into_iter();
                    let of_cluster = of_kind.flat_map(|of_kind| of_kind.by_cluster.all(cluster));
                    return Some(Ok(of_cluster.cloned().collect()));
                }
                let selected = found.iter().inspect(|_| work::visit());
                Some(Ok(selected
                    .filter(|one| labels::selects(labels, one))
                    .cloned()
                    .collect()))
            }
            Read::List { .. } | Read::Events(_) => None,
        }
    }

    /// The decoded objects of a list. `None`: it is still to be read.
    pub(crate) fn decoded<K: Kind>(&self, read: &Read) -> Option<Result<Arc<Listed<K>>, Unread>> {
        if let Some(Err(why)) = self.answers.get(read) {
            return Some(Err(why.clone()));
        }
        if !self.has(read) {
            return None;
        }
        let question = match read {
            Read::Object(id) | Read::Events(id) => id.name.clone(),
            Read::List { labels, .. } => labels.clone(),
        };
        let decoded = self.memo(question, || match self.get(read) {
            Some(Ok(found)) => Ok(decoded::<K>(&found)),
            Some(Err(why)) => Err(why),
            None => Ok(Arc::default()),
        });
        Some(match decoded.as_ref() {
            Ok(listed) => Ok(Arc::clone(listed)),
            Err(why) => Err(why.clone()),
        })
    }

    /// What a question about the whole snapshot results in, computed once.
    pub(crate) fn memo<T: Any + Send + Sync>(&self, question: String, compute: impl FnOnce() -> T) -> Arc<T> {
        let key = (TypeId::of::<T>(), question);
        let known = self
            .memo
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return known;
        }
        let computed = Arc::new(compute());
        let shared: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(&computed);
        self.memo
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, shared);
        computed
    }

    /// The results by the namespaces of their objects. What was not read is unknown in each.
    pub(crate) fn by_namespace(&self) -> Vec<(String, Self)> {
        let objects = self.answers.values().flatten().flatten().inspect(|_| work::visit());
        let places = order::set(objects.map(|object| namespace_of(object)));
        let mut parts: Vec<(String, Self)> = Vec::new();
        parts.extend(places.into_iter().map(|place| (place.to_owned(), Self::default())));
        for (read, answer) in &self.answers {
            let found = answer.iter().flatten().inspect(|_| work::visit());
            let found = Index::of(found.map(|object| (namespace_of(object), Arc::clone(object))));
            for (place, part) in &mut parts {
                let own = answer.as_ref().map(|_| found.all(place.as_str()).cloned().collect());
                part.store(read.clone(), own.map_err(Clone::clone));
            }
        }
        parts
    }

    /// All results.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (&Read, &Found)> {
        self.answers.iter()
    }
}

impl OfKind {
    /// The object of this name, or none if it does not exist. `None` if it is still to be read.
    fn find(&self, name: &str) -> Option<Vec<Arc<Value>>> {
        match self.by_name.first(name) {
            Some(found) => Some(vec![Arc::clone(found)]),
            None => self.is_complete.then(Vec::new),
        }
    }
}

fn all_of(kind: &ObjectId) -> Read {
    Read::List {
        kind: kind.clone(),
        labels: String::new(),
    }
}

fn cluster_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/labels")?.get(CLUSTER_NAME_LABEL)?.as_str()
}

fn decoded<K: Kind>(found: &[Arc<Value>]) -> Arc<Listed<K>> {
    let (mut objects, mut unreadable) = (Vec::with_capacity(found.len()), Vec::new());
    for object in found {
        work::visit();
        match decode::<K>(object) {
            Ok(decoded) => objects.push(decoded),
            Err(why) => unreadable.push(NotRead {
                what: Read::Object(ObjectId::of::<K>(name_of(object))),
                why,
            }),
        }
    }
    Arc::new(Listed::new(objects, unreadable))
}

/// An object of a kind, in any version that is understood.
pub(crate) fn decode<K: Kind>(object: &Value) -> Result<K, Unread> {
    K::from_document(newest::<K>(object).as_ref()).map_err(|why| Unread::undecodable(why.inner()))
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
        assert_eq!(
            snapshot.get(&of_cluster),
            Some(Ok(vec![Arc::new(machine("a", "edge"))]))
        );
        assert_eq!(
            snapshot.get(&Read::Object(ObjectId::of::<Machine>("c"))),
            Some(Ok(Vec::new()))
        );
        snapshot.insert(Read::list::<Machine>(None), Err(Unread::NotInstalled));
        assert_eq!(snapshot.get(&of_cluster), Some(Err(Unread::NotInstalled)));
    }
}
