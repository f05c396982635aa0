//! Where one world is asked more often than the other, and why it may.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Deserialize;

use crate::asked::{Asked, Unequal};
use crate::differences::matches;

/// Which way two counts differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Real {
    /// The real world is asked more often than the simulated one.
    More,
    /// It is asked less often.
    Fewer,
    /// Now more, now less: it is a matter of time.
    Other,
}

/// Why one world is asked more often.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceReason {
    /// Which way.
    pub real: Real,
    /// What, as [`Asked`] writes it; `*` stands for anything.
    pub asks: Vec<String>,
    /// Why.
    pub why: String,
}

/// Two worlds' counts, held against the reasons that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Price {
    /// How many different things were asked in the scripts that both ran.
    pub compared: usize,
    /// What is not equal, with the number of the first reason that fits.
    known: Vec<(usize, Unequal)>,
    /// For which there is no reason.
    pub open: Vec<Unequal>,
}

impl PriceReason {
    /// Reads all of them.
    ///
    /// # Errors
    /// What is no reason, and where.
    pub fn read(text: &str) -> Result<Vec<Self>> {
        Ok(serde_saphyr::from_str(text)?)
    }

    fn fits(&self, unequal: &Unequal) -> bool {
        let is_so = match self.real {
            Real::More => unequal.there > unequal.here,
            Real::Fewer => unequal.there < unequal.here,
            Real::Other => true,
        };
        is_so && self.asks.iter().any(|asks| matches(asks, &unequal.what))
    }
}

impl Price {
    /// Compares what was asked on the simulated world with what was asked on the real one.
    #[must_use]
    pub fn of(simulated: &Asked, real: &Asked, reasons: &[PriceReason]) -> Self {
        let mut price = Self {
            compared: simulated.known(real),
            ..Self::default()
        };
        for unequal in simulated.unequal(real) {
            match reasons.iter().position(|reason| reason.fits(&unequal)) {
                Some(reason) => price.known.push((reason, unequal)),
                None => price.open.push(unequal),
            }
        }
        price
    }

    /// How many are equal.
    #[must_use]
    pub fn equal(&self) -> usize {
        self.compared
            .saturating_sub(self.known.len())
            .saturating_sub(self.open.len())
    }

    /// What is not equal as a table in Markdown, with what has one reason in one row.
    #[must_use]
    pub fn table(&self, reasons: &[PriceReason]) -> String {
        let (equal, compared) = (self.equal(), self.compared);
        let mut text = format!("{equal} of {compared} counts are equal. The others, simulated and real:\n\n");
        text.push_str("| Count | Why |\n| --- | --- |\n");
        for (number, reason) in reasons.iter().enumerate() {
            let own = self.known.iter().filter(|(reason, _)| *reason == number);
            let own: Vec<String> = own
                .map(|(_, Unequal { what, here, there })| format!("`{what}` {here}, {there}"))
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
        let reasons = PriceReason::read(REASONS).unwrap();
        let read = |text: &str| Asked::read(text).unwrap();
        let simulated = read("s: machines get x 1\ns: machines patch a 3\ns: machines patch b 1\ns: hosts patch c 2\n");
        let real = read("s: machines get x 2\ns: machines patch a 2\ns: machines patch b 2\ns: hosts patch c 2\n");
        let price = Price::of(&simulated, &real, &reasons);
        let open: Vec<&str> = price.open.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(
            (price.compared, price.equal(), open),
            (4, 1, vec!["s: machines patch b"])
        );
        let table = price.table(&reasons);
        assert!(table.contains("| `s: machines get x` 1, 2 | it looks |"), "{table}");
        let other_way = Price::of(&real, &simulated, &reasons);
        assert_eq!(other_way.open.len(), 3);
    }
}
