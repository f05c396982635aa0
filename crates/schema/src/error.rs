//! Field errors and the message of a rejection, in the format of the API server.
//!
//! [`FieldError`] is one error; [`invalid_message`] is the message that `kubectl` prints for all of them.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Number, Value};

use crate::golang;
use crate::number::Num;

/// The kind of a field error: the `reason` of a cause in a `Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A required value is absent.
    Required,
    /// A value that must be unique occurs twice.
    Duplicate,
    /// The value is of the right type and breaks a rule.
    Invalid,
    /// The value has another type than the schema.
    TypeInvalid,
    /// The value is not one of an enumeration.
    NotSupported,
    /// No value is allowed here.
    Forbidden,
    /// The string is too long.
    TooLong,
    /// The list or map has too many entries.
    TooMany,
    /// The check itself failed.
    Internal,
}

impl Cause {
    /// The machine-readable name: `causes[].reason` of a `Status`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Cause::Required => "FieldValueRequired",
            Cause::Duplicate => "FieldValueDuplicate",
            Cause::Invalid => "FieldValueInvalid",
            Cause::TypeInvalid => "FieldValueTypeInvalid",
            Cause::NotSupported => "FieldValueNotSupported",
            Cause::Forbidden => "FieldValueForbidden",
            Cause::TooLong => "FieldValueTooLong",
            Cause::TooMany => "FieldValueTooMany",
            Cause::Internal => "InternalError",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Cause::Required => "Required value",
            Cause::Duplicate => "Duplicate value",
            Cause::Invalid | Cause::TypeInvalid => "Invalid value",
            Cause::NotSupported => "Unsupported value",
            Cause::Forbidden => "Forbidden",
            Cause::TooLong => "Too long",
            Cause::TooMany => "Too many",
            Cause::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        match self {
            Cause::Invalid | Cause::TypeInvalid | Cause::NotSupported | Cause::Duplicate | Cause::TooMany => true,
            Cause::Required | Cause::Forbidden | Cause::TooLong | Cause::Internal => false,
        }
    }
}

/// One error of an object. Its `Display` is the line that the API server writes.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The field, such as `spec.pools[0].start`. `<nil>` when the API server names no field.
    pub field: String,
    /// What kind of error.
    pub cause: Cause,
    /// The invalid value; `None` when the text does not contain it.
    pub bad_value: Option<Value>,
    /// The expected value.
    pub detail: String,
}

impl FieldError {
    /// An error of any kind.
    pub fn new(field: impl Into<String>, cause: Cause, bad_value: Option<Value>, detail: impl Into<String>) -> Self {
        FieldError {
            field: field.into(),
            cause,
            bad_value,
            detail: detail.into(),
        }
    }

    /// A value that breaks a rule.
    pub fn invalid(field: impl Into<String>, bad_value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, Cause::Invalid, Some(bad_value.into()), detail)
    }

    /// A value that is missing.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Cause::Required, None, detail)
    }

    /// A value that is not allowed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Cause::Forbidden, None, detail)
    }

    /// A duplicate value.
    pub fn duplicate(field: impl Into<String>, bad_value: impl Into<Value>) -> Self {
        Self::new(field, Cause::Duplicate, Some(bad_value.into()), "")
    }

    /// A value outside an enumeration; the detail lists the allowed values.
    pub fn not_supported(field: impl Into<String>, bad_value: Value, allowed: &[String]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|value| golang::quote(value)).collect();
        let detail = if allowed.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", allowed.join(", "))
        };
        Self::new(field, Cause::NotSupported, Some(bad_value), detail)
    }

    /// A string of more than `limit` characters. The text of the API server mentions bytes; it counts code points.
    pub fn too_long(field: impl Into<String>, limit: u64) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(
            field,
            Cause::TooLong,
            None,
            format!("may not be more than {limit} {unit}"),
        )
    }

    /// A list or map of `actual` entries with a limit of `limit`.
    pub fn too_many(field: impl Into<String>, actual: usize, limit: u64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        Self::new(
            field,
            Cause::TooMany,
            Some(actual.into()),
            format!("must have at most {limit} {unit}"),
        )
    }

    /// The text without the field: `causes[].message` of a `Status`.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = String::from(self.cause.label());
        if let (true, Some(value)) = (self.cause.shows_value(), &self.bad_value) {
            text.push_str(": ");
            text.push_str(&print_value(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

fn print_value(value: &Value) -> String {
    match value {
        Value::String(text) => golang::quote(text),
        Value::Number(number) => print_number(number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => golang::json(value),
    }
}

fn print_number(number: &Number) -> String {
    match Num::of(number) {
        Num::Int(int) => int.to_string(),
        Num::Float(value) => golang::float(value),
    }
}

/// The message of the `Status` (code 422, reason `Invalid`) that rejects an object:
/// `Metal3Cluster.infrastructure.cluster.x-k8s.io "x" is invalid: spec.a: Required value`.
///
/// Equal errors are listed once; several are in brackets. `group` is empty for the core group.
#[must_use]
pub fn invalid_message(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> String {
    let qualified = if group.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}.{group}")
    };
    let mut seen = BTreeSet::new();
    let lines: Vec<String> = errors
        .iter()
        .map(FieldError::to_string)
        .filter(|line| seen.insert(line.clone()))
        .collect();
    let head = format!("{qualified} {} is invalid", golang::quote(name));
    match lines.as_slice() {
        [] => head,
        [line] => format!("{head}: {line}"),
        lines => format!("{head}: [{}]", lines.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Cause, FieldError, invalid_message};

    #[test]
    fn every_cause_has_the_text_of_the_api_server() {
        for (error, text) in [
            (FieldError::required("spec.a", ""), "spec.a: Required value"),
            (
                FieldError::required("spec.a", "say more"),
                "spec.a: Required value: say more",
            ),
            (
                FieldError::invalid("spec.a", 3, "must be less"),
                "spec.a: Invalid value: 3: must be less",
            ),
            (
                FieldError::invalid("a", json!(1.5e21), "x"),
                "a: Invalid value: 1.5e+21: x",
            ),
            (FieldError::invalid("a", "q\"", "x"), "a: Invalid value: \"q\\\"\": x"),
            (FieldError::invalid("a", true, ""), "a: Invalid value: true"),
            (
                FieldError::duplicate("a[1]", json!({"b": "<"})),
                "a[1]: Duplicate value: {\"b\":\"\\u003c\"}",
            ),
            (
                FieldError::not_supported("a", Value::Null, &["x".into(), "1".into()]),
                "a: Unsupported value: null: supported values: \"x\", \"1\"",
            ),
            (FieldError::forbidden("a", "no"), "a: Forbidden: no"),
            (FieldError::too_long("a", 1), "a: Too long: may not be more than 1 byte"),
            (
                FieldError::too_many("a", 4, 3),
                "a: Too many: 4: must have at most 3 items",
            ),
            (
                FieldError::new("a", Cause::Internal, None, "oops"),
                "a: Internal error: oops",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn every_cause_has_the_reason_of_the_api_server() {
        for (cause, reason) in [
            (Cause::Required, "FieldValueRequired"),
            (Cause::Duplicate, "FieldValueDuplicate"),
            (Cause::Invalid, "FieldValueInvalid"),
            (Cause::TypeInvalid, "FieldValueTypeInvalid"),
            (Cause::NotSupported, "FieldValueNotSupported"),
            (Cause::Forbidden, "FieldValueForbidden"),
            (Cause::TooLong, "FieldValueTooLong"),
            (Cause::TooMany, "FieldValueTooMany"),
            (Cause::Internal, "InternalError"),
        ] {
            assert_eq!(cause.reason(), reason);
        }
    }

    #[test]
    fn some_causes_do_not_show_the_value() {
        for (cause, text) in [
            (Cause::Required, "a: Required value: d"),
            (Cause::Forbidden, "a: Forbidden: d"),
            (Cause::TooLong, "a: Too long: d"),
            (Cause::Internal, "a: Internal error: d"),
        ] {
            assert_eq!(FieldError::new("a", cause, Some(json!("x")), "d").to_string(), text);
        }
    }

    #[test]
    fn a_rejection_lists_each_error_once_and_brackets_several() {
        let (a, b) = (FieldError::required("spec.a", ""), FieldError::required("spec.b", ""));
        assert_eq!(
            invalid_message("Widget", "example.org", "w", &[]),
            "Widget.example.org \"w\" is invalid"
        );
        assert_eq!(
            invalid_message("Widget", "", "w", &[a.clone(), a.clone()]),
            "Widget \"w\" is invalid: spec.a: Required value"
        );
        assert_eq!(
            invalid_message("Widget", "example.org", "w", &[a.clone(), b, a]),
            "Widget.example.org \"w\" is invalid: [spec.a: Required value, spec.b: Required value]"
        );
    }
}
