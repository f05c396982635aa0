//! `observed`: what objects said of themselves on the simulated world and on the real one, compared. Each difference has a
//! reason in a file of reasons, or the command fails.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use metal3_scenario::{Explained, Observed, Reason, Side};

use crate::{documents, workspace};

/// Where reasons are.
const REASONS: &str = "e2e/scenarios/differences/reasons.yaml";
/// The document with the table of differences.
const DOCUMENT: &str = "docs/scenarios.md";
const BEGIN: &str = "<!-- differences: begin (make scenario-differences) -->\n";
const END: &str = "<!-- differences: end -->";

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
        let path = root.join(DOCUMENT);
        let document = between_marks(&documents::text(&path)?, &explained.table(&reasons))?;
        std::fs::write(&path, document).with_context(|| format!("write {DOCUMENT}"))?;
    }
    println!(
        "{} differences, {} without a reason",
        explained.count(),
        explained.open.len()
    );
    Ok(explained.open.is_empty())
}

/// The document with what is between its marks replaced.
fn between_marks(document: &str, text: &str) -> Result<String> {
    let marks = || format!("{DOCUMENT} has no {} and {END}", BEGIN.trim());
    let (before, rest) = document.split_once(BEGIN).with_context(marks)?;
    let (_, after) = rest.split_once(END).with_context(marks)?;
    Ok(format!("{before}{BEGIN}{text}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let document = format!("a\n{BEGIN}old\n{END}\nb\n");
        assert_eq!(
            between_marks(&document, "new\n").unwrap(),
            format!("a\n{BEGIN}new\n{END}\nb\n")
        );
        assert!(between_marks("a\n", "new\n").is_err());
    }

    #[test]
    fn the_document_has_the_marks_and_the_reasons_can_be_read() {
        let root = workspace::root().unwrap();
        between_marks(&documents::text(&root.join(DOCUMENT)).unwrap(), "").unwrap();
        Reason::read(&documents::text(&root.join(REASONS)).unwrap()).unwrap();
    }
}
