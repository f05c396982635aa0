//! Validation of a value against a schema, with the results, texts and order of the API server.
//!
//! Maps, which the API server iterates in random order, are iterated in sorted order. Visible details are the same: of
//! several failing alternatives (`anyOf`, `oneOf`), the errors of the one that passed most checks are reported, with
//! the API server's way of counting checks.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::{Cause, FieldError};
use crate::model::{Additional, Schema};
use crate::ratchet::Pair;
use crate::value_path::ValuePath;

mod composite;
mod limits;
mod types;

/// The result of checking one value.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) errors: Vec<FieldError>,
    /// Number of passed checks, counted as in the API server, for the choice between failing alternatives.
    pub(crate) passed: u32,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.passed += other.passed;
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Checks values and reports fields below a prefix: `status` when only the status is checked.
pub(crate) struct Checker<'a> {
    pub(crate) prefix: &'a str,
}

impl Checker<'_> {
    /// The errors of a value. With an old value, errors in unchanged values are dropped.
    pub(crate) fn check(&self, schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let pair = old.map(|old| Pair {
            schema,
            new: value,
            old,
        });
        let mut seen = BTreeSet::new();
        let mut errors = self.ratcheted(schema, value, &ValuePath::Root, pair).errors;
        errors.retain(|error| seen.insert((error.field.clone(), error.cause, error.detail.clone())));
        errors
    }

    fn ratcheted(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>, pair: Option<Pair<'_>>) -> Outcome {
        let mut outcome = self.value(schema, value, at, pair);
        if !outcome.is_valid() && pair.is_some_and(|pair| pair.unchanged()) {
            outcome.errors.clear();
        }
        outcome
    }

    /// The field of an error, from the path of the value.
    fn name(&self, dotted: &str) -> String {
        let bare = dotted.strip_prefix('.').unwrap_or(dotted);
        match (self.prefix, bare) {
            ("", "") => String::from("<nil>"),
            ("", bare) => bare.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, bare) => format!("{prefix}.{bare}"),
        }
    }

    /// An error whose text repeats the path, as most do.
    fn invalid(&self, at: &ValuePath<'_>, bad_value: impl Into<Value>, rest: &str) -> FieldError {
        let dotted = at.dotted();
        FieldError::invalid(self.name(&dotted), bad_value, format!("{dotted} in body {rest}"))
    }

    fn type_invalid(&self, at: &ValuePath<'_>, shown: &str, wanted: &str) -> FieldError {
        let dotted = at.dotted();
        let detail = format!(
            "{dotted} in body must be of type {wanted}: {}",
            crate::golang::quote(shown)
        );
        FieldError::new(self.name(&dotted), Cause::TypeInvalid, Some(shown.into()), detail)
    }

    fn value(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>, pair: Option<Pair<'_>>) -> Outcome {
        let mut outcome = Outcome::default();
        if value.is_null() {
            outcome.merge(self.null(schema, at));
            outcome.errors.extend(self.allowed(schema, value, at));
            return outcome;
        }
        if !schema.types().is_empty() || schema.limits.format.is_some() {
            outcome.merge(self.typed(schema, value, at));
            outcome.passed += 1;
        }
        outcome.merge(self.composites(schema, value, at));
        outcome.passed += 1;
        match value {
            Value::String(text) => {
                outcome.errors.extend(self.string(schema, text, at));
                outcome.passed += 1;
                if let Some((name, format)) = &schema.limits.format {
                    outcome
                        .errors
                        .extend((!format.accepts(text)).then(|| self.type_invalid(at, text, name)));
                    outcome.passed += 1;
                }
            }
            Value::Number(number) => {
                outcome.errors.extend(self.number(schema, number, at));
                outcome.passed += 2;
            }
            Value::Array(items) => {
                outcome.merge(self.list(schema, items, at, pair));
                outcome.passed += 1;
            }
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        outcome.errors.extend(self.allowed(schema, value, at));
        outcome.passed += 1;
        if let Value::Object(map) = value {
            outcome.merge(self.object(schema, map, at, pair));
            outcome.passed += 1;
        }
        outcome.passed += 1;
        outcome
    }

    fn list(&self, schema: &Schema, items: &[Value], at: &ValuePath<'_>, pair: Option<Pair<'_>>) -> Outcome {
        let mut outcome = Outcome {
            errors: Vec::new(),
            passed: 1,
        };
        if let Some(item_schema) = &schema.items {
            let pairs = pair.map(|pair| pair.items()).unwrap_or_default();
            for (index, item) in items.iter().enumerate() {
                let pair = pairs.get(index).copied().flatten();
                outcome.merge(self.ratcheted(item_schema, item, &at.item(index), pair));
            }
        }
        outcome.errors.extend(self.list_size(schema, items, at));
        outcome
    }

    fn object(&self, schema: &Schema, map: &Map<String, Value>, at: &ValuePath<'_>, pair: Option<Pair<'_>>) -> Outcome {
        let mut outcome = Outcome {
            errors: self.object_size(schema, map, at),
            passed: 0,
        };
        // The API server converts the type of an object before the comparison, so errors in it are never tolerated.
        let pair_of = |name: &str| {
            pair.filter(|_| !(at.is_root() && matches!(name, "apiVersion" | "kind")))?
                .entry(name)
        };
        for (name, value) in map.iter().filter(|(name, _)| !schema.properties.contains_key(*name)) {
            match &schema.additional {
                Some(Additional::Schema(entry)) => {
                    outcome.merge(self.ratcheted(entry, value, &at.key(name), pair_of(name)));
                }
                Some(Additional::Allowed(false)) => {
                    let detail = format!("{}.{name} in body is a forbidden property", at.dotted());
                    outcome
                        .errors
                        .push(FieldError::invalid(self.name(&at.dotted()), name.as_str(), detail));
                }
                Some(Additional::Allowed(true)) | None => {}
            }
        }
        for (name, property) in &schema.properties {
            if let Some(value) = map.get(name) {
                outcome.merge(self.ratcheted(property, value, &at.field(name), pair_of(name)));
            }
        }
        for name in schema.limits.required.iter().filter(|name| !map.contains_key(*name)) {
            outcome
                .errors
                .push(FieldError::required(self.name(&at.field(name).dotted()), ""));
        }
        outcome
    }
}
