//! What a group of cases needs to be run: our answer, the part of the recorded one that is compared, and the rules by
//! which the two may differ.

use serde_json::Value;

use super::case::Case;
use super::{admission, bmcaddress, conversion};

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

/// The groups that our code answers. A group that is not here is pending.
pub(super) const GROUPS: &[Group] = &[
    admission::HOSTS,
    admission::INFRASTRUCTURE,
    admission::IPAM,
    bmcaddress::GROUP,
    conversion::GROUP,
];

impl Group {
    /// The group that a case belongs to.
    pub(super) fn of(case: &Case) -> Option<&'static Self> {
        GROUPS.iter().find(|group| group.covers(case))
    }

    /// Whether a case is of this group.
    pub(super) fn covers(&self, case: &Case) -> bool {
        self.name == case.group || self.name == format!("{}/{}", case.group, case.file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parity;
    use super::*;

    #[test]
    fn every_difference_that_a_rule_of_the_api_names_has_a_row() {
        let document = parity::Document::read().unwrap();
        let missing: Vec<String> = metal3_api::catalog::reviewers()
            .iter()
            .flat_map(|reviewer| (reviewer.rows)().into_iter().map(|row| (reviewer.kind, row)))
            .filter_map(|(kind, row)| Some((kind, row.differs?)))
            .filter(|(_, name)| document.why(name).is_none())
            .map(|(kind, name)| format!("{kind}: {name}"))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_rule_has_a_row_in_the_parity_document() {
        let document = parity::Document::read().unwrap();
        for rule in GROUPS.iter().flat_map(|group| group.rules) {
            assert!(document.why(rule.row).is_some(), "{}", rule.row);
        }
    }
}
