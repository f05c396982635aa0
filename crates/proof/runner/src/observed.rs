//! `observed`: what objects said of themselves on the simulated world and on the real one, compared. Each difference has a
//! reason in a file of reasons, or the command fails.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use metal3_scenario::{Explained, Observed, Reason, Side};

use crate::marks::Part;
use metal3_files::{documents, workspace};

/// Where reasons are.
const REASONS: &str = "e2e/scenarios/differences/reasons.yaml";
/// The table of differences.
const TABLE: Part = Part {
    document: "docs/scenarios.md",
    begin: "<!-- differences: begin (make scenario-differences) -->\n",
    end: "<!-- differences: end -->",
};

/// What is compared.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What was said on the simulated world
    simulated: PathBuf,
    /// What was said on the real one
    real: PathBuf,
    /// Write the differences into docs/scenarios.md
    #[arg(long, conflicts_with = "part")]
    write: bool,
    /// Not all scripts ran: many reasons are not needed
    #[arg(long)]
    part: bool,
}

/// Compares, and says what has no reason.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root()?;
    let read = |path: &PathBuf| Observed::read(&documents::text(path)?).with_context(|| format!("{}", path.display()));
    let (simulated, real) = (read(&options.simulated)?, read(&options.real)?);
    let reasons = Reason::read(&documents::text(&root.join(REASONS))?).context(REASONS)?;
    for (said, file) in [(&simulated, &options.simulated), (&real, &options.real)] {
        ensure!(*said != Observed::default(), "{}: nobody said anything", file.display());
    }
    let explained = Explained::of(&simulated, &real, &reasons);
    for (side, said) in &explained.open {
        let side = match side {
            Side::Simulated => "the simulated world",
            Side::Real => "the real one",
        };
        println!("only {side} says, and {REASONS} does not say why: {said}");
    }
    let idle = if options.part { &[][..] } else { &explained.idle };
    // No complaint: what is said for a moment may be missed in a run.
    for says in idle {
        println!("no difference in this run, though {REASONS} has a reason for it: {says}");
    }
    // Half a table would look like a whole one.
    if options.write && explained.open.is_empty() {
        TABLE.write(&explained.table(&reasons))?;
    }
    println!(
        "{} differences, {} without a reason",
        explained.count(),
        explained.open.len()
    );
    Ok(explained.open.is_empty())
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
