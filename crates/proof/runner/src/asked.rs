//! `asked`: compares the request counts of the products on the simulators with those on the real services. Fails when a
//! difference has no reason in the file of reasons.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use metal3_scenario::{CountComparison, CountReason, RequestCounts};

use crate::marks::Part;
use metal3_files::{documents, workspace};

/// File of reasons.
const REASONS: &str = "e2e/scenarios/differences/asked.yaml";
/// The table of differing counts.
const TABLE: Part = Part {
    document: "docs/counts.md",
    begin: "<!-- asked: begin (make scenario-differences) -->\n",
    end: "<!-- asked: end -->",
};

/// Options of the command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Counts of the simulators
    simulated: PathBuf,
    /// Counts of the real services
    real: PathBuf,
    /// Write the differing counts into docs/counts.md
    #[arg(long)]
    write: bool,
}

/// Compares two reports and prints the differences without a reason.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root()?;
    let read =
        |path: &PathBuf| RequestCounts::read(&documents::text(path)?).with_context(|| format!("{}", path.display()));
    let (simulated, real) = (read(&options.simulated)?, read(&options.real)?);
    for (asked, file) in [(&simulated, &options.simulated), (&real, &options.real)] {
        ensure!(!asked.is_empty(), "{}: it is empty", file.display());
    }
    let reasons = CountReason::read(&documents::text(&root.join(REASONS))?).context(REASONS)?;
    let comparison = CountComparison::of(&simulated, &real, &reasons);
    for open in &comparison.open {
        println!(
            "{}: {} on the simulators, {} on the real services, without a reason in {REASONS}",
            open.what, open.here, open.there
        );
    }
    // An incomplete table would look complete.
    if options.write && comparison.open.is_empty() {
        TABLE.write(&comparison.table(&reasons))?;
    }
    let (equal, compared) = (comparison.equal(), comparison.compared);
    println!(
        "{compared} counts, {equal} of them equal, {} without a reason",
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
        CountReason::read(&documents::text(&root.join(REASONS)).unwrap()).unwrap();
    }
}
