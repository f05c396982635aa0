//! `run`: runs scenarios on the simulators.
//!
//! A scenario applies objects, waits, asserts, breaks machines and restarts the products. It is independent of the
//! environment: it refers to objects, to machines by the number of their host, and to Nodes. Every write is checked
//! against the invariants. A failure shows the step, the objects it checked, and the latest events.
//!
//! A run is a function of the scenario and its seed: two runs write the same, in the same order, at the same times.
//! With `--faults` requests fail at random, by the same seed.

mod explained;
mod faults;
mod invariants;
mod journal;
mod recorder;
mod run;
mod waits;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use metal3_domain::clock::{Clock as _, SystemClock};
use metal3_scenario::{ObservedStates, RequestCounts, Scenario};

use explained::Explained;
use metal3_files::{documents, workspace};
use run::{Files, InjectedFaults, Run, RunOptions};

/// Folder of the scenarios.
const FOLDER: &str = "e2e/scenarios";

/// Options of the command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Scenarios; all of e2e/scenarios by default
    file: Vec<PathBuf>,
    /// Seed of names, identities and faults
    #[arg(long, default_value = "1")]
    seed: Vec<u64>,
    /// All seeds from 1 to this one
    #[arg(long, conflicts_with = "seed")]
    seeds: Option<u64>,
    /// Let requests of the products fail at random
    #[arg(long)]
    faults: bool,
    /// Run each twice and compare the writes
    #[arg(long)]
    twice: bool,
    /// Write the reported states of objects to this file
    #[arg(long)]
    observed: Option<PathBuf>,
    /// Write the request counts of the products to this file
    #[arg(long)]
    asked: Option<PathBuf>,
    /// Folder of published manifests, for the scenarios that apply them
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

    /// Writes the requested reports.
    fn write(&self, observed: &ObservedStates, asked: &RequestCounts) -> Result<()> {
        let texts = [(&self.observed, observed.to_string()), (&self.asked, asked.to_string())];
        for (path, text) in texts.iter().filter_map(|(path, text)| Some((path.as_ref()?, text))) {
            std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

/// Runs the scenarios, each with each seed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let folder = workspace::root()?.join(FOLDER);
    let files = if options.file.is_empty() {
        scripts(&folder)?
    } else {
        options.file.clone()
    };
    let (clock, seeds) = (SystemClock::start(), options.all_seeds());
    let (mut failed, mut checks, mut injected) = (0_usize, 0_usize, InjectedFaults::default());
    let (mut observed, mut asked, mut explained) = <(ObservedStates, RequestCounts, Explained)>::default();
    for file in &files {
        let scenario = read(file)?;
        for seed in &seeds {
            let run_options = RunOptions {
                seed: *seed,
                with_faults: options.faults,
                ..RunOptions::default()
            };
            let start = clock.monotonic();
            let files = Files {
                own: file.parent().unwrap_or(Path::new(".")),
                published: options.published.as_deref(),
            };
            let outcome = play(&scenario, files, run_options, options.twice);
            let seconds = clock.monotonic().since(start).as_secs_f64();
            let name = file.file_stem().unwrap_or_default().display();
            match outcome {
                Ok(run) => {
                    checks = checks.saturating_add(run.checks);
                    explained.add(&name.to_string(), &run.explained);
                    injected = injected.and(run.injected);
                    let (about, versions) = (&scenario.about, run.journal.lines().len());
                    println!("{name} seed {seed}: ok: {about}: {versions} object versions, {seconds:.1} s");
                    if options.journal {
                        run.journal.lines().iter().for_each(|line| println!("{line}"));
                    }
                    asked.merge(run.counts_in(&name.to_string()));
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
         failed on purpose, {failed} failed; {explained}",
        files.len(),
        seeds.len(),
        injected.at_server,
        injected.at_ironic
    );
    anyhow::ensure!(!options.faults || !injected.is_none(), "no fault was injected");
    Ok(failed == 0 && explained.is_complete())
}

/// Runs a scenario once, or twice at the same time with a comparison.
fn play(scenario: &Scenario, files: Files<'_>, options: RunOptions, twice: bool) -> Result<Run> {
    let play = || run::run(scenario, files, options);
    let (first, second) = std::thread::scope(|scope| {
        let second = twice.then(|| scope.spawn(play));
        (play(), second.map(std::thread::ScopedJoinHandle::join))
    });
    let first = first?;
    if let Some(second) = second {
        let second = second.map_err(|_| anyhow::anyhow!("the second run panicked"))?;
        let second = second.context("second run")?;
        if let Some(first_difference) = first.journal.first_difference(&second.journal) {
            anyhow::bail!("two runs of one seed differ at {first_difference}");
        }
        anyhow::ensure!(
            first.audits == second.audits,
            "two runs of one seed send different requests:\n{:#?}\n{:#?}",
            first.audits,
            second.audits
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
