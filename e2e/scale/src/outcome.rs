//! The result of a run: a small document, from which table, page and pictures are made.

use std::collections::BTreeMap;
use std::fmt;

use metal3_sim_ironic::meter::Traffic;
use serde::{Deserialize, Serialize};

/// Counts by name.
pub(crate) type Counts = BTreeMap<String, u64>;

/// A run over one or several sizes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) setup: Setup,
    pub(crate) sizes: Vec<Size>,
}

/// What determines a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Version of the manager.
    pub(crate) program: String,
    /// Whether the manager is compiled as in a release.
    pub(crate) optimised: bool,
    /// How many times faster than real ones the machines are.
    pub(crate) speed: u32,
    /// Hosts that may use the provisioning network at once; 0 for all.
    pub(crate) slots: u32,
    pub(crate) idle_seconds: u64,
    pub(crate) away_seconds: u64,
}

/// A run with one number of hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(crate) hosts: u32,
    pub(crate) phases: Vec<Phase>,
}

/// What a phase cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// Until the last host is where it is to be.
    pub(crate) seconds: f64,
    /// The same for one host alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alone: Option<f64>,
    /// The same number of the same writes, sent without waiting for anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) floor: Option<f64>,
    pub(crate) api: Api,
    pub(crate) ironic: Traffic,
    /// By process.
    pub(crate) processes: BTreeMap<String, Cost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reaction: Option<Reaction>,
    /// Further figures of one phase, in seconds unless the name says otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) figures: BTreeMap<String, f64>,
    /// Seconds since the begin, and hosts by state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) states: Vec<(f64, Counts)>,
}

/// The manager's requests to the API server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Api {
    pub(crate) writes: Counts,
    pub(crate) reads: Counts,
    /// Not for one host: events, leases, lists, watches, and the search for another manager.
    pub(crate) shared: Counts,
    /// Writes that conflicted.
    pub(crate) conflicts: u64,
    /// Reads of what does not exist.
    pub(crate) not_found: u64,
    /// What the role denies.
    pub(crate) forbidden: Vec<String>,
}

/// What a process used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) cpu_millis: u64,
    /// Largest resident memory.
    pub(crate) peak_kib: u64,
}

/// From an event to the write that it causes, both as an independent watcher receives them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reaction {
    /// Changes one after the other, with a pause that is shorter than what each sets off.
    pub(crate) calm: Quantiles,
    /// All hosts changed at once.
    pub(crate) burst: Quantiles,
}

/// Milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    pub(crate) number: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// Of fewer times than this, the 99th percentile is the maximum.
const FEW: usize = 100;

impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, p50, p99, max } = self;
        match *number {
            0 => Ok(()),
            1..FEW => write!(f, "{p50:.0}, {max:.0} of {number}"),
            _ => write!(f, "{p50:.0}, {p99:.0}, {max:.0} of {number}"),
        }
    }
}

impl Quantiles {
    /// What the 99th percentile is.
    pub(crate) fn name_of_p99(&self) -> String {
        let Self { number, .. } = self;
        if *number < FEW {
            format!("slowest of {number}")
        } else {
            format!("99th percentile of {number}")
        }
    }

    /// Of times in milliseconds.
    pub(crate) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = times.len().saturating_mul(percent).div_ceil(100).saturating_sub(1);
            times.get(rank).copied().unwrap_or_default()
        };
        Self {
            number: times.len(),
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

impl Api {
    pub(crate) fn total(counts: &Counts) -> u64 {
        counts.values().sum()
    }

    /// The lists, which cost most of all requests with many objects.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (&String, u64)> {
        let lists = self.shared.iter().filter(|(what, _)| what.starts_with("list "));
        lists.map(|(what, number)| (what, *number))
    }

    /// Writes that conflicted, and reads of what does not exist.
    pub(crate) fn refused(&self) -> u64 {
        self.conflicts.saturating_add(self.not_found)
    }
}

/// A figure that is compared with something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Measured {
    Value(f64),
    /// This run did not measure it.
    Missing,
    /// What it is compared with took longer than the run that it is the floor of: other work disturbed it.
    Disturbed,
}

impl Measured {
    pub(crate) fn of(value: Option<f64>) -> Self {
        value.map_or(Self::Missing, Self::Value)
    }

    fn map(self, of: impl FnOnce(f64) -> f64) -> Self {
        match self {
            Self::Value(value) => Self::Value(of(value)),
            other => other,
        }
    }

    /// As text, with this text if it was not measured.
    pub(crate) fn text(self, of: impl FnOnce(f64) -> String, missing: &str) -> String {
        match self {
            Self::Value(value) => of(value),
            Self::Missing => missing.to_owned(),
            Self::Disturbed => "not measurable".to_owned(),
        }
    }
}

impl Phase {
    /// Seconds of one host alone and of the same writes.
    fn parts(&self) -> Measured {
        match self.alone.zip(self.floor) {
            None => Measured::Missing,
            Some((_, floor)) if floor > self.seconds => Measured::Disturbed,
            Some((alone, floor)) => Measured::Value(alone + floor),
        }
    }

    /// All hosts to the sum of one host alone and the same writes.
    pub(crate) fn ratio(&self) -> Measured {
        self.parts().map(|parts| self.seconds / parts)
    }

    /// Seconds beyond one host alone and the same writes.
    pub(crate) fn beyond(&self) -> Measured {
        self.parts().map(|parts| self.seconds - parts)
    }
}

impl Size {
    pub(crate) fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

/// A count as a number with a fraction.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "counts of a run are far below the limit of exact numbers"
)]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}

/// The exponent of growth between two sizes; `None` without a figure in both.
pub(crate) fn exponent((small, less): (u32, f64), (large, more): (u32, f64)) -> Option<f64> {
    let ratio = f64::from(large) / f64::from(small);
    (less > 0.0 && more > 0.0 && ratio > 1.0).then(|| (more / less).ln() / ratio.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let times = (1..=200).map(f64::from).collect();
        let quantiles = Quantiles::of(times);
        assert_eq!((quantiles.number, quantiles.p50), (200, 100.0));
        assert_eq!((quantiles.p99, quantiles.max), (198.0, 200.0));
        assert_eq!(Quantiles::of(Vec::new()), Quantiles::default());
        assert_eq!(Quantiles::of(vec![7.0]).p50, 7.0);
    }

    #[test]
    fn percentile_of_few_times_is_named_as_their_maximum() {
        let of = |number: u32| Quantiles::of((1..=number).map(f64::from).collect());
        for (number, text, name) in [
            (0, "", "slowest of 0"),
            (20, "10, 20 of 20", "slowest of 20"),
            (99, "50, 99 of 99", "slowest of 99"),
            (100, "50, 99, 100 of 100", "99th percentile of 100"),
        ] {
            let quantiles = of(number);
            assert_eq!(quantiles.to_string(), text);
            assert_eq!(quantiles.name_of_p99(), name);
        }
        assert!((of(99).p99 - of(99).max).abs() < 1e-9);
    }

    #[test]
    fn writes_that_took_longer_than_the_run_bound_nothing() {
        let (alone, ratio, beyond) = (Some(4.0), Measured::Value(2.0), Measured::Value(7.0));
        for (alone, floor, expected) in [
            (alone, Some(3.0), (ratio, beyond)),
            (alone, Some(14.1), (Measured::Disturbed, Measured::Disturbed)),
            (alone, None, (Measured::Missing, Measured::Missing)),
            (None, Some(3.0), (Measured::Missing, Measured::Missing)),
        ] {
            let phase = Phase {
                seconds: 14.0,
                alone,
                floor,
                ..Phase::default()
            };
            assert_eq!((phase.ratio(), phase.beyond()), expected);
        }
    }

    #[test]
    fn exponent_is_one_for_linear_growth_and_unknown_without_figures() {
        let linear = exponent((25, 400.0), (50, 800.0)).unwrap();
        assert!((linear - 1.0).abs() < 1e-9, "{linear}");
        let square = exponent((10, 1.0), (100, 100.0)).unwrap();
        assert!((square - 2.0).abs() < 1e-9, "{square}");
        assert_eq!(exponent((25, 0.0), (50, 1.0)), None);
        assert_eq!(exponent((25, 1.0), (25, 1.0)), None);
    }
}
