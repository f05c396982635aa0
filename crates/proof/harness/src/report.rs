//! What a trial found.

use std::fmt;

/// How much was tried. That nothing was found is said by its existence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Of the world.
    pub name: &'static str,
    /// The writes of the fault-free run, in order: `POST /api/v1/namespaces/ns/configmaps`.
    pub effects: Vec<String>,
    /// Kinds of blows.
    pub blows: usize,
    /// Cases of the crash property that were run.
    pub cases: usize,
    /// Of effects times blows, every so-manieth.
    pub every: usize,
    /// Runs of two at once.
    pub interleavings: usize,
    /// Writes after which invariants were checked, over all runs.
    pub checks: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, cases, .. } = self;
        let all = self.effects.len().saturating_mul(self.blows);
        let run = match self.every {
            1 => "all run".to_owned(),
            every => format!("{cases} run, every {every}th"),
        };
        write!(
            f,
            "{name}: {} effects x {} fault kinds = {all} cases, {run}; {} interleavings of two; fixpoint; quiet for a \
             day; invariants checked after {} writes",
            self.effects.len(),
            self.blows,
            self.interleavings,
            self.checks,
        )
    }
}
