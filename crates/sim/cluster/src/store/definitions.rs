//! CRDs as objects: a stored definition adds a kind. Deleting a definition deletes the kind's objects first and waits
//! for those with finalizers.

use std::sync::Arc;

use chrono::DateTime;
use metal3_schema::{FieldError, Schema};
use serde_json::{Value, json};

use super::builtin::checks;
use super::builtin::definition::lost_versions;
use super::grouping;
use super::kind::{CRD_GROUP, CRD_PLURAL, Kind};
use super::managed_fields::FieldTracker;
use super::names::{has_its_names, is_established};
use super::object;
use super::refusal::Refusal;
use super::request::Call;
use super::{ObjectKey, ResourceKey, Store};

/// The finalizer that keeps a definition until its objects are deleted.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The name of the server as the manager of fields.
const SERVER: &str = "kube-apiserver";

impl Store {
    /// Rejects a CRD that does not define a valid kind.
    pub(super) fn check_definition(&self, call: &Call<'_>, body: &Value) -> Result<(), Refusal> {
        if !call.kind.is_definition() {
            return Ok(());
        }
        let name = object::text(body, "name");
        let refused = |errors: &[FieldError]| Refusal::invalid(&call.kind.kind, &call.kind.group, name, errors);
        let stored = self.stored(&call.kind, &(String::new(), name.to_owned()));
        let established = stored
            .map(|stored| &stored.document)
            .filter(|stored| is_established(stored));
        let mut errors = checks::errors(body, established);
        errors.extend(schema_errors(body));
        if !errors.is_empty() {
            return Err(refused(&errors));
        }
        let kind = Kind::from_definition(body).map_err(|why| refused(&[FieldError::invalid("spec", name, why)]))?;
        // The real server serves its own kind under the path, and stores the other one.
        if self
            .kinds
            .get(&super::resource_key(&kind))
            .is_some_and(|own| !own.is_custom())
        {
            return Err(Refusal::unsupported(&format!(
                "a definition of {name}, which the server has itself"
            )));
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
                let before = stored.unwrap_or_default();
                let names = before.pointer("/status/acceptedNames").cloned();
                let definition = self.name_accepted(kind, key, before);
                if is_established(&definition) {
                    // The names are those that no other kind has.
                    let accepted = definition.pointer("/status/acceptedNames").cloned().unwrap_or_default();
                    let defined = defined.named(&accepted);
                    self.kinds.insert(super::resource_key(&defined), Arc::new(defined));
                }
                // Another one may wait for a name that this one has no more. One that gets no name changes nothing, so that this ends.
                if names.as_ref() != definition.pointer("/status/acceptedNames") {
                    let group = definition.pointer("/spec/group").and_then(Value::as_str);
                    self.accept_waiting(kind, group.unwrap_or_default());
                }
            }
            _ => {
                let (plural, group) = key.1.split_once('.').unwrap_or((key.1.as_str(), ""));
                let resource = (group.to_owned(), plural.to_owned());
                self.kinds.remove(&resource);
                self.accept_waiting(kind, group);
            }
        }
    }

    /// Writes the accepted names and the conditions, as a controller of the server does.
    fn name_accepted(&mut self, kind: &Kind, key: &ObjectKey, definition: Value) -> Value {
        let time = object::text(&definition, "creationTimestamp").to_owned();
        let Some(new) = self.with_accepted_names(&definition, &time) else {
            return definition;
        };
        let before = self.stored_managers(kind, key).unpacked();
        let tracker = FieldTracker {
            kind,
            hooks: &self.hooks,
            api_version: kind.api_version(&kind.storage),
            subresource: "status",
            now: DateTime::parse_from_rfc3339(&time)
                .map(|time| time.to_utc())
                .unwrap_or_default(),
        };
        let managers = tracker.updated(Some(&definition), &new, before, SERVER);
        let managers = managers.packed(&mut self.texts);
        let stored = self.commit_with_managers(kind, key, new, managers);
        Value::clone(&stored)
    }

    /// Gives the definitions of a group the names that they wait for.
    fn accept_waiting(&mut self, kind: &Kind, group: &str) {
        let all = self.objects.get(&super::resource_key(kind)).into_iter().flatten();
        let waiting = all.filter(|(_, other)| {
            let of_group = other.pointer("/spec/group").is_some_and(|found| found == group);
            of_group && !has_its_names(other) && !object::deleting(other)
        });
        let keys: Vec<ObjectKey> = waiting.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.after_write(kind, &key);
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

/// Errors of the schemas of all versions.
fn schema_errors(definition: &Value) -> Vec<FieldError> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let mut errors: Vec<FieldError> = Vec::new();
    for (number, version) in versions.into_iter().flatten().enumerate() {
        let Some(schema) = version.pointer("/schema/openAPIV3Schema") else {
            continue;
        };
        let at = checks::place(definition, number, "schema");
        let found = match Schema::parse(schema) {
            Ok(schema) => schema.violations(),
            Err(error) => {
                errors.push(checks::unparsed(&error, &at));
                continue;
            }
        };
        errors.extend(found.into_iter().map(|error| FieldError {
            field: format!("{at}.{}", error.field),
            ..error
        }));
    }
    errors.dedup();
    errors
}
