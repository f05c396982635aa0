//! Errors of the conversion.

use std::fmt;

/// A member that cannot be converted to the other version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionError {
    /// Path of the member.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it.
    pub cure: String,
}

impl ConversionError {
    pub(super) fn new(field: impl Into<String>, problem: impl Into<String>, cure: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
            cure: cure.into(),
        }
    }

    /// Prefixes the field path with `outer`.
    #[must_use]
    pub(super) fn inside(mut self, outer: &str) -> Self {
        let separator = if self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{outer}{separator}{}", self.field);
        self
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.field, self.problem, self.cure)
    }
}

impl std::error::Error for ConversionError {}

/// Prefixes the field path of an error.
pub(super) trait Inside {
    /// Prefixes the field path of an error with `outer`.
    fn inside(self, outer: &str) -> Self;
}

impl<T> Inside for Result<T, ConversionError> {
    fn inside(self, outer: &str) -> Self {
        self.map_err(|error| error.inside(outer))
    }
}
