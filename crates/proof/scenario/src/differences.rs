//! Differences between the simulators and the real services, and the reason of each.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::observed::ObservedStates;

/// The environment that reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The simulators.
    Simulated,
    /// The real managers.
    Real,
}

/// A known reason for differences.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The only environment that reports it.
    pub only: Side,
    /// The reports, as [`ObservedStates`] writes them; `*` matches any text.
    pub says: Vec<String>,
    /// Why.
    pub why: String,
}

/// Differences, matched with known reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Difference and index of the first matching reason.
    known: Vec<(usize, String)>,
    /// Differences without a reason.
    pub open: Vec<(Side, String)>,
    /// Patterns of reasons that match no difference.
    pub idle: Vec<String>,
}

impl Comparison {
    /// Compares two environments.
    #[must_use]
    pub fn of(simulated: &ObservedStates, real: &ObservedStates, reasons: &[Reason]) -> Self {
        let mut comparison = Self::default();
        let mut used = BTreeSet::new();
        let patterns = reasons.iter().enumerate();
        let patterns =
            patterns.flat_map(|(number, Reason { only, says, .. })| says.iter().map(move |says| (number, *only, says)));
        for (side, here, there) in [(Side::Simulated, simulated, real), (Side::Real, real, simulated)] {
            for states in here.missing_in(there) {
                let fits = |(_, only, says): &(usize, Side, &String)| *only == side && matches(says, &states);
                match patterns.clone().find(fits) {
                    Some((reason, _, says)) => {
                        used.insert((reason, says));
                        comparison.known.push((reason, states));
                    }
                    None => comparison.open.push((side, states)),
                }
            }
        }
        let idle = patterns.filter(|(reason, _, says)| !used.contains(&(*reason, *says)));
        comparison.idle = idle.map(|(_, _, says)| says.clone()).collect();
        comparison
    }

    /// Number of differences.
    #[must_use]
    pub fn count(&self) -> usize {
        self.known.len().saturating_add(self.open.len())
    }

    /// The differences as a Markdown table, one row for each reason.
    #[must_use]
    pub fn table(&self, reasons: &[Reason]) -> String {
        let mut text = "| Only | What is said | Why |\n| --- | --- | --- |\n".to_owned();
        for (number, Reason { only, why, .. }) in reasons.iter().enumerate() {
            let own = self.known.iter().filter(|(reason, _)| *reason == number);
            let own: Vec<String> = own.map(|(_, states)| format!("`{states}`")).collect();
            let side = match only {
                Side::Simulated => "simulated",
                Side::Real => "real",
            };
            if !own.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "| {side} | {} | {why} |", own.join("<br>"));
            }
        }
        text
    }
}

impl Reason {
    /// Parses all reasons.
    ///
    /// # Errors
    /// An invalid reason, or a pattern that matches every kind.
    pub fn read(text: &str) -> Result<Vec<Self>> {
        let all: Vec<Self> = serde_saphyr::from_str(text)?;
        for says in all.iter().flat_map(|reason| &reason.says) {
            let kind = says.split_once(": ").map(|(kind, _)| kind);
            let is_one = kind.is_some_and(|kind| !kind.is_empty() && kind.chars().all(char::is_alphanumeric));
            ensure!(is_one, "{says:?}: write Kind: what");
        }
        Ok(all)
    }
}

/// Whether a text matches a pattern, in which `*` matches any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|left| {
            let mut ends = left.char_indices().map(|(at, _)| at).chain([left.len()]);
            ends.any(|at| left.get(at..).is_some_and(|left| matches(rest, left)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASONS: &str = "
- { only: real, says: ['Machine: Bootstrap* *', 'Machine: phase Odd'], why: not simulated }
- { only: simulated, says: ['Machine: phase New'], why: time }
";

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, text, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("a*", "a", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn differences_have_a_reason_or_are_open() {
        let reasons = Reason::read(REASONS).unwrap();
        let simulated = ObservedStates::read("Machine: phase New\nMachine: phase Odd\nMachine: x\n").unwrap();
        let real = ObservedStates::read("Machine: BootstrapReady True Ready\nMachine: x\n").unwrap();
        let comparison = Comparison::of(&simulated, &real, &reasons);
        // The reason is for the other environment.
        assert_eq!(comparison.open, [(Side::Simulated, "Machine: phase Odd".to_owned())]);
        assert_eq!(comparison.count(), 3);
        let table = comparison.table(&reasons);
        assert!(
            table.ends_with(
                "| real | `Machine: BootstrapReady True Ready` | not simulated |\n\
                 | simulated | `Machine: phase New` | time |\n"
            ),
            "{table}"
        );
    }

    #[test]
    fn unused_reasons_are_listed_and_catch_all_reasons_rejected() {
        let reasons = Reason::read(REASONS).unwrap();
        let simulated = ObservedStates::read("Machine: x\n").unwrap();
        let real = ObservedStates::read("Machine: BootstrapReady True Ready\nMachine: x\n").unwrap();
        let comparison = Comparison::of(&simulated, &real, &reasons);
        assert_eq!(comparison.open, []);
        assert_eq!(comparison.idle, ["Machine: phase Odd", "Machine: phase New"]);
        for says in ["*", "*: phase Odd", "Machine"] {
            let text = format!("- {{ only: real, says: ['{says}'], why: x }}");
            assert!(Reason::read(&text).is_err(), "{says}");
        }
    }

    #[test]
    fn equal_runs_have_no_difference() {
        let one = ObservedStates::read("A: x\n").unwrap();
        assert_eq!(Comparison::of(&one, &one, &[]), Comparison::default());
    }
}
