//! What a rule has to say about a document.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::FieldPath;

/// Whether the document is refused or only commented on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The write is refused.
    Refuse,
    /// The write goes through and the user is told.
    Warn,
}

/// The API server's classes of field errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The member must be there.
    Required,
    /// The value makes no sense.
    Invalid,
    /// The value is there twice.
    Duplicate,
    /// The value is none of those known.
    NotSupported,
    /// The member may not be set here, or not be changed.
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

    const fn words(self) -> &'static str {
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
    /// The row that found it.
    pub rule: &'static str,
    /// Whether the document is refused.
    pub level: Level,
    /// The member it is about.
    pub path: FieldPath,
    /// Class of the error.
    pub reason: Reason,
    /// The value found, if showing it helps.
    pub value: Option<Value>,
    /// What is wrong, in the words of the Go managers where they have any.
    pub problem: String,
    /// What to do about it.
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
            Some(value) => write!(f, "{}: {}: {value}: {}", self.path, self.reason.words(), self.detail()),
            None => write!(f, "{}: {}: {}", self.path, self.reason.words(), self.detail()),
        }
    }
}

/// Findings being collected for one rule.
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

    /// A member that must be there is not.
    pub fn required(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Required, path, None, problem, cure);
    }

    /// A value makes no sense.
    pub fn invalid(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(Reason::Invalid, path, serde_json::to_value(value).ok(), problem, cure);
    }

    /// A value makes no sense and is not shown: it is long, or may hold a credential.
    pub fn unreadable(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Invalid, path, None, problem, cure);
    }

    /// A value is there twice.
    pub fn duplicate(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(Reason::Duplicate, path, serde_json::to_value(value).ok(), problem, cure);
    }

    /// A value is none of those known.
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

    /// A member may not be set here, or not be changed.
    pub fn forbidden(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Forbidden, path, None, problem, cure);
    }

    /// The write goes through, and the user is told.
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
