//! Types, nulls and enumerations.

use serde_json::Value;

use super::{Checker, Outcome};
use crate::error::FieldError;
use crate::golang;
use crate::model::{Schema, Type};
use crate::number::{Num, to_float, truncate};
use crate::value_path::ValuePath;

impl Checker<'_> {
    pub(super) fn null(&self, schema: &Schema, at: &ValuePath<'_>) -> Outcome {
        if schema.types().is_empty() || schema.nullable {
            return Outcome {
                errors: Vec::new(),
                passed: 1,
            };
        }
        Outcome {
            errors: vec![self.type_invalid(at, "null", &type_names(schema))],
            passed: 0,
        }
    }

    pub(super) fn typed(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>) -> Outcome {
        let types = schema.types();
        let (found, whole) = type_of(value);
        let fits = types.contains(&found)
            || (found == Type::Integer && types.contains(&Type::Number))
            || (found == Type::Number && whole && types.contains(&Type::Integer));
        let textual = matches!(value, Value::String(_) | Value::Array(_));
        let numeric = types.contains(&Type::Number) || types.contains(&Type::Integer);
        let error = match &schema.limits.format {
            // A format replaces the type: of a string or list only the format is checked, and for other values the
            // format's name is the expected type.
            Some(_) if textual && !numeric => None,
            Some((format, _)) if !textual && !fits => Some(self.type_invalid(at, number_format(found), format)),
            _ if fits => None,
            _ => Some(self.type_invalid(at, found.name(), &type_names(schema))),
        };
        let passed = u32::from(error.is_none());
        Outcome {
            errors: error.into_iter().collect(),
            passed,
        }
    }

    pub(super) fn allowed(&self, schema: &Schema, value: &Value, at: &ValuePath<'_>) -> Option<FieldError> {
        let allowed = &schema.limits.allowed;
        if allowed.is_empty() || allowed.iter().any(|one| same(value, one)) {
            return None;
        }
        let spelled: Vec<String> = allowed
            .iter()
            .map(|one| one.as_str().map_or_else(|| golang::json(one), String::from))
            .collect();
        Some(FieldError::not_supported(
            self.name(&at.dotted()),
            value.clone(),
            &spelled,
        ))
    }
}

fn type_names(schema: &Schema) -> String {
    schema.types().iter().map(|ty| ty.name()).collect::<Vec<_>>().join(",")
}

/// The type of a non-null value, and whether it is a whole number.
fn type_of(value: &Value) -> (Type, bool) {
    match value {
        Value::Null | Value::Object(_) => (Type::Object, false),
        Value::Array(_) => (Type::Array, false),
        Value::String(_) => (Type::String, false),
        Value::Bool(_) => (Type::Boolean, false),
        Value::Number(number) => match Num::of(number) {
            number @ Num::Float(_) => (Type::Number, number.is_whole()),
            Num::Int(_) => (Type::Integer, true),
        },
    }
}

fn number_format(found: Type) -> &'static str {
    match found {
        Type::Integer => "int64",
        Type::Number => "float64",
        Type::Object | Type::Array | Type::String | Type::Boolean => "",
    }
}

/// Whether a value equals a member of an enumeration. Null never does; numbers are first converted to the type of the
/// member, without fractions.
fn same(value: &Value, member: &Value) -> bool {
    match (value, member) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(member)) => match (Num::of(value), Num::of(member)) {
            (Num::Float(value), Num::Int(member)) => truncate(value) == member,
            (Num::Int(value), Num::Float(member)) => to_float(value) == member,
            (value, member) => value == member,
        },
        (value, member) => value == member,
    }
}
