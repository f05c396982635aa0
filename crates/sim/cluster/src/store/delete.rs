//! Deleting objects: immediately, or after their finalizers are removed.

use serde_json::{Value, json};

use super::definitions::{mark, mark_definition};
use super::metadata::timestamp;
use super::object;
use super::options::DeleteOptions;
use super::refusal::Refusal;
use super::request::Call;
use super::{Answer, Store};

/// Namespaces that always exist.
const FIXED: [&str; 3] = ["default", "kube-public", "kube-system"];

impl Store {
    pub(super) fn delete(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let options = DeleteOptions::read(call.request)?;
        Ok(Answer::ok(match self.delete_one(call, &options)? {
            DeleteOutcome::Terminating(object) => self.represented(call, object)?,
            DeleteOutcome::Deleted { uid } => deleted_status(call, &uid),
        }))
    }

    fn delete_one(&mut self, call: &Call<'_>, options: &DeleteOptions) -> Result<DeleteOutcome, Refusal> {
        if call.kind.kind == "Namespace" && !call.kind.is_custom() && FIXED.contains(&call.target.name.as_str()) {
            let why = "this namespace may not be deleted";
            return Err(Refusal::forbidden(&call.kind, &call.target.name, why));
        }
        let mut current = self.current(call)?;
        check_preconditions(call, options, &current)?;
        let uid = object::text(&current, "uid").to_owned();
        self.hooks.run_validating(call, Some(&current), None)?;
        let key = call.key();
        let Some(mut stored) = self.stored(&call.kind, &key).map(|stored| Value::clone(stored)) else {
            return Err(Refusal::not_found(&call.kind, &call.target.name));
        };
        let waits = call.kind.kind == "Namespace" || call.kind.is_definition();
        let changes = !waits && options.policy.mark(&mut stored);
        let terminates = waits || object::has_finalizers(&stored);
        let stored_managers = self.stored_managers(&call.kind, &key);
        if object::deleting(&stored) && terminates && !changes {
            stored_managers.show(&mut current);
            return Ok(DeleteOutcome::Terminating(current));
        }
        if !terminates {
            if !options.dry_run {
                self.expunge(&call.kind, &key, stored);
            }
            return Ok(DeleteOutcome::Deleted { uid });
        }
        let marked = if object::deleting(&stored) {
            stored
        } else {
            mark_deleted(call, stored)
        };
        let marked = if options.dry_run {
            marked
        } else {
            let stored = self.commit(&call.kind, &key, marked);
            self.after_write(&call.kind, &key);
            Value::clone(&stored)
        };
        let mut marked = self.hooks.converted(&call.kind, &marked, &call.target.version)?;
        stored_managers.show(&mut marked);
        Ok(DeleteOutcome::Terminating(marked))
    }

    pub(super) fn delete_collection(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        if call.kind.kind == "Namespace" {
            return Err(Refusal::method_not_allowed());
        }
        let options = DeleteOptions::read(call.request)?;
        let list = match self.list(call) {
            // The real server detects the unacceptable representation only after it deleted the objects.
            Err(refusal) if refusal.code == 406 => Err(refusal),
            listed => Ok(listed?),
        };
        let selected = self.selected(call, self.version)?;
        for key in selected.into_keys() {
            let mut one = call.clone();
            (one.target.namespace, one.target.name) = key;
            match self.delete_one(&one, &options) {
                // Another client deleted the object first.
                Err(refusal) if refusal.code == 404 => {}
                Err(refusal) => return Err(refusal),
                Ok(_) => {}
            }
        }
        list
    }
}

/// The result of deleting one object.
enum DeleteOutcome {
    /// The object stays until its finalizers are removed.
    Terminating(Value),
    Deleted {
        uid: String,
    },
}

fn deleted_status(call: &Call<'_>, uid: &str) -> Value {
    let mut details = json!({"name": call.target.name, "kind": call.kind.plural, "uid": uid});
    if !call.kind.group.is_empty() {
        object::as_map(&mut details).insert("group".into(), call.kind.group.clone().into());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn check_preconditions(call: &Call<'_>, options: &DeleteOptions, current: &Value) -> Result<(), Refusal> {
    let differ = |wanted: &Option<String>, name: &str| {
        let found = object::text(current, name);
        wanted
            .as_ref()
            .filter(|wanted| *wanted != found)
            .map(|wanted| (wanted.clone(), found.to_owned()))
    };
    let why = if let Some((wanted, found)) = differ(&options.uid, "uid") {
        format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have \
             been deleted and then recreated"
        )
    } else if let Some((wanted, found)) = differ(&options.version, "resourceVersion") {
        format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). \
             The object might have been modified"
        )
    } else {
        return Ok(());
    };
    Err(Refusal::precondition(&call.kind, &call.target.name, &why))
}

/// Returns the object with a deletion timestamp.
fn mark_deleted(call: &Call<'_>, mut object: Value) -> Value {
    let time = timestamp(call.now);
    if call.kind.kind == "Namespace" {
        object::set(&mut object, "deletionTimestamp", time);
        object::as_map(&mut object).insert("status".into(), json!({"phase": "Terminating"}));
    } else if call.kind.is_definition() {
        mark_definition(&mut object, &time);
    } else {
        mark(&mut object, &time);
    }
    object
}
