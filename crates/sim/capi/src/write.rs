//! What the stand-ins write: one request each, with everything it needs.

use chrono::{DateTime, SecondsFormat, Utc};
use metal3_runtime::hub::Key;
use serde_json::{Map, Value, json};

use crate::kinds::Kind;
use crate::site::Purpose;
use crate::view::{Object, text_of};

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Makes an object.
    Create(&'static Kind, Value),
    /// Changes an object by a merge patch.
    Merge(&'static Kind, Key, Value),
    /// Changes the status of an object by a merge patch.
    Status(&'static Kind, Key, Value),
    /// Deletes an object.
    Delete(&'static Kind, Key),
    /// Makes a Secret of a Cluster; what stands in it is known where the API server at this endpoint runs.
    Paper(String, Purpose, Value),
    /// Does something in the workload cluster with this endpoint.
    Site(String, Deed),
}

/// What is done in a workload cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// The API server of a hosted control plane is started.
    Start,
    /// The API server is gone with the last of its machines.
    Stop,
    /// A Node is changed by a merge patch.
    Node(String, Value),
    /// A Node is deleted.
    DeleteNode(String),
    /// A bootstrap token is written, `id.secret`.
    Token(String),
}

/// Adds a finalizer that is not there.
#[must_use]
pub fn protect(kind: &'static Kind, object: &Object, finalizer: &str) -> Option<Write> {
    let mut all = object.finalizers();
    if all.contains(&finalizer) || object.is_going() {
        return None;
    }
    all.push(finalizer);
    Some(metadata(kind, object, json!({ "finalizers": all })))
}

/// Takes a finalizer away.
#[must_use]
pub fn release(kind: &'static Kind, object: &Object, finalizer: &str) -> Option<Write> {
    let mut all = object.finalizers();
    if !all.contains(&finalizer) {
        return None;
    }
    all.retain(|one| *one != finalizer);
    Some(metadata(kind, object, json!({ "finalizers": all })))
}

/// Gives an object an owner beside those it has, but for owners of the kinds in `instead_of`, and labels.
#[must_use]
pub fn adopt(
    kind: &'static Kind,
    object: &Object,
    owner: Value,
    instead_of: &[&str],
    labels: &[(&str, &str)],
) -> Option<Write> {
    let has_labels = labels.iter().all(|(key, value)| object.label(key) == Some(*value));
    let is_interim = |other: &Value| instead_of.contains(&text_of(other, "kind"));
    let is_owned = object.is_owned_by(text_of(&owner, "uid")) && !object.owners().iter().any(is_interim);
    if has_labels && is_owned {
        return None;
    }
    let mut owners: Vec<Value> = object
        .owners()
        .iter()
        .filter(|other| !is_interim(other))
        .cloned()
        .collect();
    if !object.is_owned_by(text_of(&owner, "uid")) {
        owners.push(owner);
    }
    let labels: Map<String, Value> = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    Some(metadata(
        kind,
        object,
        json!({ "ownerReferences": owners, "labels": labels }),
    ))
}

/// Changes metadata, on the version that was decided on: lists are replaced as a whole.
fn metadata(kind: &'static Kind, object: &Object, mut change: Value) -> Write {
    if let Some(members) = change.as_object_mut() {
        members.insert("resourceVersion".to_owned(), object.part("/metadata/resourceVersion"));
    }
    Write::Merge(kind, object.key(), json!({ "metadata": change }))
}

/// Changes an object where it differs.
#[must_use]
pub fn change(kind: &'static Kind, object: &Object, wanted: Value) -> Option<Write> {
    (!covers(Some(&object.0), &wanted)).then(|| Write::Merge(kind, object.key(), wanted))
}

/// Changes the status of an object where it differs.
#[must_use]
pub fn status(kind: &'static Kind, object: &Object, wanted: Value) -> Option<Write> {
    let wanted = json!({ "status": wanted });
    (!covers(Some(&object.0), &wanted)).then(|| Write::Status(kind, object.key(), wanted))
}

/// Deletes an object that is not being deleted.
#[must_use]
pub fn delete(kind: &'static Kind, object: &Object) -> Option<Write> {
    (!object.is_going()).then(|| Write::Delete(kind, object.key()))
}

/// Whether a merge patch changes something.
#[must_use]
pub(crate) fn differs(object: &Object, wanted: &Value) -> bool {
    !covers(Some(&object.0), wanted)
}

/// Whether a merge patch changes nothing.
fn covers(found: Option<&Value>, wanted: &Value) -> bool {
    match (found, wanted) {
        (None, Value::Null) => true,
        (Some(Value::Object(found)), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| covers(found.get(key), value))
        }
        (None, Value::Object(wanted)) => wanted.is_empty(),
        (found, wanted) => found == Some(wanted),
    }
}

/// A reference to an owner.
#[must_use]
pub fn owner(kind: &Kind, object: &Object, is_controller: bool) -> Value {
    let mut owner = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": object.name(), "uid": object.uid(),
    });
    if let Some(members) = owner.as_object_mut().filter(|_| is_controller) {
        members.insert("controller".to_owned(), true.into());
        members.insert("blockOwnerDeletion".to_owned(), true.into());
    }
    owner
}

/// The conditions of an object, some of them said anew. Those of others stay.
#[derive(Debug)]
pub struct Conditions {
    all: Vec<Value>,
    generation: Value,
    now: String,
}

impl Conditions {
    /// As the object has them.
    #[must_use]
    pub fn of(object: &Object, now: DateTime<Utc>) -> Self {
        let all = object.part("/status/conditions");
        Self {
            all: all.as_array().cloned().unwrap_or_default(),
            generation: object.part("/metadata/generation"),
            now: now.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }

    /// Says one: type, status, reason, message. Its time moves with the status only.
    #[must_use]
    pub fn say(mut self, aspect: &str, status: &str, reason: &str, message: &str) -> Self {
        let said = json!({
            "type": aspect, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": self.since(aspect, status), "observedGeneration": self.generation,
        });
        self.put(aspect, said);
        self
    }

    /// Says one in the style of the older contract: what holds has no reason.
    #[must_use]
    pub fn say_older(mut self, aspect: &str, status: &str, reason: &str) -> Self {
        let since = self.since(aspect, status);
        let mut said = json!({ "type": aspect, "status": status, "lastTransitionTime": since });
        if let Some(members) = said.as_object_mut().filter(|_| !reason.is_empty()) {
            members.insert("reason".to_owned(), reason.into());
            members.insert("severity".to_owned(), "Info".into());
        }
        self.put(aspect, said);
        self
    }

    /// Since when a condition has a status.
    fn since(&self, aspect: &str, status: &str) -> String {
        let mut all = self.all.iter();
        let old = all.find(|one| text_of(one, "type") == aspect && text_of(one, "status") == status);
        old.map_or_else(|| self.now.clone(), |old| text_of(old, "lastTransitionTime").to_owned())
    }

    fn put(&mut self, aspect: &str, said: Value) {
        match self.all.iter_mut().find(|one| text_of(one, "type") == aspect) {
            Some(old) => *old = said,
            None => self.all.push(said),
        }
    }

    /// Takes one back.
    #[must_use]
    pub fn without(mut self, aspect: &str) -> Self {
        self.all.retain(|one| text_of(one, "type") != aspect);
        self
    }

    /// Says one that either holds or does not, with a reason for each.
    #[must_use]
    pub fn judge(self, aspect: &str, holds: bool, reasons: (&str, &str), message: &str) -> Self {
        if holds {
            self.say(aspect, "True", reasons.0, "")
        } else {
            self.say(aspect, "False", reasons.1, message)
        }
    }

    /// Repeats the condition `Ready` of another object under another type.
    #[must_use]
    pub fn mirror(self, aspect: &str, of: Option<&Object>, is_done: bool) -> Self {
        match of.and_then(|of| of.condition("Ready")) {
            Some(ready) => {
                let (status, reason, message) = (
                    text_of(ready, "status"),
                    text_of(ready, "reason"),
                    text_of(ready, "message"),
                );
                let reason = if reason.is_empty() { "NoReasonReported" } else { reason };
                self.say(aspect, status, reason, message)
            }
            None => {
                let kind = of.map(Object::kind).unwrap_or_default();
                let why = format!("{kind} does not say yet that it is ready");
                self.judge(aspect, is_done, ("Ready", "NotReady"), &why)
            }
        }
    }

    /// For a status.
    #[must_use]
    pub fn done(self) -> Value {
        self.all.into()
    }
}
