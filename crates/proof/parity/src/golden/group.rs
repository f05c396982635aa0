//! A group of cases with an implementation.

use serde_json::Value;

use super::case::Case;

/// A group of cases that this project answers.
pub(super) struct Group {
    /// Name of the folder, or of folder and file.
    pub(super) name: &'static str,
    /// The answer of this project.
    pub(super) answer: fn(&Case) -> Value,
    /// The compared part of the recorded answer.
    pub(super) expectation: fn(&Case) -> Value,
    /// Deliberate differences.
    pub(super) rules: &'static [Rule],
}

/// A deliberate difference: the affected inputs, and the expected answer.
pub(super) struct Rule {
    /// Row of the parity document.
    pub(super) row: &'static str,
    /// Whether it applies to an input.
    pub(super) touches: fn(&Value) -> bool,
    /// Turns the answer of upstream into the expected one for an input.
    pub(super) predict: fn(&Value, &mut Value),
}

impl Group {
    /// Whether a case belongs to this group.
    pub(super) fn covers(&self, case: &Case) -> bool {
        self.name == case.group || self.name == format!("{}/{}", case.group, case.file)
    }
}
