//! What was read, and the results of reads from it.
//!
//! Filled by watches, one for each kind. *Unknown* is never *absent*: a kind that is not listed yet, or may not be, has no objects
//! for an answer, and says why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metal3_explain::{NotRead, ObjectId, Read, Unread};
use serde_json::Value;

use crate::kinds;

/// Namespace and name.
pub(crate) type Key = (String, String);

/// How much of a kind is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Known {
    /// Its first list is not complete.
    #[default]
    Nothing,
    /// All objects, of one namespace or of all.
    Listed(Option<String>),
    /// It cannot be read.
    Refused(Unread),
}

#[derive(Debug, Default)]
struct OfKind {
    known: Known,
    /// Why it is not known now whether the objects are the present ones.
    fault: Option<Unread>,
    /// Whether it was read with a login that has ended, and not since.
    is_old: bool,
    objects: BTreeMap<Key, Arc<Value>>,
}

/// An object that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Changed {
    pub(crate) namespace: String,
    pub(crate) object: ObjectId,
}

/// The objects by kind, and Events by the object that they are about.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    kinds: BTreeMap<ObjectId, OfKind>,
    /// By namespace, kind and name of the object.
    events: BTreeMap<(String, String, String), BTreeMap<String, Arc<Value>>>,
    changed: BTreeSet<Changed>,
    version: u64,
}

impl Objects {
    /// Replaces the objects of a kind by a complete list, of one namespace or of all.
    pub(crate) fn replace(&mut self, kind: &ObjectId, namespace: Option<String>, objects: Vec<Value>) {
        if *kind == kinds::events() {
            self.events.clear();
            objects.into_iter().for_each(|event| self.put_event(event));
            self.of_kind(kind).known = Known::Listed(namespace);
            self.of_kind(kind).is_old = false;
            return;
        }
        self.of_kind(kind).is_old = false;
        let mut before = std::mem::take(&mut self.of_kind(kind).objects);
        self.of_kind(kind).known = Known::Listed(namespace);
        for object in objects {
            let known = before.remove(&key(&object));
            match known.filter(|known| version_of(known) == version_of(&object)) {
                Some(known) => drop(self.of_kind(kind).objects.insert(key(&known), known)),
                None => self.put(kind, object),
            }
        }
        for (namespace, name) in before.into_keys() {
            self.touch(kind, namespace, &name);
        }
        self.version += 1;
    }

    /// Adds or replaces an object.
    pub(crate) fn put(&mut self, kind: &ObjectId, object: Value) {
        if *kind == kinds::events() {
            return self.put_event(object);
        }
        let place = key(&object);
        self.of_kind(kind).objects.insert(place.clone(), Arc::new(slim(object)));
        self.touch(kind, place.0, &place.1);
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, kind: &ObjectId, object: &Value) {
        if *kind == kinds::events() {
            let about = about(object);
            if let Some(events) = self.events.get_mut(&about) {
                events.remove(text(object, "/metadata/name"));
                if events.is_empty() {
                    self.events.remove(&about);
                }
            }
            return;
        }
        let place = key(object);
        self.of_kind(kind).objects.remove(&place);
        self.touch(kind, place.0, &place.1);
    }

    /// Records why a kind cannot be read. What was read before is no longer shown.
    pub(crate) fn refuse(&mut self, kind: &ObjectId, why: Unread) {
        let of_kind = self.of_kind(kind);
        of_kind.is_old = false;
        if of_kind.known == Known::Refused(why.clone()) {
            return;
        }
        of_kind.known = Known::Refused(why);
        let gone = std::mem::take(&mut of_kind.objects);
        for (namespace, name) in gone.into_keys() {
            self.touch(kind, namespace, &name);
        }
        self.version += 1;
    }

    /// Records why a watch does not go on, or that it does. What was read before is still shown.
    pub(crate) fn fault(&mut self, kind: &ObjectId, why: Option<Unread>) {
        let of_kind = self.of_kind(kind);
        if of_kind.fault != why {
            of_kind.fault = why;
            self.version += 1;
        }
    }

    /// Marks all as read with a login that has ended.
    pub(crate) fn outdate(&mut self) {
        for of_kind in self.kinds.values_mut() {
            of_kind.is_old = true;
            of_kind.fault = None;
        }
        self.version += 1;
    }

    /// Removes all. Nothing is known then.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        for (kind, of_kind) in std::mem::take(&mut self.kinds) {
            for (namespace, name) in of_kind.objects.into_keys() {
                self.touch(&kind, namespace, &name);
            }
        }
        self.version += 1;
    }

    fn put_event(&mut self, event: Value) {
        let about = about(&event);
        let name = text(&event, "/metadata/name").to_owned();
        let object = ObjectId::foreign("", &about.1, &about.2);
        self.changed.insert(Changed {
            namespace: about.0.clone(),
            object,
        });
        self.version += 1;
        self.events
            .entry(about)
            .or_default()
            .insert(name, Arc::new(slim(event)));
    }

    fn of_kind(&mut self, kind: &ObjectId) -> &mut OfKind {
        self.kinds.entry(kind.clone()).or_default()
    }

    fn touch(&mut self, kind: &ObjectId, namespace: String, name: &str) {
        let object = ObjectId::foreign(&kind.group, &kind.kind, name);
        self.changed.insert(Changed { namespace, object });
        self.version += 1;
    }

    /// What changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Changed> {
        std::mem::take(&mut self.changed)
    }

    /// Grows with each change.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// Whether each kind was listed, or is known not to be readable.
    pub(crate) fn is_listed(&self) -> bool {
        let is_known = |kind: &ObjectId| {
            self.kinds
                .get(kind)
                .is_some_and(|of_kind| of_kind.known != Known::Nothing)
        };
        kinds::first().iter().all(is_known)
    }

    /// One object.
    pub(crate) fn get(&self, kind: &ObjectId, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let place = (namespace.to_owned(), name.to_owned());
        self.kinds.get(&kinds::of(kind))?.objects.get(&place).cloned()
    }

    /// The places of all objects of a kind.
    pub(crate) fn keys(&self, kind: &ObjectId) -> impl Iterator<Item = &Key> {
        self.kinds
            .get(kind)
            .into_iter()
            .flat_map(|of_kind| of_kind.objects.keys())
    }

    /// All namespaces with objects of kinds that are explained.
    pub(crate) fn namespaces(&self) -> BTreeSet<String> {
        let places = self.kinds.values().flat_map(|of_kind| of_kind.objects.keys());
        places.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// The objects of a namespace that are explained.
    pub(crate) fn explained(&self, namespace: &str) -> Vec<ObjectId> {
        let known = self.kinds.iter().filter(|(kind, _)| kind.known().is_some());
        let ids = known.flat_map(|(kind, of_kind)| {
            within(&of_kind.objects, namespace).map(|((_, name), _)| ObjectId::foreign(&kind.group, &kind.kind, name))
        });
        ids.collect()
    }

    /// The kinds that cannot be read, and why; those that are not installed are not wanted either.
    pub(crate) fn unread(&self) -> Vec<NotRead> {
        let refused = self.kinds.iter().filter_map(|(kind, of_kind)| {
            let why = match &of_kind.known {
                Known::Refused(why) => Some(why),
                Known::Nothing | Known::Listed(_) => of_kind.fault.as_ref(),
            };
            let why = why.filter(|why| **why != Unread::NotInstalled)?.clone();
            let what = all_of(kind);
            Some(NotRead { what, why })
        });
        refused.collect()
    }

    /// The only namespace that is read, if it is one for each kind that is.
    pub(crate) fn only_namespace(&self) -> Option<&str> {
        let mut scopes = self.kinds.values().filter_map(|of_kind| match &of_kind.known {
            Known::Listed(scope) => Some(scope.as_deref()),
            _ => None,
        });
        let first = scopes.next()??;
        scopes.all(|scope| scope == Some(first)).then_some(first)
    }

    /// How many kinds are not listed yet, or not again.
    pub(crate) fn pending(&self) -> usize {
        let is_pending = |kind: &&ObjectId| {
            let of_kind = self.kinds.get(kind);
            of_kind.is_none_or(|of_kind| of_kind.known == Known::Nothing && !of_kind.is_old)
        };
        let old = self.kinds.values().filter(|of_kind| of_kind.is_old);
        kinds::first().iter().filter(is_pending).count() + old.count()
    }

    /// Whether a kind was read with a login that has ended, and not since, without a fault that is named.
    pub(crate) fn is_old(&self) -> bool {
        let is_old = |of_kind: &OfKind| of_kind.is_old && of_kind.fault.is_none();
        self.kinds.values().any(is_old)
    }

    /// The result of a read in a namespace. A list is complete whatever its selector: a snapshot selects from it.
    pub(crate) fn answer(&self, namespace: &str, read: &Read) -> (Read, Result<Vec<Arc<Value>>, Unread>) {
        match read {
            Read::Object(id) if kinds::is_secret(id) => {
                let why = "the console reads no Secret".to_owned();
                (read.clone(), Err(Unread::LeftOut(why)))
            }
            Read::Object(id) => {
                let found = self.readable(&kinds::of(id), namespace).map(|of_kind| {
                    let place = (namespace.to_owned(), id.name.clone());
                    of_kind.objects.get(&place).cloned().into_iter().collect()
                });
                (read.clone(), found)
            }
            Read::List { kind, .. } => {
                let kind = kinds::of(kind);
                let found = self.readable(&kind, namespace).map(|of_kind| {
                    within(&of_kind.objects, namespace)
                        .map(|(_, object)| Arc::clone(object))
                        .collect()
                });
                (all_of(&kind), found)
            }
            Read::Events(id) => {
                let found = self.readable(&kinds::events(), namespace).map(|_| {
                    let about = (namespace.to_owned(), id.kind.clone(), id.name.clone());
                    self.events
                        .get(&about)
                        .into_iter()
                        .flat_map(|events| events.values().cloned())
                        .collect()
                });
                (read.clone(), found)
            }
        }
    }

    fn readable(&self, kind: &ObjectId, namespace: &str) -> Result<&OfKind, Unread> {
        let left_out = |why: &str| Err(Unread::LeftOut(why.to_owned()));
        let Some(of_kind) = self.kinds.get(kind) else {
            return left_out("the console does not watch it yet");
        };
        match &of_kind.known {
            Known::Nothing => left_out("its first list is not complete"),
            Known::Refused(why) => Err(why.clone()),
            Known::Listed(Some(only)) if only != namespace => left_out("the console reads another namespace only"),
            Known::Listed(_) => Ok(of_kind),
        }
    }
}

fn all_of(kind: &ObjectId) -> Read {
    Read::List {
        kind: kind.clone(),
        labels: String::new(),
    }
}

/// The objects of a namespace.
fn within<'a>(
    objects: &'a BTreeMap<Key, Arc<Value>>,
    namespace: &str,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
    let from = (namespace.to_owned(), String::new());
    let own = namespace.to_owned();
    objects.range(from..).take_while(move |((place, _), _)| *place == own)
}

/// Without what no page shows.
fn slim(mut object: Value) -> Value {
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

fn key(object: &Value) -> Key {
    let part = |pointer| text(object, pointer).to_owned();
    (part("/metadata/namespace"), part("/metadata/name"))
}

fn version_of(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// Namespace, kind and name of the object of an Event.
fn about(event: &Value) -> (String, String, String) {
    let part = |pointer| text(event, pointer).to_owned();
    (
        part("/metadata/namespace"),
        part("/involvedObject/kind"),
        part("/involvedObject/name"),
    )
}

/// A text of an object; empty if it has none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;
