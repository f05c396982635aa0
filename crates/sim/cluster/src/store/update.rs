//! Replacing and patching objects.

use metal3_schema::{FieldError, metadata_update_errors};
use serde_json::Value;

use super::builtin;
use super::builtin::definition::{default_stored, remember_storage};
use super::create::{check_size, finalizer_warnings};
use super::managed_fields::{Managers, StoredManagers};
use super::metadata::{check_kind_stays, normalize_type, read_body};
use super::object;
use super::options::WriteOptions;
use super::patch::Patch;
use super::refusal::Refusal;
use super::request::Call;
use super::{Answer, Store};

/// Metadata that a client cannot change.
const KEPT: [&str; 4] = [
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// The new state of an object.
pub(super) struct Revision {
    pub(super) new: Value,
    pub(super) managers: Managers,
    pub(super) warnings: Vec<String>,
}

impl Store {
    pub(super) fn replace(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let options = WriteOptions::read(call.request, "UpdateOptions")?;
        let mut body = read_body(call)?;
        check_name(call, &body)?;
        let old = self.current(call)?;
        let uid = object::text(&body, "uid");
        if !uid.is_empty() && uid != object::text(&old, "uid") {
            let key = format!(
                "/registry/{}/{}/{}/{}",
                call.kind.group, call.kind.plural, call.target.namespace, call.target.name
            );
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: UID in precondition: {uid}, UID in object meta: {}",
                object::text(&old, "uid")
            );
            return Err(Refusal::conflict(&call.kind, &call.target.name, &why));
        }
        if object::text(&body, "resourceVersion").is_empty() && call.kind.is_custom() {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(Refusal::invalid(
                &call.kind.plural,
                &call.kind.group,
                &call.target.name,
                &[error],
            ));
        }
        let given = object::take(&mut body, "managedFields");
        self.update_by(call, &options, &old, (body, given))
    }

    pub(super) fn patch(&mut self, call: &Call<'_>) -> Result<Answer, Refusal> {
        let options = WriteOptions::read(call.request, "PatchOptions")?;
        if call.request.is_apply() {
            return self.apply(call, &options);
        }
        let patch = Patch::parse(&call.request.content_type, &call.request.body, &call.kind)?;
        let old = self.current(call)?;
        let body = if mentions_managed_fields(call) {
            let mut shown = old.clone();
            self.stored_managers(&call.kind, &call.key()).show(&mut shown);
            patch.apply(&shown)?
        } else {
            patch.apply(&old)?
        };
        check_kind_stays(call, &body)?;
        check_name(call, &body)?;
        let mut body = normalize_type(call, body)?;
        let given = object::take(&mut body, "managedFields");
        self.update_by(call, &options, &old, (body, given))
    }

    /// Updates an object; its field managers follow from the changed fields or from the request's `managedFields`.
    fn update_by(
        &mut self,
        call: &Call<'_>,
        options: &WriteOptions,
        old: &Value,
        (mut new, given): (Value, Option<Value>),
    ) -> Result<Answer, Refusal> {
        let warnings = self.prepare_fields(call, &mut new, options.fields)?;
        // A subresource request cannot set `managedFields`.
        let given = given.filter(|_| call.target.subresource.is_empty());
        let managers = Managers::requested(given.as_ref(), &self.stored_managers(&call.kind, &call.key()));
        let managers = self.tracker(call).updated(Some(old), &new, managers, &options.manager);
        let revision = Revision {
            new,
            managers,
            warnings,
        };
        self.update(call, options, old, revision)
    }

    /// The stored object in the version of the request.
    pub(super) fn current(&self, call: &Call<'_>) -> Result<Value, Refusal> {
        let stored = self.stored(&call.kind, &call.key());
        let stored = stored.ok_or_else(|| Refusal::not_found(&call.kind, &call.target.name))?;
        self.hooks.converted(&call.kind, stored, &call.target.version)
    }

    pub(super) fn update(
        &mut self,
        call: &Call<'_>,
        options: &WriteOptions,
        old: &Value,
        revision: Revision,
    ) -> Result<Answer, Refusal> {
        let Revision {
            mut new,
            managers,
            mut warnings,
        } = revision;
        let given = object::text(&new, "resourceVersion").to_owned();
        if !given.is_empty() && given != object::text(old, "resourceVersion") {
            return Err(Refusal::modified(&call.kind, &call.target.name));
        }
        object::set(&mut new, "resourceVersion", object::text(old, "resourceVersion"));
        let sent_same = new == *old;
        keep(call, old, &mut new);
        if call.kind.is_definition() && call.on_status() {
            default_stored(&mut new);
        } else if call.kind.is_definition() {
            remember_storage(&mut new);
        }
        self.hooks.run_mutating(call, Some(old), &mut new)?;
        count_generation(call, old, &mut new);
        self.check_updated(call, old, &new)?;
        self.check_owners(call, Some(old), &new)?;
        warnings.extend(self.hooks.run_validating(call, Some(old), Some(&new))?);
        warnings.extend(finalizer_warnings(call, Some(old), &new));
        let before = self.stored_managers(&call.kind, &call.key());
        let mut stored_managers = managers.packed(&mut self.texts);
        let same = new == *old;
        // An apply of fields that it cannot set, such as status, still updates the time.
        if sent_same && same && stored_managers.same_except_times(&before) {
            stored_managers = before.clone();
        }
        let body = if options.dry_run || (same && stored_managers == before) {
            stored_managers.show(&mut new);
            new
        } else {
            self.store_update(call, new, stored_managers)?
        };
        Ok(Answer::Document {
            code: 200,
            body: self.represented(call, body)?,
            warnings,
        })
    }

    fn store_update(
        &mut self,
        call: &Call<'_>,
        mut new: Value,
        stored_managers: StoredManagers,
    ) -> Result<Value, Refusal> {
        let key = call.key();
        let stored = self.to_storage(&call.kind, &new)?;
        check_size(&stored)?;
        if object::deleting(&stored) && !object::has_finalizers(&stored) && call.kind.kind != "Namespace" {
            // Watches report the last stored state: the write that removes the last finalizer is not stored.
            let last = self.stored(&call.kind, &key).map_or(stored, |last| Value::clone(last));
            self.expunge(&call.kind, &key, last);
            stored_managers.show(&mut new);
            return Ok(new);
        }
        let stored = self.commit_with_managers(&call.kind, &key, stored, stored_managers);
        self.after_write(&call.kind, &key);
        self.shown(&call.kind, &stored, &call.target.version)
    }

    fn check_updated(&self, call: &Call<'_>, old: &Value, new: &Value) -> Result<(), Refusal> {
        let mut errors = metadata_update_errors(new, old);
        if let Some(schema) = call.version().and_then(|version| version.schema.as_ref()) {
            let mut found = schema.validate_update(new, old);
            if call.on_status() {
                // The API server validates only the status, so its messages have paths relative to it.
                for error in &mut found {
                    let rest = error.detail.strip_prefix("status");
                    if let Some(rest) = rest.map(|rest| rest.strip_prefix('.').unwrap_or(rest).to_owned()) {
                        error.detail = rest;
                    }
                }
            }
            errors.extend(found);
        }
        if !call.kind.is_custom() {
            errors.extend(builtin::errors(&call.kind.kind, new, Some(old)));
        }
        if errors.is_empty() {
            return self.check_definition(call, new);
        }
        Err(Refusal::invalid(
            &call.kind.kind,
            &call.kind.group,
            &call.target.name,
            &errors,
        ))
    }
}

/// Whether a patch mentions `managedFields`; only such a patch is applied to an object that contains them.
fn mentions_managed_fields(call: &Call<'_>) -> bool {
    const NAME: &[u8] = b"managedFields";
    call.request.body.windows(NAME.len()).any(|part| part == NAME)
}

pub(super) fn check_name(call: &Call<'_>, body: &Value) -> Result<(), Refusal> {
    let name = object::text(body, "name");
    if name == call.target.name {
        return Ok(());
    }
    let message = if name.is_empty() {
        let named = &call.target.name;
        format!("the name of the object ({named} based on URL) was undeterminable: name must be provided")
    } else {
        format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.target.name
        )
    };
    Err(Refusal::bad_request(message))
}

/// Restores what this request may not change: the status or everything else, and server-set metadata.
fn keep(call: &Call<'_>, old: &Value, new: &mut Value) {
    if call.on_status() {
        // A null status is ignored when there is no status, and rejected otherwise.
        let unset = |status: &Value| status.is_null() && old.get("status").is_none();
        let status = new.get("status").filter(|status| !unset(status)).cloned();
        let metadata = new.get("metadata").cloned();
        *new = old.clone();
        replace_member(new, "status", status);
        // A status update of a built-in kind also changes labels and annotations.
        if !call.kind.is_custom() {
            replace_member(new, "metadata", metadata);
        }
    } else if call.has_status() {
        replace_member(new, "status", old.get("status").cloned());
    }
    if !call.kind.is_custom() {
        builtin::keep(&call.kind.kind, old, new);
    }
    for name in KEPT {
        match object::member(old, name) {
            Some(value) => object::set(new, name, value.clone()),
            None if name == "generation" => object::unset(new, name),
            None => {}
        }
    }
    if object::text(new, "uid").is_empty() {
        object::set(new, "uid", object::text(old, "uid"));
    }
}

fn replace_member(object: &mut Value, name: &str, value: Option<Value>) {
    let map = object::as_map(object);
    match value {
        Some(value) => drop(map.insert(name.to_owned(), value)),
        None => drop(map.remove(name)),
    }
}

fn count_generation(call: &Call<'_>, old: &Value, new: &mut Value) {
    if !call.kind.counts_generations() {
        return;
    }
    let counted = |object: &Value| object::desired_fields(object, !call.has_status());
    let generation = object::generation(old);
    let changed = !call.on_status() && counted(old) != counted(new);
    object::set(
        new,
        "generation",
        if changed {
            generation.saturating_add(1)
        } else {
            generation
        },
    );
}
