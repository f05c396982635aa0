//! `alerts`: injects faults into the simulated world while the metrics of the products are scraped, and writes what was
//! scraped as tests for `promtool test rules`: each fault raises its alerts and no others, a world without faults none.
//!
//! The series are those of the program's own registry, once a minute of simulated time, in the days without faults every
//! five minutes. An alert that no fault of the simulated world can raise (a panic, an expired certificate) is raised
//! through the registry; the table says which.

mod cases;
mod faults;
mod file;
mod scrape;
mod world;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use metal3_domain::clock::{Clock as _, SystemClock};
use metal3_domain::objectives::{Objectives, Subject};
use metal3_files::workspace;
use metal3_monitoring::{alerts::ALERTS, metrics, query};
use metal3_sandbox::world::BMC_PASSWORD;

use cases::{CASES, CLEAN, Case};
use scrape::Recording;

/// Options of the command.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folder for the test files
    folder: PathBuf,
    /// Days of the world without faults
    #[arg(long, default_value_t = 24)]
    days: u32,
    /// Only the case with this name
    #[arg(long)]
    case: Option<String>,
}

/// An objective is at least this many times the longest stay in a state without faults.
const MARGIN: u32 = 3;

/// Runs all cases and writes a file for each.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let rules = workspace::root()?.join("manifests/monitoring/rules.yaml");
    std::fs::create_dir_all(&options.folder).with_context(|| format!("create {}", options.folder.display()))?;
    let clock = SystemClock::start();
    for case in selected(options.case.as_deref())? {
        let began = clock.monotonic();
        let recording = world::play(case, options.days).with_context(|| case.name)?;
        let path = options.folder.join(format!("{}.yaml", case.name));
        let text = file::text(&rules, case, &recording);
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        println!(
            "{}: {} scrapes, {} series, {}; {:.1} s",
            case.name,
            recording.scrapes(),
            recording.series().count(),
            match case.alerts {
                [] => "no alert".to_owned(),
                alerts => alerts.join(", "),
            },
            clock.monotonic().since(began).as_secs_f64()
        );
        if case.name == CLEAN.name {
            compare_objectives(&recording)?;
        }
    }
    Ok(true)
}

/// The case with this name, or all.
fn selected(name: Option<&str>) -> Result<Vec<&'static Case>> {
    let all = CASES.iter().chain([&CLEAN]);
    let cases: Vec<_> = all.filter(|case| name.is_none_or(|name| name == case.name)).collect();
    ensure!(!cases.is_empty(), "no case {}", name.unwrap_or_default());
    Ok(cases)
}

/// States with an objective that an object of the simulated world leaves within five seconds, so that no look may see it.
const UNVISITED: [(Subject, &str); 6] = [
    (Subject::Host, "none"),
    (Subject::Host, "registering"),
    (Subject::Host, "match profile"),
    (Subject::Host, "preparing"),
    (Subject::Host, "powering off before delete"),
    (Subject::Host, "deleting"),
];

/// Prints how long objects stayed in each state without faults, and compares that with the objectives.
fn compare_objectives(recording: &Recording) -> Result<()> {
    let objectives = Objectives::default();
    for (subject, name) in [
        (Subject::Host, "metal3_host_state_oldest_seconds"),
        (Subject::Machine, "metal3_machine_state_oldest_seconds"),
    ] {
        for (state, _) in subject.states() {
            let longest = recording.longest(&format!("{name}{{state=\"{state}\"}}"));
            let Some(objective) = objectives.of(subject, state) else {
                continue;
            };
            ensure!(
                longest > 0.0 || UNVISITED.contains(&(subject, *state)),
                "{}/{state} was not visited, so that its objective is compared with nothing",
                subject.name()
            );
            println!(
                "{}/{state}: {longest} s at most, objective {} s",
                subject.name(),
                objective.as_secs()
            );
            let least = Duration::try_from_secs_f64(longest)
                .unwrap_or_default()
                .saturating_mul(MARGIN);
            ensure!(
                objective >= least,
                "the objective of {}/{state} is less than {MARGIN} times that",
                subject.name()
            );
        }
    }
    Ok(())
}

/// The metrics that rules and the comparison read.
fn scraped() -> BTreeSet<String> {
    let of_rules = ALERTS.iter().flat_map(|alert| query::metrics(alert.query));
    let ages = [
        "metal3_host_state_oldest_seconds",
        "metal3_machine_state_oldest_seconds",
    ]
    .map(str::to_owned);
    of_rules.chain(ages).collect()
}

/// What no scrape may contain: the password of the machines, and what their addresses begin with.
const SECRETS: [&str; 3] = [BMC_PASSWORD, "redfish", "10.0.0."];

/// The secrets that a scrape contains.
fn leaks(text: &str) -> Vec<&'static str> {
    SECRETS.into_iter().filter(|secret| text.contains(secret)).collect()
}

/// Complaints about metrics that are scraped and in no row, or in a row with another type or labels.
fn complaints(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, kind) in scrape::types(text) {
        let Some(row) = metrics::all().into_iter().find(|row| row.name == name) else {
            found.push(format!(
                "{name} is registered and in no row of crates/monitoring/src/metrics"
            ));
            continue;
        };
        if row.kind.name() != kind {
            found.push(format!("{name} is a {kind}, and a {} in its row", row.kind.name()));
        }
        let labels: BTreeSet<String> = row.names().flat_map(|name| scrape::labels(text, &name)).collect();
        let labels: Vec<String> = labels.into_iter().filter(|label| label != "le").collect();
        if scrape::has_series(text, &row) && labels.join(",") != row.labels {
            found.push(format!(
                "{name} has the labels {}, and {} in its row",
                labels.join(","),
                row.labels
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests;
