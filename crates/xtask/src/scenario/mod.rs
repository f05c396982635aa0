//! `scenario`: readable scripts of what happens to clusters, run on the simulated world.
//!
//! A script applies objects, waits, asserts, breaks things and restarts the products. It does not know what world it runs
//! on: it sees objects, machines by the number of their host, and Nodes. A failure shows the step, the objects it looked
//! at, and what happened last. What is ready at one instant takes turns as the runtime draws them, so two runs of one seed
//! may differ in what follows.

mod journal;
mod run;
mod script;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metal3_domain::clock::{Clock as _, SystemClock};

use crate::{documents, workspace};
use script::Scenario;

/// Where the scripts are.
const FOLDER: &str = "e2e/scenarios";

/// Runs the scripts, each with each seed; all of them where none is named.
pub(crate) fn run(files: &[PathBuf], seeds: &[u64], show: bool) -> Result<bool> {
    let folder = workspace::root()?.join(FOLDER);
    let files = if files.is_empty() {
        scripts(&folder)?
    } else {
        files.to_vec()
    };
    let (clock, mut failed) = (SystemClock::start(), 0_usize);
    for file in &files {
        let scenario = read(file)?;
        for seed in seeds {
            let begun = clock.monotonic();
            let outcome = run::run(&scenario, &folder, *seed);
            let seconds = clock.monotonic().since(begun).as_secs_f64();
            let name = file.file_stem().unwrap_or_default().display();
            match outcome {
                Ok(journal) => {
                    println!(
                        "{name} seed {seed}: ok: {}: {} versions of objects, {seconds:.1} s",
                        scenario.about,
                        journal.len()
                    );
                    if show {
                        println!("{}", journal.join("\n"));
                    }
                }
                Err(error) => {
                    failed = failed.saturating_add(1);
                    println!("{name} seed {seed}: FAILED after {seconds:.1} s\n{error:#}");
                }
            }
        }
    }
    println!("{} scenarios, {} seeds each, {failed} failed", files.len(), seeds.len());
    Ok(failed == 0)
}

fn scripts(folder: &Path) -> Result<Vec<PathBuf>> {
    let all = documents::files(folder, &["yaml"])?;
    Ok(all.into_iter().filter(|file| file.parent() == Some(folder)).collect())
}

fn read(file: &Path) -> Result<Scenario> {
    serde_saphyr::from_str(&documents::text(file)?).with_context(|| format!("read {}", file.display()))
}

#[cfg(test)]
mod tests;
