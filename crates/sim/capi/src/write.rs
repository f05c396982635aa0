//! Writes of the stand-ins: one self-contained request each.

use chrono::{DateTime, SecondsFormat, Utc};
use metal3_runtime::cache::Key;
use serde_json::{Map, Value, json};

use crate::kinds::Kind;
use crate::view::{Object, text_of};
use crate::workload::Purpose;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Creates an object.
    Create(&'static Kind, Value),
    /// Applies a merge patch to an object.
    Merge(&'static Kind, Key, Value),
    /// Applies a merge patch to the status of an object.
    Status(&'static Kind, Key, Value),
    /// Deletes an object.
    Delete(&'static Kind, Key),
    /// Creates a Secret of a Cluster; the host of the API server at this endpoint supplies its content.
    ClusterSecret(String, Purpose, Value),
    /// Changes the workload cluster with this endpoint.
    Workload(String, WorkloadChange),
}

/// A change in a workload cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkloadChange {
    /// Starts the API server of a control plane without machines.
    Start,
    /// Stops the API server and deletes its data.
    Stop,
    /// Applies a merge patch to a Node.
    Node(String, Value),
    /// Deletes a Node.
    DeleteNode(String),
    /// Creates a bootstrap token, `id.secret`.
    Token(String),
    /// Creates objects that do not exist, each in its collection.
    Objects(Vec<(String, Value)>),
}

/// Adds a finalizer, unless the object has it or is being deleted.
#[must_use]
pub fn add_finalizer(kind: &'static Kind, object: &Object, finalizer: &str) -> Vec<Write> {
    let mut all = object.finalizers();
    if all.contains(&finalizer) || object.is_deleting() {
        return Vec::new();
    }
    all.push(finalizer);
    vec![metadata(kind, object, json!({ "finalizers": all }))]
}

/// Removes a finalizer.
#[must_use]
pub fn remove_finalizer(kind: &'static Kind, object: &Object, finalizer: &str) -> Option<Write> {
    let mut all = object.finalizers();
    if !all.contains(&finalizer) {
        return None;
    }
    all.retain(|one| *one != finalizer);
    Some(metadata(kind, object, json!({ "finalizers": all })))
}

/// Adds an owner and labels to an object, and removes owners of the kinds in `instead_of`.
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

/// Changes metadata with the observed resource version as precondition: merge patches replace lists as a whole.
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
    (!object.is_deleting()).then(|| Write::Delete(kind, object.key()))
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

/// Conditions of an object with changes. Conditions of other writers are kept.
#[derive(Debug)]
pub struct Conditions {
    all: Vec<Value>,
    generation: Value,
    now: String,
}

impl Conditions {
    /// Conditions of the object.
    #[must_use]
    pub fn of(object: &Object, now: DateTime<Utc>) -> Self {
        let all = object.part("/status/conditions");
        Self {
            all: all.as_array().cloned().unwrap_or_default(),
            generation: object.part("/metadata/generation"),
            now: now.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }

    /// Sets type, status, reason and message. The transition time changes only with the status.
    #[must_use]
    pub fn set(mut self, aspect: &str, status: &str, reason: &str, message: &str) -> Self {
        let condition = json!({
            "type": aspect, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": self.since(aspect, status), "observedGeneration": self.generation,
        });
        self.put(aspect, condition);
        self
    }

    /// Sets a condition of the `v1beta1` contract: without a reason when true.
    #[must_use]
    pub fn set_v1beta1(mut self, aspect: &str, status: &str, reason: &str) -> Self {
        let since = self.since(aspect, status);
        let mut condition = json!({ "type": aspect, "status": status, "lastTransitionTime": since });
        if let Some(members) = condition.as_object_mut().filter(|_| !reason.is_empty()) {
            members.insert("reason".to_owned(), reason.into());
            members.insert("severity".to_owned(), "Info".into());
        }
        self.put(aspect, condition);
        self
    }

    /// Transition time for a condition with this status.
    fn since(&self, aspect: &str, status: &str) -> String {
        let mut all = self.all.iter();
        let old = all.find(|one| text_of(one, "type") == aspect && text_of(one, "status") == status);
        old.map_or_else(|| self.now.clone(), |old| text_of(old, "lastTransitionTime").to_owned())
    }

    fn put(&mut self, aspect: &str, condition: Value) {
        match self.all.iter_mut().find(|one| text_of(one, "type") == aspect) {
            Some(old) => *old = condition,
            None => self.all.push(condition),
        }
    }

    /// Removes a condition.
    #[must_use]
    pub fn without(mut self, aspect: &str) -> Self {
        self.all.retain(|one| text_of(one, "type") != aspect);
        self
    }

    /// Sets a condition to true or false, with a reason for each.
    #[must_use]
    pub fn set_bool(self, aspect: &str, holds: bool, reasons: (&str, &str), message: &str) -> Self {
        if holds {
            self.set(aspect, "True", reasons.0, "")
        } else {
            self.set(aspect, "False", reasons.1, message)
        }
    }

    /// Copies the condition `Ready` of another object under another type.
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
                self.set(aspect, status, reason, message)
            }
            None => {
                let kind = of.map(Object::kind).unwrap_or_default();
                let why = format!("{kind} is not ready");
                self.set_bool(aspect, is_done, ("Ready", "NotReady"), &why)
            }
        }
    }

    /// JSON for a status.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.all.into()
    }
}
