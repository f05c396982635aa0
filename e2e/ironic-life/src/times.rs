//! The duration of each phase over all nodes.

use std::{collections::BTreeMap, time::Duration};

/// Durations by phase; phases in the order of their first duration.
#[derive(Debug, Default)]
pub(crate) struct Times {
    order: Vec<&'static str>,
    spent: BTreeMap<&'static str, Vec<Duration>>,
}

impl Times {
    pub(crate) fn add(&mut self, phase: &'static str, spent: Duration) {
        if !self.order.contains(&phase) {
            self.order.push(phase);
        }
        self.spent.entry(phase).or_default().push(spent);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for phase in other.order {
            for spent in other.spent.get(phase).into_iter().flatten() {
                self.add(phase, *spent);
            }
        }
    }

    /// A table: phase, minimum, median, maximum in seconds.
    pub(crate) fn table(&self) -> String {
        let mut lines = vec![format!("{:<12} {:>7} {:>7} {:>7}", "phase", "min", "median", "max")];
        for phase in &self.order {
            let mut sorted = self.spent.get(phase).cloned().unwrap_or_default();
            sorted.sort();
            let at = |index: usize| sorted.get(index).map_or(0.0, Duration::as_secs_f64);
            let (median, last) = (at(sorted.len() / 2), at(sorted.len().saturating_sub(1)));
            lines.push(format!("{phase:<12} {:>7.1} {median:>7.1} {last:>7.1}", at(0)));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_keeps_the_order_of_phases_and_shows_the_spread() {
        let mut times = Times::default();
        for (phase, seconds) in [("manage", 3), ("inspect", 9), ("manage", 1), ("manage", 2)] {
            times.add(phase, Duration::from_secs(seconds));
        }
        let table = times.table();
        let lines: Vec<_> = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .collect();
        assert_eq!(lines[1], ["manage", "1.0", "2.0", "3.0"]);
        assert_eq!(lines[2][0], "inspect");
    }
}
