//! Where two worlds say different things, and why each of them may.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::observed::Observed;

/// Which world says what the other does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The one in which all but the products is played.
    Simulated,
    /// The one of real managers.
    Real,
}

/// Why one world says what the other does not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The world that says it.
    pub only: Side,
    /// What it says, as [`Observed`] writes it; `*` stands for anything.
    pub says: Vec<String>,
    /// Why.
    pub why: String,
}

/// What two worlds say differently, held against the reasons that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explained {
    /// By the number of the reason, the first that fits.
    known: Vec<(usize, String)>,
    /// For which there is no reason.
    pub open: Vec<(Side, String)>,
    /// What reasons speak of and nobody says.
    pub idle: Vec<String>,
}

impl Explained {
    /// Compares.
    #[must_use]
    pub fn of(simulated: &Observed, real: &Observed, reasons: &[Reason]) -> Self {
        let mut explained = Self::default();
        let mut used = BTreeSet::new();
        let patterns = reasons.iter().enumerate();
        let patterns =
            patterns.flat_map(|(number, Reason { only, says, .. })| says.iter().map(move |says| (number, *only, says)));
        for (side, here, there) in [(Side::Simulated, simulated, real), (Side::Real, real, simulated)] {
            for said in here.beyond(there) {
                let fits = |(_, only, says): &(usize, Side, &String)| *only == side && matches(says, &said);
                match patterns.clone().find(fits) {
                    Some((reason, _, says)) => {
                        used.insert((reason, says));
                        explained.known.push((reason, said));
                    }
                    None => explained.open.push((side, said)),
                }
            }
        }
        let idle = patterns.filter(|(reason, _, says)| !used.contains(&(*reason, *says)));
        explained.idle = idle.map(|(_, _, says)| says.clone()).collect();
        explained
    }

    /// How many differences there are, all told.
    #[must_use]
    pub fn count(&self) -> usize {
        self.known.len().saturating_add(self.open.len())
    }

    /// The differences as a table in Markdown, those of one reason in one row.
    #[must_use]
    pub fn table(&self, reasons: &[Reason]) -> String {
        let mut text = "| Only | What is said | Why |\n| --- | --- | --- |\n".to_owned();
        for (number, Reason { only, why, .. }) in reasons.iter().enumerate() {
            let own = self.known.iter().filter(|(reason, _)| *reason == number);
            let own: Vec<String> = own.map(|(_, said)| format!("`{said}`")).collect();
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
    /// Reads all of them.
    ///
    /// # Errors
    /// What is no reason, and where; one that would explain what any kind says.
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

/// Whether a text fits, in which `*` stands for anything.
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
- { only: real, says: ['Machine: Bootstrap* *', 'Machine: phase Odd'], why: nobody plays it }
- { only: simulated, says: ['Machine: phase New'], why: time }
";

    #[test]
    fn a_star_stands_for_anything_and_all_else_for_itself() {
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
        let simulated = Observed::read("Machine: phase New\nMachine: phase Odd\nMachine: x\n").unwrap();
        let real = Observed::read("Machine: BootstrapReady True Ready\nMachine: x\n").unwrap();
        let explained = Explained::of(&simulated, &real, &reasons);
        // It is the other world for which there is a reason.
        assert_eq!(explained.open, [(Side::Simulated, "Machine: phase Odd".to_owned())]);
        assert_eq!(explained.count(), 3);
        let table = explained.table(&reasons);
        assert!(
            table.ends_with(
                "| real | `Machine: BootstrapReady True Ready` | nobody plays it |\n\
                 | simulated | `Machine: phase New` | time |\n"
            ),
            "{table}"
        );
    }

    #[test]
    fn reasons_that_nobody_needs_are_named_and_those_for_everything_refused() {
        let reasons = Reason::read(REASONS).unwrap();
        let simulated = Observed::read("Machine: x\n").unwrap();
        let real = Observed::read("Machine: BootstrapReady True Ready\nMachine: x\n").unwrap();
        let explained = Explained::of(&simulated, &real, &reasons);
        assert_eq!(explained.open, []);
        assert_eq!(explained.idle, ["Machine: phase Odd", "Machine: phase New"]);
        for says in ["*", "*: phase Odd", "Machine"] {
            let text = format!("- {{ only: real, says: ['{says}'], why: x }}");
            assert!(Reason::read(&text).is_err(), "{says}");
        }
    }

    #[test]
    fn equal_worlds_differ_in_nothing() {
        let one = Observed::read("A: x\n").unwrap();
        assert_eq!(Explained::of(&one, &one, &[]), Explained::default());
    }
}
