//! Report of a crash sweep.

use std::fmt;

/// Numbers of a successful sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the test environment.
    pub name: &'static str,
    /// The writes of the fault-free run, in order: `POST /api/v1/namespaces/ns/configmaps`.
    pub effects: Vec<String>,
    /// Number of fault kinds.
    pub faults: usize,
    /// Cases of the crash property that were run.
    pub cases: usize,
    /// Every how many cases one is run.
    pub every: usize,
    /// Number of interleavings of two programs.
    pub interleavings: usize,
    /// Writes after which invariants were checked, over all runs.
    pub checks: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, cases, .. } = self;
        let all = self.effects.len().saturating_mul(self.faults);
        let run = match self.every {
            1 => "all run".to_owned(),
            every => format!("{cases} run, every {every}th"),
        };
        write!(
            f,
            "{name}: {} effects x {} fault kinds = {all} cases, {run}; {} interleavings of two; fixpoint; quiet for a \
             day; invariants checked after {} writes",
            self.effects.len(),
            self.faults,
            self.interleavings,
            self.checks,
        )
    }
}
