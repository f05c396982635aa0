//! Why a schema cannot be used.

use crate::value_path::ValuePath;

/// Limit of nesting, to bound the recursion.
pub(super) const MAX_DEPTH: usize = 96;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A keyword that the API server supports in no CRD, or that this crate does not implement.
    #[error("{at}: `{keyword}` is not supported; {cure}")]
    Unsupported {
        /// The path of the keyword.
        at: String,
        /// The keyword.
        keyword: String,
        /// The cure.
        cure: String,
    },
    /// A value of the wrong shape.
    #[error("{at}: must be {expected}")]
    Malformed {
        /// The path of the value.
        at: String,
        /// The allowed content.
        expected: String,
        /// The text that was found, if it is one.
        found: Option<String>,
    },
    /// A regular expression that does not compile.
    #[error("{at}: `{pattern}` is not a regular expression (RE2 syntax): {problem}")]
    Pattern {
        /// The path of the pattern.
        at: String,
        /// The pattern.
        pattern: String,
        /// The error of the compiler.
        problem: String,
    },
    /// A rule of `x-kubernetes-validations` that cannot be evaluated.
    #[error("{at}: `{rule}` is not a rule: {problem}")]
    Rule {
        /// The path of the rule.
        at: String,
        /// The expression.
        rule: String,
        /// The whole rule as the API server prints it.
        shown: String,
        /// The error of the compiler.
        problem: String,
    },
    /// Schemas nested too deep.
    #[error("{at}: more than {MAX_DEPTH} schemas inside each other; flatten it")]
    TooDeep {
        /// The path at which the limit was reached.
        at: String,
    },
}

pub(super) type Parsed<T> = Result<T, SchemaError>;

pub(super) fn place(at: &ValuePath<'_>) -> String {
    if at.is_root() {
        String::from("openAPIV3Schema")
    } else {
        format!("openAPIV3Schema.{at}")
    }
}

pub(super) fn malformed(at: &ValuePath<'_>, expected: &str) -> SchemaError {
    SchemaError::Malformed {
        at: place(at),
        expected: expected.into(),
        found: None,
    }
}
