//! `outputs`: runs the commands of `kubectl metal3` in the sandbox while a machine waits for a broken host, and writes what they
//! print into `docs/kubectl-metal3-outputs.md`, or compares the page with that.
//!
//! Time is simulated, so what is printed is a function of the seed. The same story without a command and without a scrape of the
//! metrics shows that the managers send the same requests: explanations and figures cost them none.

mod play;
mod requests;
mod story;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use metal3_files::{documents, workspace};

use crate::marks::Part;
use play::{Chapter, Looks, play};

/// Options of the command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write the page
    #[arg(long)]
    write: bool,
    /// Copy the outputs on the real servers from the report of an end-to-end run into the page
    #[arg(long, conflicts_with = "write")]
    real: Option<PathBuf>,
}

const PAGE: Part = Part {
    document: "docs/kubectl-metal3-outputs.md",
    begin: "<!-- outputs: written by make plugin-outputs -->\n",
    end: "<!-- end of the outputs -->",
};

/// The outputs on the real servers, which are compared with nothing: each run has other names and times.
const REAL: Part = Part {
    document: PAGE.document,
    begin: "<!-- real outputs: written by make plugin-outputs-real -->\n",
    end: "<!-- end of the real outputs -->",
};
/// The part of a report with them.
const OF_REPORT: &str = "\n## kubectl metal3\n\n";

/// Plays the story, and writes the page. `Ok(false)`: the page is not what the commands print.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(report) = &options.real {
        copy(report)?;
        println!("{}: written from {}", PAGE.document, report.display());
        return Ok(true);
    }
    let text = section()?;
    if options.write {
        PAGE.write(&text)?;
        println!("{}: written", PAGE.document);
        return Ok(true);
    }
    let differences = differences(&text)?;
    differences.iter().for_each(|line| println!("{line}"));
    Ok(differences.is_empty())
}

/// Copies the outputs of a report into the page, which gets the section when it has none.
fn copy(report: &Path) -> Result<()> {
    let path = workspace::root()?.join(PAGE.document);
    let page = with_real(&documents::text(&path)?, &documents::text(report)?)
        .with_context(|| format!("{}: run `make e2e-smoke` first", report.display()))?;
    std::fs::write(&path, page).with_context(|| format!("write {}", PAGE.document))
}

fn with_real(page: &str, report: &str) -> Result<String> {
    let (_, outputs) = report
        .split_once(OF_REPORT)
        .context("there is no part about kubectl metal3")?;
    let has_section = page.contains(REAL.begin);
    let blank = if has_section {
        String::new()
    } else {
        format!(
            "\n## On the real servers\n\nA record of the last run that was copied here.\n\n{}{}\n",
            REAL.begin, REAL.end
        )
    };
    REAL.replaced(&format!("{page}{blank}"), outputs)
}

/// What the page should contain.
fn section() -> Result<String> {
    let shown = play(Looks::EachMinute)?;
    let silent = play(Looks::Never)?;
    ensure!(
        shown.requests == silent.requests,
        "the managers send other requests when a user looks:\n{}",
        requests::differences(&silent.requests, &shown.requests).join("\n")
    );
    let mut text = String::new();
    for Chapter { title, commands } in &shown.chapters {
        let _ = write!(text, "\n## {title}\n\n```text\n");
        let commands: Vec<&str> = commands.iter().map(|command| command.text.as_str()).collect();
        let _ = writeln!(text, "{}```", commands.join("\n"));
    }
    text.push_str(&requests::page(&shown));
    Ok(text)
}

/// What differs between the page and what it should contain.
fn differences(text: &str) -> Result<Vec<String>> {
    let page = documents::text(&workspace::root()?.join(PAGE.document))?;
    let wanted = PAGE.replaced(&page, text)?;
    let mut found = Vec::new();
    let (mut old, mut new) = (page.lines(), wanted.lines());
    loop {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (old, new) => {
                found.push(format!("{} has: {}", PAGE.document, old.unwrap_or("(no more lines)")));
                found.push(format!("it should have: {}", new.unwrap_or("(no more lines)")));
                found.push("Run `make plugin-outputs`, and look at the changes.".to_owned());
                break;
            }
        }
    }
    Ok(found)
}
