//! `scenario`: readable scripts of what happens to clusters, run on the simulated world.
//!
//! A script applies objects, waits, asserts, breaks things and restarts the products. It does not know what world it runs
//! on: it sees objects, machines by the number of their host, and Nodes. Every write is held against the invariants. A
//! failure shows the step, the objects it looked at, and what happened last.
//!
//! A run is a function of the script and its seed: two of them write the same, in the same order, at the same times.
//! Requests may be made to fail, at random, by the same seed.

mod invariants;
mod journal;
mod run;
mod seen;
mod trouble;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use metal3_domain::clock::{Clock as _, SystemClock};
use metal3_scenario::{Asked, Observed, Scenario};

use metal3_files::{documents, workspace};
use run::{Files, Run, Setting, Struck};

/// Where the scripts are.
const FOLDER: &str = "e2e/scenarios";

/// What is run, and how.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Scripts; all of e2e/scenarios where none is named
    file: Vec<PathBuf>,
    /// What names, identities and faults follow from
    #[arg(long, default_value = "1")]
    seed: Vec<u64>,
    /// All seeds from 1 to this one
    #[arg(long, conflicts_with = "seed")]
    seeds: Option<u64>,
    /// Requests of the products fail, at random by the seed
    #[arg(long)]
    faults: bool,
    /// Run each a second time, which must write the same
    #[arg(long)]
    twice: bool,
    /// Write here what objects said of themselves, sorted
    #[arg(long)]
    observed: Option<PathBuf>,
    /// Write here what the products asked for
    #[arg(long)]
    asked: Option<PathBuf>,
    /// Folder of what others have published, for the scripts that apply it
    #[arg(long)]
    published: Option<PathBuf>,
    /// Print every version of every object
    #[arg(long)]
    journal: bool,
}

impl Options {
    fn all_seeds(&self) -> Vec<u64> {
        match self.seeds {
            Some(last) => (1..=last).collect(),
            None => self.seed.clone(),
        }
    }

    /// Writes what was seen where it is asked for.
    fn write(&self, observed: &Observed, asked: &Asked) -> Result<()> {
        let texts = [(&self.observed, observed.to_string()), (&self.asked, asked.to_string())];
        for (path, text) in texts.iter().filter_map(|(path, text)| Some((path.as_ref()?, text))) {
            std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

/// Runs the scripts, each with each seed; all of them where none is named.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let folder = workspace::root()?.join(FOLDER);
    let files = if options.file.is_empty() {
        scripts(&folder)?
    } else {
        options.file.clone()
    };
    let (clock, seeds) = (SystemClock::start(), options.all_seeds());
    let (mut failed, mut checks, mut struck) = (0_usize, 0_usize, Struck::default());
    let (mut observed, mut asked) = (Observed::default(), Asked::default());
    for file in &files {
        let scenario = read(file)?;
        for seed in &seeds {
            let setting = Setting {
                seed: *seed,
                troubled: options.faults,
            };
            let begun = clock.monotonic();
            let files = Files {
                own: file.parent().unwrap_or(Path::new(".")),
                published: options.published.as_deref(),
            };
            let outcome = play(&scenario, files, setting, options.twice);
            let seconds = clock.monotonic().since(begun).as_secs_f64();
            let name = file.file_stem().unwrap_or_default().display();
            match outcome {
                Ok(run) => {
                    checks = checks.saturating_add(run.checks);
                    struck = struck.and(run.struck);
                    let (about, versions) = (&scenario.about, run.journal.lines().len());
                    println!("{name} seed {seed}: ok: {about}: {versions} versions of objects, {seconds:.1} s");
                    if options.journal {
                        run.journal.lines().iter().for_each(|line| println!("{line}"));
                    }
                    asked.merge(run.asked_in(&name.to_string()));
                    observed.merge(run.observed);
                }
                Err(error) => {
                    failed = failed.saturating_add(1);
                    println!("{name} seed {seed}: FAILED after {seconds:.1} s\n{error:#}");
                }
            }
        }
    }
    options.write(&observed, &asked)?;
    println!(
        "{} scenarios, {} seeds each, invariants checked after {checks} writes, {} requests to the API server and {} to Ironic \
         failed on purpose, {failed} failed",
        files.len(),
        seeds.len(),
        struck.at_server,
        struck.at_ironic
    );
    anyhow::ensure!(
        !options.faults || !struck.is_none(),
        "faults that strike nobody prove nothing"
    );
    Ok(failed == 0)
}

/// Runs a script, or runs it twice and compares.
fn play(scenario: &Scenario, files: Files<'_>, setting: Setting, twice: bool) -> Result<Run> {
    let first = run::run(scenario, files, setting)?;
    if twice {
        let second = run::run(scenario, files, setting).context("the second time")?;
        if let Some(parting) = first.journal.parting(&second.journal) {
            anyhow::bail!("two runs of one seed part at {parting}");
        }
        anyhow::ensure!(
            first.asked == second.asked,
            "two runs of one seed ask differently:\n{:#?}\n{:#?}",
            first.asked,
            second.asked
        );
    }
    Ok(first)
}

fn scripts(folder: &Path) -> Result<Vec<PathBuf>> {
    let all = documents::files(folder, &["yaml"])?;
    Ok(all.into_iter().filter(|file| file.parent() == Some(folder)).collect())
}

fn read(file: &Path) -> Result<Scenario> {
    Scenario::read(&documents::text(file)?).with_context(|| format!("read {}", file.display()))
}

#[cfg(test)]
mod tests;
