//! CRDs as objects: a stored definition adds a kind. Deleting a definition deletes the kind's objects first and waits
//! for those with finalizers.

use std::sync::Arc;

use metal3_schema::FieldError;
use serde_json::{Value, json};

use super::builtin::definition::{lost_versions, version_errors};
use super::grouping;
use super::kind::{CRD_GROUP, CRD_PLURAL, Kind};
use super::object;
use super::refusal::Refusal;
use super::request::Call;
use super::{ObjectKey, ResourceKey, Store};

/// The finalizer that keeps a definition until its objects are deleted.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Store {
    /// Rejects a CRD that does not define a valid kind.
    pub(super) fn check_definition(&self, call: &Call<'_>, body: &Value) -> Result<(), Refusal> {
        if !call.kind.is_definition() {
            return Ok(());
        }
        let name = object::text(body, "name");
        let invalid = |field: &str, detail: String| {
            let error = FieldError::invalid(field, name, detail);
            Refusal::invalid(&call.kind.kind, &call.kind.group, name, &[error])
        };
        let refused = |errors: &[FieldError]| Refusal::invalid(&call.kind.kind, &call.kind.group, name, errors);
        let errors = version_errors(body);
        if !errors.is_empty() {
            return Err(refused(&errors));
        }
        let kind = Kind::from_definition(body).map_err(|why| invalid("spec", why))?;
        if kind.resource() != name {
            return Err(invalid(
                "metadata.name",
                "must be spec.names.plural+\".\"+spec.group".to_owned(),
            ));
        }
        for version in &kind.versions {
            let violations = version
                .schema
                .as_ref()
                .map(metal3_schema::Schema::violations)
                .unwrap_or_default();
            if !violations.is_empty() {
                return Err(refused(&violations));
            }
        }
        let key = (String::new(), name.to_owned());
        let Some(old) = self.stored(&call.kind, &key).filter(|_| !call.on_status()) else {
            return Ok(());
        };
        let lost = lost_versions(body);
        if !lost.is_empty() {
            return Err(refused(&lost));
        }
        let regrouped = grouping::changed(old, body).filter(|_| self.has_objects(&super::resource_key(&kind)));
        match regrouped {
            Some(at) => Err(Refusal::unsupported(&format!(
                "a changed list or map type of {name} while objects exist, because their managed fields are not \
                 migrated: {at}"
            ))),
            None => Ok(()),
        }
    }

    /// Updates the served kinds after a definition was written or removed.
    pub(super) fn after_write(&mut self, kind: &Kind, key: &ObjectKey) {
        if !kind.is_definition() {
            return self.finish_removal(&kind.resource());
        }
        let stored = self.stored(kind, key).map(|stored| Value::clone(stored));
        match stored.as_ref().map(Kind::from_definition) {
            Some(Ok(defined)) if stored.as_ref().is_some_and(object::deleting) => {
                let time = stored.as_ref().map(|stored| object::text(stored, "deletionTimestamp"));
                self.remove_objects(&defined, time.unwrap_or_default());
                self.finish_removal(&key.1);
            }
            Some(Ok(defined)) => {
                self.kinds.insert(super::resource_key(&defined), Arc::new(defined));
                if let Some(established) = stored.and_then(establish) {
                    self.commit(kind, key, established);
                }
            }
            _ => {
                let (plural, group) = key.1.split_once('.').unwrap_or((key.1.as_str(), ""));
                let resource = (group.to_owned(), plural.to_owned());
                self.kinds.remove(&resource);
            }
        }
    }

    /// Deletes all objects of a kind, as the real server does before it removes the kind.
    fn remove_objects(&mut self, kind: &Kind, time: &str) {
        let objects = self
            .objects
            .get(&super::resource_key(kind))
            .cloned()
            .unwrap_or_default();
        for (key, stored) in objects {
            let mut last = Value::clone(&stored);
            if !object::has_finalizers(&last) {
                self.expunge(kind, &key, last);
            } else if !object::deleting(&last) {
                mark(&mut last, time);
                self.commit(kind, &key, last);
            }
        }
    }

    /// Removes a terminating definition that has no objects left.
    fn finish_removal(&mut self, name: &str) {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        let resource = (group.to_owned(), plural.to_owned());
        let key = (String::new(), name.to_owned());
        let Some(kind) = self.definition_kind().filter(|_| !self.has_objects(&resource)) else {
            return;
        };
        let Some(stored) = self.stored(&kind, &key).filter(|stored| object::deleting(stored)) else {
            return;
        };
        let mut last = Value::clone(stored);
        let mut others = object::member(&last, "finalizers").cloned().unwrap_or_default();
        if let Value::Array(names) = &mut others {
            names.retain(|name| name != CLEANUP);
        }
        if others.as_array().is_none_or(Vec::is_empty) {
            self.expunge(&kind, &key, last);
        } else if object::member(&last, "finalizers") != Some(&others) {
            object::set(&mut last, "finalizers", others);
            self.commit(&kind, &key, last);
        }
    }

    /// Rejects new objects of a terminating kind.
    pub(super) fn check_kind_stays(&self, kind: &Kind, name: &str) -> Result<(), Refusal> {
        let key = (String::new(), kind.resource());
        let definitions = self.definition_kind();
        let definition = definitions
            .as_ref()
            .and_then(|definitions| self.stored(definitions, &key));
        match definition {
            Some(definition) if object::deleting(definition) => Err(Refusal::kind_terminating(kind, name)),
            _ => Ok(()),
        }
    }

    pub(super) fn definition_kind(&self) -> Option<Arc<Kind>> {
        self.kinds.get(&(CRD_GROUP.to_owned(), CRD_PLURAL.to_owned())).cloned()
    }

    fn has_objects(&self, resource: &ResourceKey) -> bool {
        self.objects.get(resource).is_some_and(|objects| !objects.is_empty())
    }
}

/// Sets the deletion timestamp.
pub(super) fn mark(object: &mut Value, time: &str) {
    object::set(object, "deletionTimestamp", time);
    object::set(object, "deletionGracePeriodSeconds", 0);
    let generation = object::generation(object);
    if generation > 0 {
        object::set(object, "generation", generation.saturating_add(1));
    }
}

/// Marks a definition as terminating and adds the cleanup finalizer.
pub(super) fn mark_definition(definition: &mut Value, time: &str) {
    object::set(definition, "deletionTimestamp", time);
    let finalizers = object::member(definition, "finalizers").cloned();
    let mut names: Vec<Value> = finalizers
        .and_then(|names| names.as_array().cloned())
        .unwrap_or_default();
    names.push(CLEANUP.into());
    object::set(definition, "finalizers", names);
    if let Some(Value::Array(conditions)) = definition.pointer_mut("/status/conditions") {
        conditions.push(json!({
            "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "lastTransitionTime": time,
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        }));
    }
}

/// Returns the definition with the conditions that clients wait for; `None` when it already has conditions.
fn establish(mut definition: Value) -> Option<Value> {
    if definition.pointer("/status/conditions").is_some_and(Value::is_array) {
        return None;
    }
    let time = object::text(&definition, "creationTimestamp").to_owned();
    let condition = |what: &str, reason: &str, message: &str| json!({"type": what, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time});
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let status = object::as_map(object::as_map(&mut definition).entry("status").or_insert(Value::Null));
    status.insert("acceptedNames".into(), names);
    let conditions = json!([
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition(
            "Established",
            "InitialNamesAccepted",
            "the initial names have been accepted"
        ),
    ]);
    status.insert("conditions".into(), conditions);
    Some(definition)
}
