//! Server-side apply: merges the applied configuration, removes fields that the manager no longer applies, and reports
//! conflicts with other managers unless forced.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_schema::{FieldSet, Schema};
use serde_json::{Value, json};

use super::super::builtin::empty_object;
use super::super::object;
use super::super::refusal::Refusal;
use super::tracker::{ApplyError, Conflicts, FieldTracker, stripped};
use super::{ManagedFields, Manager, Managers, Operation};

/// The result of an apply.
pub(in crate::store) struct Applied {
    pub(in crate::store) object: Value,
    pub(in crate::store) managers: Managers,
}

/// The manager of all fields that existed before the first apply.
const BEFORE: &str = "before-first-apply";

impl FieldTracker<'_> {
    /// Applies `config` to `live`, or to an empty object, as the manager `name`.
    ///
    /// # Errors
    /// When another manager owns a field and `force` is not set, or `config` does not match the schema.
    pub(in crate::store) fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        managers: &Managers,
        by: (&str, bool),
    ) -> Result<Applied, Refusal> {
        self.merged(live, config, managers, by).map_err(refusal)
    }

    /// The same for kubectl after its applies on the client's side: a conflict does not count if `last`, the configuration of the
    /// last one, is of the same version and has its fields as they are now.
    pub(in crate::store) fn apply_after(
        &self,
        last: &Value,
        live: Option<&Value>,
        config: &Value,
        managers: &Managers,
        (name, force): (&str, bool),
    ) -> Result<Applied, Refusal> {
        match self.merged(live, config, managers, (name, force)) {
            Err(ApplyError::Conflicts(conflicts)) => {
                let is_same_version = last["apiVersion"] == *self.api_version;
                let kept = live.filter(|_| is_same_version).and_then(|live| unchanged(last, live));
                let own = self.schema(&self.api_version).zip(kept);
                let own = own.map(|(schema, kept)| schema.fields(&kept)).unwrap_or_default();
                if conflicts.iter().all(|(_, fields)| fields.difference(&own).is_empty()) {
                    self.apply(live, config, managers, (name, true))
                } else {
                    Err(conflicting(&conflicts))
                }
            }
            other => other.map_err(refusal),
        }
    }

    fn merged(
        &self,
        live: Option<&Value>,
        config: &Value,
        managers: &Managers,
        (name, force): (&str, bool),
    ) -> Result<Applied, ApplyError> {
        let mut managers = managers.clone();
        let Some(schema) = self.schema(&self.api_version) else {
            let what = format!("server-side apply of {}", self.kind.resource());
            return Err(Refusal::unsupported(&what).into());
        };
        let empty = empty_object(self.kind, &self.api_version);
        if managers.is_empty() && live.is_some() {
            let counted = live.and_then(|live| self.counted(&empty, live, managers, BEFORE));
            managers = counted.unwrap_or_default();
        }
        self.check(schema, config, "patch", false)?;
        let live = live.unwrap_or(&empty);
        self.check(schema, live, "live", true)?;
        let by = Manager::new(name, Operation::Apply, &self.api_version, self.subresource);
        let last = managers.0.get(&by).cloned();
        let merged = schema.merge(live, config);
        let managed = ManagedFields {
            api_version: self.api_version.as_str().into(),
            fields: schema.fields(config).outside(&self.reset(&self.api_version)),
            time: last.as_ref().and_then(|last| last.time),
        };
        managers.0.insert(by.clone(), managed);
        let object = match last {
            Some(last) if !last.fields.is_empty() => self.pruned(merged, &managers, &last)?,
            _ => merged,
        };
        let (mut managers, _) = self.reassign(live, &object, managers, Some((&by, force)))?;
        if let Some(managed) = managers.0.get_mut(&by) {
            managed.fields = managed.fields.difference(stripped());
            // An apply that changes no value does not update the time.
            if object != *live {
                managed.time = Some(self.now);
            }
        }
        managers.0.retain(|_, managed| !managed.fields.is_empty());
        Ok(Applied { object, managers })
    }

    fn check(&self, schema: &Schema, object: &Value, what: &str, duplicates: bool) -> Result<(), Refusal> {
        let errors = schema.apply_errors(object, duplicates);
        let why = match errors.as_slice() {
            [] => return Ok(()),
            [one] => one.clone(),
            several => format!("errors:\n  {}", several.join("\n  ")),
        };
        Err(Refusal::internal(format!(
            "failed to create typed {what} object ({}/{}; {}): {why}",
            object::text(object, "namespace"),
            object::text(object, "name"),
            self.kind
                .qualified(self.api_version.rsplit('/').next().unwrap_or_default()),
        )))
    }

    /// The merged object without the fields of the last apply that are not applied again and have no other manager.
    fn pruned(&self, merged: Value, managers: &Managers, last: &ManagedFields) -> Result<Value, Refusal> {
        let Some(schema) = self.schema(&last.api_version) else {
            return Ok(merged);
        };
        let merged = self.converted(&merged, &last.api_version)?;
        let pruned = schema.without(&merged, &schema.with_parents(&last.fields));
        let pruned = self.with_managed(merged.clone(), pruned, managers, &last.api_version)?;
        let pruned = self.converted(&pruned, &last.api_version)?;
        let left = schema.with_parents(&schema.fields(&pruned));
        let all = schema.with_parents(&schema.fields(&merged));
        let gone = all.difference(&left).intersection(&schema.with_parents(&last.fields));
        self.converted(&schema.without(&merged, &gone), &self.api_version)
    }

    /// Adds back the fields that a manager owns. The version of the last apply comes first, because it has all fields
    /// that a conversion needs.
    fn with_managed(
        &self,
        mut merged: Value,
        mut pruned: Value,
        managers: &Managers,
        first: &Arc<str>,
    ) -> Result<Value, Refusal> {
        let mut owned: BTreeMap<&Arc<str>, FieldSet> = BTreeMap::new();
        for managed in managers.0.values() {
            let fields = owned.entry(&managed.api_version).or_default();
            *fields = fields.union(&managed.fields);
        }
        let first = owned.remove(first).map(|fields| (first, fields));
        for (version, fields) in first.into_iter().chain(owned) {
            let Some(schema) = self.schema(version) else { continue };
            merged = self.converted(&merged, version)?;
            pruned = self.converted(&pruned, version)?;
            let [all, left] = [&merged, &pruned].map(|object| schema.with_parents(&schema.fields(object)));
            let gone = all.difference(&left.union(&schema.with_parents(&fields)));
            pruned = schema.without(&merged, &gone);
        }
        Ok(pruned)
    }
}

/// What of a configuration an object still has.
fn unchanged(last: &Value, live: &Value) -> Option<Value> {
    // Members that a server adds to the elements of a list are no change of it.
    if let (Some(elements), Some(now)) = (last.as_array(), live.as_array()) {
        let kept = elements.iter().zip(now).map(|(element, now)| unchanged(element, now));
        let kept = kept.collect::<Option<Vec<Value>>>()?;
        return (elements.len() == now.len()).then_some(Value::Array(kept));
    }
    let (Some(members), Some(_)) = (last.as_object(), live.as_object()) else {
        return (last == live).then(|| last.clone());
    };
    let kept = members.iter().filter_map(|(name, value)| {
        let kept = unchanged(value, live.get(name)?)?;
        Some((name.clone(), kept))
    });
    Some(Value::Object(kept.collect()))
}

fn refusal(error: ApplyError) -> Refusal {
    match error {
        ApplyError::Conflicts(conflicts) => conflicting(&conflicts),
        ApplyError::Refused(refusal) => refusal,
    }
}

/// The conflict error of an apply, with each manager and field.
fn conflicting(conflicts: &Conflicts) -> Refusal {
    let rows: Vec<(String, Vec<String>)> = conflicts
        .iter()
        .map(|(manager, fields)| (manager.described(), fields.paths()))
        .collect();
    let causes: Vec<Value> = rows
        .iter()
        .flat_map(|(manager, paths)| paths.iter().map(move |path| (manager, path)))
        .map(|(manager, path)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path})
        })
        .collect();
    let message = match rows.as_slice() {
        [(manager, paths)] if paths.len() == 1 => {
            format!(
                "Apply failed with 1 conflict: conflict with {manager}: {}",
                paths.join("")
            )
        }
        _ => {
            let lines: Vec<String> = rows
                .iter()
                .map(|(manager, paths)| format!("conflicts with {manager}:\n- {}", paths.join("\n- ")))
                .collect();
            format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
        }
    };
    Refusal::apply_conflict(message, causes)
}

impl Manager {
    fn described(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.version));
        }
        text
    }
}
