//! CEL rules of `x-kubernetes-validations`.
//!
//! Rules run after all other checks, only over objects of the right types. A rule that uses `oldSelf` runs when there
//! is a correlated old value. Any other failing rule is tolerated on update when its value did not change. The cost of
//! rules is not estimated: the API server may reject a rule for its cost that is accepted here.

mod path;
#[cfg(feature = "cel")]
mod value;

use serde_json::Value;

use crate::error::{Cause, FieldError};
use crate::model::{Rule, Schema, Type};
use crate::program::Subject;
use crate::ratchet::{ByKey, Pair};
use crate::value_path::ValuePath;

pub(crate) use self::path::field_path;
#[cfg(feature = "cel")]
use self::value::subject;

impl Rule {
    /// The name of the rule in messages of the API server.
    fn name(&self) -> &str {
        let message = self.message.trim();
        if message.is_empty() {
            self.source.trim()
        } else {
            message
        }
    }

    fn message(&self, subject: &Subject) -> String {
        let computed = self.message_program.as_ref().and_then(|program| program.text(subject));
        computed.unwrap_or_else(|| {
            if self.message.is_empty() {
                format!("failed rule: {}", self.name())
            } else {
                self.name().to_owned()
            }
        })
    }

    fn cause(&self) -> Cause {
        match self.reason.as_str() {
            "FieldValueForbidden" => Cause::Forbidden,
            "FieldValueRequired" => Cause::Required,
            "FieldValueDuplicate" => Cause::Duplicate,
            _ => Cause::Invalid,
        }
    }
}

#[cfg(not(feature = "cel"))]
fn subject(_: &Schema, _: bool, _: &Value, _: Option<&Value>) -> Subject {
    Subject
}

/// Runs the rules of a schema, unless earlier errors show that the object has the wrong types.
pub(crate) fn check(schema: &Schema, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if !schema.has_rules {
        return;
    }
    let blocking = |error: &FieldError| match error.cause {
        Cause::NotSupported | Cause::Required | Cause::TooLong | Cause::TooMany | Cause::TypeInvalid => true,
        Cause::Duplicate | Cause::Invalid | Cause::Forbidden | Cause::Internal => false,
    };
    if errors.iter().any(blocking) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                      errors to complete validation";
        errors.push(FieldError::invalid("<nil>", Value::Null, detail));
        return;
    }
    let ratchet = Ratchet {
        here: old.map(|old| Pair {
            schema,
            new: object,
            old,
        }),
        above: None,
    };
    Evaluation { errors }.node(schema, object, old, &ValuePath::Root, ratchet);
}

/// The correlation of a value, to decide whether its errors are tolerated.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    here: Option<Pair<'a>>,
    /// The nearest enclosing value that correlates, if this one does not.
    above: Option<Pair<'a>>,
}

impl<'a> Ratchet<'a> {
    fn unchanged(&self) -> bool {
        self.here.or(self.above).is_some_and(|pair| pair.unchanged())
    }

    fn entry(self, name: &str) -> Ratchet<'a> {
        match self.here {
            None => self,
            Some(_) if self.above.is_none() && matches!(name, "apiVersion" | "kind") => Ratchet {
                here: None,
                above: None,
            },
            Some(pair) => Ratchet {
                here: pair.entry(name),
                above: Some(pair),
            },
        }
    }

    fn items(self, count: usize) -> Vec<Ratchet<'a>> {
        let Some(pair) = self.here else {
            return vec![self; count];
        };
        let mut items: Vec<_> = pair
            .items()
            .into_iter()
            .map(|here| Ratchet {
                here,
                above: Some(pair),
            })
            .collect();
        items.resize(
            count,
            Ratchet {
                here: None,
                above: Some(pair),
            },
        );
        items
    }
}

struct Evaluation<'e> {
    errors: &'e mut Vec<FieldError>,
}

impl Evaluation<'_> {
    fn node(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, at: &ValuePath<'_>, ratchet: Ratchet<'_>) {
        let old = old.filter(|old| !old.is_null());
        if !schema.has_rules || value.is_null() {
            return;
        }
        self.rules(schema, value, old, at, ratchet);
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(property) = schema.properties.get(name) {
                        self.node(property, value, old, &at.field(name), ratchet.entry(name));
                    } else if let Some(entry) = schema.additional_schema() {
                        self.node(entry, value, old, &at.key(name), ratchet.entry(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(item_schema) = &schema.items else { return };
                let old_items = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let index = ByKey::of(schema, old_items);
                for ((position, item), ratchet) in items.iter().enumerate().zip(ratchet.items(items.len())) {
                    self.node(item_schema, item, index.get(item), &at.item(position), ratchet);
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, at: &ValuePath<'_>, ratchet: Ratchet<'_>) {
        if schema.rules.is_empty() {
            return;
        }
        let subject = subject(schema, at.is_root() || schema.embedded, value, old);
        for rule in &schema.rules {
            if rule.program.uses_old_self() && old.is_none() && !rule.optional_old_self {
                continue;
            }
            let error = match rule.program.holds(&subject, rule.optional_old_self) {
                Ok(true) => continue,
                Ok(false) => failed(rule, schema, value, at, &subject),
                Err(problem) => {
                    let ty = schema.ty.map(Type::name).unwrap_or_default();
                    self.errors
                        .push(FieldError::invalid(at.bracketed(), ty, problem.detail(rule.name())));
                    continue;
                }
            };
            if rule.program.uses_old_self() || !ratchet.unchanged() {
                self.errors.push(error);
            }
        }
    }
}

fn failed(rule: &Rule, schema: &Schema, value: &Value, at: &ValuePath<'_>, subject: &Subject) -> FieldError {
    let field = match field_path(schema, &rule.field_path) {
        Some(path) if !path.is_empty() => at.field(&path).bracketed(),
        _ => at.bracketed(),
    };
    let shown = !matches!(schema.ty, Some(Type::Object | Type::Array));
    // The API server has no message for a duplicate.
    let message = if rule.cause() == Cause::Duplicate {
        String::new()
    } else {
        rule.message(subject)
    };
    FieldError::new(field, rule.cause(), shown.then(|| value.clone()), message)
}
