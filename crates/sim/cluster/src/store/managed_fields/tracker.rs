//! The effect of creates and updates on field managers.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use metal3_schema::{Changes, FieldSet, Schema};
use serde_json::Value;

use super::super::admission::Hooks;
use super::super::builtin::empty_object;
use super::super::kind::Kind;
use super::super::refusal::Refusal;
use super::{ManagedFields, Manager, Managers, Operation};

/// The most update entries of an object. Older entries are merged.
const MOST_UPDATERS: usize = 10;
/// The manager name of merged entries.
const ANCIENT: &str = "ancient-changes";

/// The context of a write that determines field managers.
pub(in crate::store) struct FieldTracker<'a> {
    pub(in crate::store) kind: &'a Kind,
    pub(in crate::store) hooks: &'a Hooks,
    /// Group and version of the request.
    pub(in crate::store) api_version: String,
    /// Subresource of the request, mostly empty.
    pub(in crate::store) subresource: &'a str,
    pub(in crate::store) now: DateTime<Utc>,
}

/// Managers with the fields that they would lose.
pub(super) type Conflicts = Vec<(Manager, FieldSet)>;

pub(super) enum ApplyError {
    Conflicts(Conflicts),
    Refused(Refusal),
}

impl From<Refusal> for ApplyError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl FieldTracker<'_> {
    /// The schema of a version that is served.
    pub(super) fn schema(&self, api_version: &str) -> Option<&Schema> {
        let served = |name: &str| self.kind.api_version(name) == api_version;
        let version = self.kind.versions.iter().find(|version| served(&version.name))?;
        version.schema.as_ref().or(version.shape.as_deref())
    }

    pub(super) fn converted(&self, object: &Value, api_version: &str) -> Result<Value, Refusal> {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        self.hooks.converted(self.kind, object, version)
    }

    /// The fields that the subresource of this request cannot set.
    pub(super) fn reset(&self, api_version: &str) -> FieldSet {
        let served = |name: &str| self.kind.api_version(name) == api_version;
        let status = self
            .kind
            .versions
            .iter()
            .any(|version| served(&version.name) && version.status);
        match (self.subresource, self.kind.is_custom()) {
            ("status", true) => FieldSet::of(&[&["metadata"], &["spec"]]),
            ("status", false) => FieldSet::of(&[&["spec"]]),
            _ if status => FieldSet::of(&[&["status"]]),
            _ => FieldSet::default(),
        }
    }

    /// The managers after a create (`old` is `None`) or an update by `name`.
    ///
    /// An object without managed fields, or one that does not match its schema, has none.
    pub(in crate::store) fn updated(
        &self,
        old: Option<&Value>,
        new: &Value,
        managers: Managers,
        name: &str,
    ) -> Managers {
        if managers.is_empty() && old.is_some() {
            return managers;
        }
        let empty = empty_object(self.kind, &self.api_version);
        self.counted(old.unwrap_or(&empty), new, managers, name)
            .unwrap_or_default()
    }

    pub(super) fn counted(&self, old: &Value, new: &Value, managers: Managers, name: &str) -> Option<Managers> {
        let schema = self.schema(&self.api_version)?;
        let fits = |object: &Value| schema.apply_errors(object, true).is_empty();
        if !fits(old) || !fits(new) {
            return None;
        }
        let (mut managers, changes) = self.reassign(old, new, managers, None).ok()?;
        let fields = changes
            .modified
            .union(&changes.added)
            .outside(&self.reset(&self.api_version));
        let fields = fields.difference(stripped());
        if !fields.is_empty() {
            let manager = Manager::new(name, Operation::Update, &self.api_version, self.subresource);
            let before = managers
                .0
                .get(&manager)
                .map(|managed| managed.fields.clone())
                .unwrap_or_default();
            let managed = ManagedFields {
                api_version: self.api_version.as_str().into(),
                fields: fields.union(&before),
                time: Some(self.now),
            };
            managers.0.insert(manager, managed);
        }
        managers.cap();
        Some(managers)
    }

    /// Removes changed and removed fields from all managers but `by`. Without force, `by` must not conflict.
    pub(super) fn reassign(
        &self,
        old: &Value,
        new: &Value,
        mut managers: Managers,
        by: Option<(&Manager, bool)>,
    ) -> Result<(Managers, Changes), ApplyError> {
        let changes_in = |api_version: &str| -> Result<Option<Changes>, Refusal> {
            let Some(schema) = self.schema(api_version) else {
                return Ok(None);
            };
            let changes = if api_version == self.api_version {
                schema.changes(old, new)
            } else {
                schema.changes(&self.converted(old, api_version)?, &self.converted(new, api_version)?)
            };
            Ok(Some(changes.outside(&self.reset(api_version))))
        };
        let own = changes_in(&self.api_version)?.unwrap_or_default();
        let mut known: Vec<(Arc<str>, Option<Changes>)> = vec![(self.api_version.as_str().into(), Some(own.clone()))];
        let (mut conflicts, mut left) = (Conflicts::new(), Managers::default());
        for (manager, mut managed) in std::mem::take(&mut managers.0) {
            if by.is_some_and(|(by, _)| *by == manager) {
                left.0.insert(manager, managed);
                continue;
            }
            if !known.iter().any(|(version, _)| *version == managed.api_version) {
                known.push((Arc::clone(&managed.api_version), changes_in(&managed.api_version)?));
            }
            let found = known.iter().find(|(version, _)| *version == managed.api_version);
            // Managers of a version that is no longer served are dropped.
            let Some((_, Some(changes))) = found else { continue };
            let lost = managed.fields.intersection(&changes.modified.union(&changes.added));
            managed.fields = managed.fields.difference(&lost).difference(&changes.removed);
            if !lost.is_empty() {
                conflicts.push((manager.clone(), lost));
            }
            left.0.insert(manager, managed);
        }
        if by.is_some_and(|(_, force)| !force) && !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        left.0.retain(|_, managed| !managed.fields.is_empty());
        Ok((left, own))
    }
}

/// Fields without a manager.
pub(super) fn stripped() -> &'static FieldSet {
    static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
        FieldSet::of(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    });
    &STRIPPED
}

impl Managers {
    /// Merges the oldest update entries until the limit holds.
    fn cap(&mut self) {
        let updater = |(manager, _): &(&Manager, &ManagedFields)| manager.operation == Operation::Update;
        let mut updaters: Vec<(i64, Manager)> = self
            .0
            .iter()
            .filter(updater)
            .map(|(manager, managed)| {
                (
                    managed.time.map(|time| time.timestamp()).unwrap_or_default(),
                    manager.clone(),
                )
            })
            .collect();
        let mut surplus = updaters.len().saturating_sub(MOST_UPDATERS);
        updaters.sort();
        let mut first_of: Vec<(Arc<str>, Manager)> = Vec::new();
        for (_, manager) in updaters {
            if surplus == 0 {
                return;
            }
            let Some(version) = self.0.get(&manager).map(|managed| Arc::clone(&managed.api_version)) else {
                continue;
            };
            let Some((_, first)) = first_of.iter().find(|(known, _)| *known == version) else {
                first_of.push((version, manager));
                continue;
            };
            let bucket = Manager::new(ANCIENT, Operation::Update, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(managed) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), managed);
            }
            if let Some(managed) = self.0.remove(&manager)
                && let Some(bucket) = self.0.get_mut(&bucket)
            {
                bucket.fields = managed.fields.union(&bucket.fields);
                bucket.time = managed.time;
                surplus -= 1;
            }
        }
    }
}
