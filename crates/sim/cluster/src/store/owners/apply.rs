//! Server-side apply: what is applied is merged, what is applied no longer goes, and what others own is not taken
//! unless by force.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_schema::{FieldSet, Schema};
use serde_json::{Value, json};

use super::super::builtin::nothing;
use super::super::object;
use super::super::refusal::Refusal;
use super::ledger::{Conflicts, Fault, Ledger, stripped};
use super::{Deed, Owner, Share, Shares};

/// What came of an apply.
pub(in crate::store) struct Applied {
    pub(in crate::store) object: Value,
    pub(in crate::store) shares: Shares,
}

/// The owner of everything that was there before anyone's fields were counted.
const BEFORE: &str = "before-first-apply";

impl Ledger<'_> {
    /// Applies `config` to an object, or to nothing, in the name of `name`.
    ///
    /// # Errors
    /// When another owner would lose a field and `force` is not given, or `config` does not fit the schema.
    pub(in crate::store) fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        mut shares: Shares,
        (name, force): (&str, bool),
    ) -> Result<Applied, Refusal> {
        let Some(schema) = self.schema(&self.api_version) else {
            return Err(Refusal::unsupported(&format!(
                "server-side apply of {}",
                self.kind.resource()
            )));
        };
        let nothing = nothing(self.kind, &self.api_version);
        if shares.is_empty() && live.is_some() {
            let counted = live.and_then(|live| self.counted(&nothing, live, shares, BEFORE));
            shares = counted.unwrap_or_default();
        }
        self.check(schema, config, "patch", false)?;
        let live = live.unwrap_or(&nothing);
        self.check(schema, live, "live", true)?;
        let by = Owner::new(name, Deed::Apply, &self.api_version, self.subresource);
        let last = shares.0.get(&by).cloned();
        let merged = schema.merge(live, config);
        let share = Share {
            api_version: self.api_version.as_str().into(),
            fields: schema.fields(config).outside(&self.reset(&self.api_version)),
            time: last.as_ref().and_then(|last| last.time),
        };
        shares.0.insert(by.clone(), share);
        let object = match last {
            Some(last) if !last.fields.is_empty() => self.pruned(merged, &shares, &last)?,
            _ => merged,
        };
        let (mut shares, _) = self
            .settle(live, &object, shares, Some((&by, force)))
            .map_err(|fault| match fault {
                Fault::Conflicts(conflicts) => conflicting(&conflicts),
                Fault::Refused(refusal) => refusal,
            })?;
        if let Some(share) = shares.0.get_mut(&by) {
            share.fields = share.fields.difference(stripped());
            // An apply that changes no value leaves no time, not even of its own.
            if object != *live {
                share.time = Some(self.now);
            }
        }
        shares.0.retain(|_, share| !share.fields.is_empty());
        Ok(Applied { object, shares })
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

    /// The merged object without what was applied last time, is not now, and nobody else owns.
    fn pruned(&self, merged: Value, shares: &Shares, last: &Share) -> Result<Value, Refusal> {
        let Some(schema) = self.schema(&last.api_version) else {
            return Ok(merged);
        };
        let merged = self.converted(&merged, &last.api_version)?;
        let pruned = schema.without(&merged, &schema.with_parents(&last.fields));
        let pruned = self.with_owned(merged.clone(), pruned, shares, &last.api_version)?;
        let pruned = self.converted(&pruned, &last.api_version)?;
        let left = schema.with_parents(&schema.fields(&pruned));
        let all = schema.with_parents(&schema.fields(&merged));
        let gone = all.difference(&left).intersection(&schema.with_parents(&last.fields));
        self.converted(&schema.without(&merged, &gone), &self.api_version)
    }

    /// Adds back what any owner still owns. In the version of the last apply first: there nothing needed for a
    /// conversion is missing.
    fn with_owned(
        &self,
        mut merged: Value,
        mut pruned: Value,
        shares: &Shares,
        first: &Arc<str>,
    ) -> Result<Value, Refusal> {
        let mut owned: BTreeMap<&Arc<str>, FieldSet> = BTreeMap::new();
        for share in shares.0.values() {
            let fields = owned.entry(&share.api_version).or_default();
            *fields = fields.union(&share.fields);
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

/// The refusal of an apply, naming each owner and field.
fn conflicting(conflicts: &Conflicts) -> Refusal {
    let rows: Vec<(String, Vec<String>)> = conflicts
        .iter()
        .map(|(owner, fields)| (owner.described(), fields.paths()))
        .collect();
    let causes: Vec<Value> = rows
        .iter()
        .flat_map(|(owner, paths)| paths.iter().map(move |path| (owner, path)))
        .map(|(owner, path)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {owner}"), "field": path})
        })
        .collect();
    let message = match rows.as_slice() {
        [(owner, paths)] if paths.len() == 1 => {
            format!(
                "Apply failed with 1 conflict: conflict with {owner}: {}",
                paths.join("")
            )
        }
        _ => {
            let lines: Vec<String> = rows
                .iter()
                .map(|(owner, paths)| format!("conflicts with {owner}:\n- {}", paths.join("\n- ")))
                .collect();
            format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
        }
    };
    Refusal::apply_conflict(message, causes)
}

impl Owner {
    fn described(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.deed == Deed::Update {
            text.push_str(&format!(" using {}", self.version));
        }
        text
    }
}
