//! `observed`: compares the reported states of objects on the simulators with those on the real services. Fails when a
//! difference has no reason in the file of reasons.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use metal3_scenario::{Comparison, ObservedStates, Reason, Side};

use crate::marks::Part;
use metal3_files::{documents, workspace};

/// File of reasons.
const REASONS: &str = "e2e/scenarios/differences/reasons.yaml";
/// The table of differences.
const TABLE: Part = Part {
    document: "docs/scenarios.md",
    begin: "<!-- differences: begin (make scenario-differences) -->\n",
    end: "<!-- differences: end -->",
};

/// Options of the command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Report of the simulators
    simulated: PathBuf,
    /// Report of the real services
    real: PathBuf,
    /// Write the differences into docs/scenarios.md
    #[arg(long, conflicts_with = "part")]
    write: bool,
    /// Only some scenarios ran: unused reasons are fine
    #[arg(long)]
    part: bool,
}

/// Compares two reports and prints the differences without a reason.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root()?;
    let read =
        |path: &PathBuf| ObservedStates::read(&documents::text(path)?).with_context(|| format!("{}", path.display()));
    let (simulated, real) = (read(&options.simulated)?, read(&options.real)?);
    let reasons = Reason::read(&documents::text(&root.join(REASONS))?).context(REASONS)?;
    for (states, file) in [(&simulated, &options.simulated), (&real, &options.real)] {
        ensure!(*states != ObservedStates::default(), "{}: it is empty", file.display());
    }
    let comparison = Comparison::of(&simulated, &real, &reasons);
    for (side, states) in &comparison.open {
        let side = match side {
            Side::Simulated => "the simulators",
            Side::Real => "the real services",
        };
        println!("only from {side}, without a reason in {REASONS}: {states}");
    }
    let idle = if options.part { &[][..] } else { &comparison.idle };
    // Not an error: a run may miss a transient state.
    for says in idle {
        println!("no difference in this run for a reason in {REASONS}: {says}");
    }
    // An incomplete table would look complete.
    if options.write && comparison.open.is_empty() {
        TABLE.write(&comparison.table(&reasons))?;
    }
    println!(
        "{} differences, {} without a reason",
        comparison.count(),
        comparison.open.len()
    );
    Ok(comparison.open.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_marks_and_the_reasons_can_be_read() {
        let root = workspace::root().unwrap();
        TABLE
            .replaced(&documents::text(&root.join(TABLE.document)).unwrap(), "")
            .unwrap();
        Reason::read(&documents::text(&root.join(REASONS)).unwrap()).unwrap();
    }
}
