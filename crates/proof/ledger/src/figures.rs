//! The ledger: measured figures with their goals and theoretical minimums.

use std::fmt;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Phase of the lifecycle: `grant`, `enrol`.
    pub phase: String,
    /// The measured quantity: `API writes per claim`.
    pub what: String,
    /// Measured value.
    pub measured: u64,
    /// Upper limit.
    pub goal: u64,
    /// Theoretical minimum, and its reason: `3: finalizer, address, status`.
    pub least: String,
}

impl Figure {
    /// Whether the goal is met.
    #[must_use]
    pub const fn within_goal(&self) -> bool {
        self.measured <= self.goal
    }
}

/// The table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    figures: Vec<Figure>,
}

impl Ledger {
    /// Adds a row.
    pub fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Whether every row meets its goal; false for an empty ledger.
    #[must_use]
    pub fn within_goals(&self) -> bool {
        !self.figures.is_empty() && self.figures.iter().all(Figure::within_goal)
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Figure) -> usize| self.figures.iter().map(text).max().unwrap_or(0);
        let phase = width(|figure| figure.phase.len()).max("phase".len());
        let what = width(|figure| figure.what.len()).max("what".len());
        writeln!(
            f,
            "{:phase$}  {:what$}  {:>8}  {:>5}  least",
            "phase", "what", "measured", "goal"
        )?;
        for figure in &self.figures {
            let over = if figure.within_goal() { "" } else { "  OVER" };
            writeln!(
                f,
                "{:phase$}  {:what$}  {:>8}  {:>5}  {}{over}",
                figure.phase, figure.what, figure.measured, figure.goal, figure.least
            )?;
        }
        let within = self.figures.iter().filter(|figure| figure.within_goal()).count();
        write!(f, "{} rows, {within} within goal", self.figures.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(measured: u64) -> Figure {
        Figure {
            phase: "grant".into(),
            what: "API writes per claim".into(),
            measured,
            goal: 3,
            least: "3: finalizer, address, status".into(),
        }
    }

    #[test]
    fn a_row_over_its_goal_is_marked_and_fails_the_ledger() {
        let mut ledger = Ledger::default();
        ledger.add(figure(3));
        assert!(ledger.within_goals());
        ledger.add(figure(4));
        assert!(!ledger.within_goals());
        let text = ledger.to_string();
        assert_eq!(text.lines().last(), Some("2 rows, 1 within goal"));
        assert_eq!(text.lines().filter(|line| line.ends_with("OVER")).count(), 1);
    }

    #[test]
    fn an_empty_ledger_fails() {
        assert!(!Ledger::default().within_goals());
    }
}
