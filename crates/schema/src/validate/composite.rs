//! `anyOf`, `oneOf`, `allOf` and `not`.
//!
//! Errors inside them are never tolerated on update: their values do not correlate.

use serde_json::Value;

use super::{Checker, Outcome};
use crate::error::FieldError;
use crate::golang;
use crate::model::Schema;
use crate::value_path::ValuePath;

impl Checker<'_> {
    pub(super) fn composites(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.any_of(schema, value, at, &mut outcome);
        self.one_of(schema, value, at, &mut outcome);
        self.all_of(schema, value, at, &mut outcome);
        if let Some(not) = &schema.not
            && self.value(not, value, at, None).is_valid()
        {
            outcome
                .errors
                .push(self.composite(at, "must not validate the schema (not)"));
        }
        outcome.passed += 1;
        outcome
    }

    fn any_of(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for alternative in &schema.any_of {
            let found = self.value(alternative, value, at, None);
            if found.is_valid() {
                outcome.merge(found);
                return;
            }
            best = better(best, found);
        }
        if let Some(best) = best {
            outcome
                .errors
                .push(self.composite(at, "must validate at least one schema (anyOf)"));
            outcome.merge(best);
        }
    }

    fn one_of(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>, outcome: &mut Outcome) {
        if schema.one_of.is_empty() {
            return;
        }
        let (mut best, mut first, mut valid) = (None, None, 0_u32);
        for alternative in &schema.one_of {
            let found = self.value(alternative, value, at, None);
            if found.is_valid() {
                valid += 1;
                first = first.or(Some(found));
            } else {
                best = better(best, found);
            }
        }
        let problem = match valid {
            0 => "Found none valid".to_owned(),
            1 => return outcome.merge(first.unwrap_or_default()),
            several => format!("Found {several} valid alternatives"),
        };
        outcome
            .errors
            .push(self.composite(at, &format!("must validate one and only one schema (oneOf). {problem}")));
        if valid == 0 {
            outcome.merge(best.unwrap_or_default());
        }
    }

    fn all_of(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>, outcome: &mut Outcome) {
        let mut valid = 0;
        for part in &schema.all_of {
            let found = self.value(part, value, at, None);
            valid += usize::from(found.is_valid());
            outcome.merge(found);
        }
        if valid != schema.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome
                .errors
                .push(self.composite(at, &format!("must validate all the schemas (allOf){none}")));
        }
    }

    /// As in the API server, the field is empty and the text contains the path.
    fn composite(&self, at: &ValuePath<'_>, rest: &str) -> FieldError {
        FieldError::invalid(self.name(""), "", format!("{} {rest}", golang::quote(&at.dotted())))
    }
}

/// The failure that passed more checks, the earlier one on a tie.
fn better(best: Option<Outcome>, found: Outcome) -> Option<Outcome> {
    match best {
        Some(best) if best.passed >= found.passed => Some(best),
        _ => Some(found),
    }
}
