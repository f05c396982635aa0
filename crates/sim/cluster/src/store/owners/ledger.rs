//! What a write that is no apply does to the owners of fields.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use metal3_schema::{Changes, FieldSet, Schema};
use serde_json::Value;

use super::super::admission::Hooks;
use super::super::builtin::nothing;
use super::super::kind::Kind;
use super::super::refusal::Refusal;
use super::{Deed, Owner, Share, Shares};

/// Owners by update that an object has at most. The oldest beyond are counted together.
const MOST_UPDATERS: usize = 10;
/// Under whose name.
const ANCIENT: &str = "ancient-changes";

/// Everything that decides about ownership besides the objects.
pub(in crate::store) struct Ledger<'a> {
    pub(in crate::store) kind: &'a Kind,
    pub(in crate::store) hooks: &'a Hooks,
    /// Group and version of the request.
    pub(in crate::store) api_version: String,
    /// Subresource of the request, mostly empty.
    pub(in crate::store) subresource: &'a str,
    pub(in crate::store) now: DateTime<Utc>,
}

/// Owners of fields that would lose them.
pub(super) type Conflicts = Vec<(Owner, FieldSet)>;

pub(super) enum Fault {
    Conflicts(Conflicts),
    Refused(Refusal),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Ledger<'_> {
    /// The schema of a version that is served.
    pub(super) fn schema(&self, api_version: &str) -> Option<&Schema> {
        let served = |name: &str| self.kind.api_version(name) == api_version;
        let version = self.kind.versions.iter().find(|version| served(&version.name))?;
        version.schema.as_ref().or(version.shape.as_ref())
    }

    pub(super) fn converted(&self, object: &Value, api_version: &str) -> Result<Value, Refusal> {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        self.hooks.converted(self.kind, object, version)
    }

    /// The fields that a request of this kind cannot set, in a version.
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

    /// The owners after a create (from nothing) or an update of `old` to `new` by `name`.
    ///
    /// An object whose owners were never counted, or that does not fit its schema, has none.
    pub(in crate::store) fn updated(&self, old: Option<&Value>, new: &Value, shares: Shares, name: &str) -> Shares {
        if shares.is_empty() && old.is_some() {
            return shares;
        }
        let nothing = nothing(self.kind, &self.api_version);
        self.counted(old.unwrap_or(&nothing), new, shares, name)
            .unwrap_or_default()
    }

    pub(super) fn counted(&self, old: &Value, new: &Value, shares: Shares, name: &str) -> Option<Shares> {
        let schema = self.schema(&self.api_version)?;
        let fits = |object: &Value| schema.apply_errors(object, true).is_empty();
        if !fits(old) || !fits(new) {
            return None;
        }
        let (mut shares, changes) = self.settle(old, new, shares, None).ok()?;
        let fields = changes
            .modified
            .union(&changes.added)
            .outside(&self.reset(&self.api_version));
        let fields = fields.difference(stripped());
        if !fields.is_empty() {
            let owner = Owner::new(name, Deed::Update, &self.api_version, self.subresource);
            let before = shares
                .0
                .get(&owner)
                .map(|share| share.fields.clone())
                .unwrap_or_default();
            let share = Share {
                api_version: self.api_version.as_str().into(),
                fields: fields.union(&before),
                time: Some(self.now),
            };
            shares.0.insert(owner, share);
        }
        shares.cap();
        Some(shares)
    }

    /// Takes changed and removed fields from all owners but `by`, who must otherwise not conflict with any.
    pub(super) fn settle(
        &self,
        old: &Value,
        new: &Value,
        mut shares: Shares,
        by: Option<(&Owner, bool)>,
    ) -> Result<(Shares, Changes), Fault> {
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
        let (mut conflicts, mut left) = (Conflicts::new(), Shares::default());
        for (owner, mut share) in std::mem::take(&mut shares.0) {
            if by.is_some_and(|(by, _)| *by == owner) {
                left.0.insert(owner, share);
                continue;
            }
            if !known.iter().any(|(version, _)| *version == share.api_version) {
                known.push((Arc::clone(&share.api_version), changes_in(&share.api_version)?));
            }
            let found = known.iter().find(|(version, _)| *version == share.api_version);
            // A version that is served no longer takes its owners along.
            let Some((_, Some(changes))) = found else { continue };
            let lost = share.fields.intersection(&changes.modified.union(&changes.added));
            share.fields = share.fields.difference(&lost).difference(&changes.removed);
            if !lost.is_empty() {
                conflicts.push((owner.clone(), lost));
            }
            left.0.insert(owner, share);
        }
        if by.is_some_and(|(_, force)| !force) && !conflicts.is_empty() {
            return Err(Fault::Conflicts(conflicts));
        }
        left.0.retain(|_, share| !share.fields.is_empty());
        Ok((left, own))
    }
}

/// What belongs to no owner.
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

impl Shares {
    /// Counts the oldest updaters together until there are few enough.
    fn cap(&mut self) {
        let updater = |(owner, _): &(&Owner, &Share)| owner.deed == Deed::Update;
        let mut updaters: Vec<(i64, Owner)> = self
            .0
            .iter()
            .filter(updater)
            .map(|(owner, share)| {
                (
                    share.time.map(|time| time.timestamp()).unwrap_or_default(),
                    owner.clone(),
                )
            })
            .collect();
        let mut surplus = updaters.len().saturating_sub(MOST_UPDATERS);
        updaters.sort();
        let mut first_of: Vec<(Arc<str>, Owner)> = Vec::new();
        for (_, owner) in updaters {
            if surplus == 0 {
                return;
            }
            let Some(version) = self.0.get(&owner).map(|share| Arc::clone(&share.api_version)) else {
                continue;
            };
            let Some((_, first)) = first_of.iter().find(|(known, _)| *known == version) else {
                first_of.push((version, owner));
                continue;
            };
            let bucket = Owner::new(ANCIENT, Deed::Update, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(share) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), share);
            }
            if let Some(share) = self.0.remove(&owner)
                && let Some(bucket) = self.0.get_mut(&bucket)
            {
                bucket.fields = share.fields.union(&bucket.fields);
                bucket.time = share.time;
                surplus -= 1;
            }
        }
    }
}
