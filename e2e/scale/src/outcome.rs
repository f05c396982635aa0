//! The result of a run: a small document, from which table, page and pictures are made.

use std::collections::BTreeMap;

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
    /// One change at a time.
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

impl Quantiles {
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
    fn exponent_is_one_for_linear_growth_and_unknown_without_figures() {
        let linear = exponent((25, 400.0), (50, 800.0)).unwrap();
        assert!((linear - 1.0).abs() < 1e-9, "{linear}");
        let square = exponent((10, 1.0), (100, 100.0)).unwrap();
        assert!((square - 2.0).abs() < 1e-9, "{square}");
        assert_eq!(exponent((25, 0.0), (50, 1.0)), None);
        assert_eq!(exponent((25, 1.0), (25, 1.0)), None);
    }
}
