//! `asked`: what the products asked for on the simulated world and on the real one, compared. Each count that is not equal
//! has a reason in a file of reasons, or the command fails.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use metal3_scenario::{Asked, Price, PriceReason};

use crate::marks::Part;
use metal3_files::{documents, workspace};

/// Where reasons are.
const REASONS: &str = "e2e/scenarios/differences/asked.yaml";
/// The table of what is not equal.
const TABLE: Part = Part {
    document: "docs/counts.md",
    begin: "<!-- asked: begin (make scenario-differences) -->\n",
    end: "<!-- asked: end -->",
};

/// What is compared.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What was asked for on the simulated world
    simulated: PathBuf,
    /// What was asked for on the real one
    real: PathBuf,
    /// Write what is not equal into docs/counts.md
    #[arg(long)]
    write: bool,
}

/// Compares, and says what has no reason.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root()?;
    let read = |path: &PathBuf| Asked::read(&documents::text(path)?).with_context(|| format!("{}", path.display()));
    let (simulated, real) = (read(&options.simulated)?, read(&options.real)?);
    for (asked, file) in [(&simulated, &options.simulated), (&real, &options.real)] {
        ensure!(!asked.is_empty(), "{}: nobody asked for anything", file.display());
    }
    let reasons = PriceReason::read(&documents::text(&root.join(REASONS))?).context(REASONS)?;
    let price = Price::of(&simulated, &real, &reasons);
    for open in &price.open {
        println!(
            "{}: {} times on the simulated world, {} on the real one, and {REASONS} does not say why",
            open.what, open.here, open.there
        );
    }
    // Half a table would look like a whole one.
    if options.write && price.open.is_empty() {
        TABLE.write(&price.table(&reasons))?;
    }
    let (equal, compared) = (price.equal(), price.compared);
    println!(
        "{compared} counts, {equal} of them equal, {} without a reason",
        price.open.len()
    );
    Ok(price.open.is_empty())
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
        PriceReason::read(&documents::text(&root.join(REASONS)).unwrap()).unwrap();
    }
}
