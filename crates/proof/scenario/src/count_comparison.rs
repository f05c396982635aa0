//! Differences of request counts between the simulators and the real services, and the reason of each.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Deserialize;

use crate::differences::matches;
use crate::request_counts::{CountDifference, RequestCounts};

/// Direction of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Real {
    /// The real services receive more requests.
    More,
    /// They receive fewer.
    Fewer,
    /// Either, depending on timing.
    Other,
}

/// A known reason for different counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountReason {
    /// Direction.
    pub real: Real,
    /// Requests, as [`RequestCounts`] writes them; `*` matches any text.
    pub asks: Vec<String>,
    /// Why.
    pub why: String,
}

/// Counts of two environments, matched with known reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountComparison {
    /// Number of distinct requests in the scenarios that both runs have.
    pub compared: usize,
    /// Differing counts with the index of the first matching reason.
    known: Vec<(usize, CountDifference)>,
    /// Differing counts without a reason.
    pub open: Vec<CountDifference>,
}

impl CountReason {
    /// Parses all reasons.
    ///
    /// # Errors
    /// An invalid reason.
    pub fn read(text: &str) -> Result<Vec<Self>> {
        Ok(serde_saphyr::from_str(text)?)
    }

    fn fits(&self, difference: &CountDifference) -> bool {
        let is_match = match self.real {
            Real::More => difference.there > difference.here,
            Real::Fewer => difference.there < difference.here,
            Real::Other => true,
        };
        is_match && self.asks.iter().any(|asks| matches(asks, &difference.what))
    }
}

impl CountComparison {
    /// Compares the counts of the simulators with those of the real services.
    #[must_use]
    pub fn of(simulated: &RequestCounts, real: &RequestCounts, reasons: &[CountReason]) -> Self {
        let mut comparison = Self {
            compared: simulated.known(real),
            ..Self::default()
        };
        for difference in simulated.difference(real) {
            match reasons.iter().position(|reason| reason.fits(&difference)) {
                Some(reason) => comparison.known.push((reason, difference)),
                None => comparison.open.push(difference),
            }
        }
        comparison
    }

    /// Number of equal counts.
    #[must_use]
    pub fn equal(&self) -> usize {
        self.compared
            .saturating_sub(self.known.len())
            .saturating_sub(self.open.len())
    }

    /// The differing counts as a Markdown table, one row for each reason.
    #[must_use]
    pub fn table(&self, reasons: &[CountReason]) -> String {
        let (equal, compared) = (self.equal(), self.compared);
        let mut text = format!("{equal} of {compared} counts are equal. The others, simulated and real:\n\n");
        text.push_str("| Count | Why |\n| --- | --- |\n");
        for (number, reason) in reasons.iter().enumerate() {
            let own = self.known.iter().filter(|(reason, _)| *reason == number);
            let own: Vec<String> = own
                .map(|(_, CountDifference { what, here, there })| format!("`{what}` {here}, {there}"))
                .collect();
            if !own.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "| {} | {} |", own.join("<br>"), reason.why);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASONS: &str = "- { real: more, asks: [\"*: machines get *\"], why: it looks }\n\
                           - { real: fewer, asks: [\"*: machines patch a\"], why: it joins }\n";

    #[test]
    fn each_count_that_differs_has_a_reason_that_fits_its_way_or_is_open() {
        let reasons = CountReason::read(REASONS).unwrap();
        let read = |text: &str| RequestCounts::read(text).unwrap();
        let simulated = read("s: machines get x 1\ns: machines patch a 3\ns: machines patch b 1\ns: hosts patch c 2\n");
        let real = read("s: machines get x 2\ns: machines patch a 2\ns: machines patch b 2\ns: hosts patch c 2\n");
        let comparison = CountComparison::of(&simulated, &real, &reasons);
        let open: Vec<&str> = comparison.open.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(
            (comparison.compared, comparison.equal(), open),
            (4, 1, vec!["s: machines patch b"])
        );
        let table = comparison.table(&reasons);
        assert!(table.contains("| `s: machines get x` 1, 2 | it looks |"), "{table}");
        let other_way = CountComparison::of(&real, &simulated, &reasons);
        assert_eq!(other_way.open.len(), 3);
    }
}
