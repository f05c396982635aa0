//! Findings of the rules.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::FieldPath;

/// Whether a finding rejects the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The request is rejected.
    Refuse,
    /// The request is accepted with a warning.
    Warn,
}

/// The API server's classes of field errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A required member is absent.
    Required,
    /// The value is invalid.
    Invalid,
    /// The value occurs twice.
    Duplicate,
    /// The value is not a supported one.
    NotSupported,
    /// The member may not be set or changed.
    Forbidden,
}

impl Reason {
    /// The `reason` of a cause in a `Status`.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
        }
    }
}

/// One finding of one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The row that reported it.
    pub rule: &'static str,
    /// Whether it rejects the request.
    pub level: Level,
    /// The member.
    pub path: FieldPath,
    /// Class of the error.
    pub reason: Reason,
    /// The value, if it may be shown.
    pub value: Option<Value>,
    /// The problem, with the text of the Go managers where they have one.
    pub problem: String,
    /// How to correct it.
    pub cure: String,
}

impl Finding {
    /// Problem and cure, as one text.
    #[must_use]
    pub fn detail(&self) -> String {
        if self.cure.is_empty() {
            self.problem.clone()
        } else {
            format!("{}; {}", self.problem, self.cure)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shows_value = matches!(self.reason, Reason::Invalid | Reason::Duplicate | Reason::NotSupported);
        match self.value.as_ref().filter(|_| shows_value) {
            Some(value) => write!(f, "{}: {}: {value}: {}", self.path, self.reason.label(), self.detail()),
            None => write!(f, "{}: {}: {}", self.path, self.reason.label(), self.detail()),
        }
    }
}

/// Collects the findings of one rule.
#[derive(Debug)]
pub struct Findings {
    rule: &'static str,
    found: Vec<Finding>,
}

impl Findings {
    pub(super) fn of(rule: &'static str) -> Self {
        Self {
            rule,
            found: Vec::new(),
        }
    }

    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.found
    }

    /// Reports a missing member.
    pub fn required(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Required, path, None, problem, cure);
    }

    /// Reports an invalid value.
    pub fn invalid(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(Reason::Invalid, path, serde_json::to_value(value).ok(), problem, cure);
    }

    /// Reports an invalid value without showing it: it is long or may contain a credential.
    pub fn unreadable(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Invalid, path, None, problem, cure);
    }

    /// Reports a duplicate value.
    pub fn duplicate(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(Reason::Duplicate, path, serde_json::to_value(value).ok(), problem, cure);
    }

    /// Reports an unsupported value.
    pub fn not_supported(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(
            Reason::NotSupported,
            path,
            serde_json::to_value(value).ok(),
            problem,
            cure,
        );
    }

    /// Reports a member that may not be set or changed.
    pub fn forbidden(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Forbidden, path, None, problem, cure);
    }

    /// Reports a warning; the request is accepted.
    pub fn warn(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.found.push(Finding {
            rule: self.rule,
            level: Level::Warn,
            path: path.into(),
            reason: Reason::Invalid,
            value: None,
            problem: problem.into(),
            cure: cure.into(),
        });
    }

    fn refuse(
        &mut self,
        reason: Reason,
        path: impl Into<FieldPath>,
        value: Option<Value>,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.found.push(Finding {
            rule: self.rule,
            level: Level::Refuse,
            path: path.into(),
            reason,
            value,
            problem: problem.into(),
            cure: cure.into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(by: impl FnOnce(&mut Findings)) -> Finding {
        let mut findings = Findings::of("row");
        by(&mut findings);
        let mut found = findings.into_vec();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn findings_have_the_format_of_api_server_errors() {
        let table: [(Finding, &str, &str); 6] = [
            (
                found(|it| it.required("spec.a", "is missing", "set it")),
                "FieldValueRequired",
                "spec.a: Required value: is missing; set it",
            ),
            (
                found(|it| it.invalid("spec.a", 7, "is odd", "write 8")),
                "FieldValueInvalid",
                "spec.a: Invalid value: 7: is odd; write 8",
            ),
            (
                found(|it| it.duplicate("spec.a", "x", "is there twice", "keep one")),
                "FieldValueDuplicate",
                "spec.a: Duplicate value: \"x\": is there twice; keep one",
            ),
            (
                found(|it| it.not_supported("spec.a", json!(["x"]), "is unknown", "write y")),
                "FieldValueNotSupported",
                "spec.a: Unsupported value: [\"x\"]: is unknown; write y",
            ),
            (
                found(|it| it.forbidden("spec.a", "may not be set", "remove it")),
                "FieldValueForbidden",
                "spec.a: Forbidden: may not be set; remove it",
            ),
            (
                found(|it| it.invalid("spec.a", 7, "is odd", "")),
                "FieldValueInvalid",
                "spec.a: Invalid value: 7: is odd",
            ),
        ];
        for (finding, cause, text) in table {
            assert_eq!(finding.reason.cause(), cause);
            assert_eq!(finding.to_string(), text);
            assert_eq!((finding.rule, finding.level), ("row", Level::Refuse));
        }
    }

    #[test]
    fn a_warning_accepts_the_request_and_has_a_cure() {
        let finding = found(|it| it.warn("spec.a", "is odd", "write 8"));
        assert_eq!(
            (finding.level, finding.detail().as_str()),
            (Level::Warn, "is odd; write 8")
        );
    }
}
