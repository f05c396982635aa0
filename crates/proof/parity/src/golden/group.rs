//! What a group of cases needs to be run: our answer, the part of the recorded one that is compared, and the rules by
//! which the two may differ.

use serde_json::Value;

use super::case::Case;

/// A group of cases that our code answers.
pub(super) struct Group {
    /// Name of the folder, or of folder and file.
    pub(super) name: &'static str,
    /// Our answer.
    pub(super) answer: fn(&Case) -> Value,
    /// The recorded answer, reduced to what is compared.
    pub(super) expectation: fn(&Case) -> Value,
    /// The ways in which we differ on purpose.
    pub(super) rules: &'static [Rule],
}

/// A difference on purpose: which inputs it touches, and what it makes of the recorded answer.
pub(super) struct Rule {
    /// Row of the parity document.
    pub(super) row: &'static str,
    /// Whether it touches a case. It sees the input alone.
    pub(super) touches: fn(&Value) -> bool,
    /// Our answer, from the input and what upstream answers.
    pub(super) predict: fn(&Value, Value) -> Value,
}

impl Group {
    /// Whether a case is of this group.
    pub(super) fn covers(&self, case: &Case) -> bool {
        self.name == case.group || self.name == format!("{}/{}", case.group, case.file)
    }
}
