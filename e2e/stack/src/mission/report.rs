//! What a run leaves to read: its steps with their seconds, and who asked whom for how much.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use metal3_ledger::Log;

use super::{Scene, requests};
use crate::record::Stopwatch;

pub(super) struct Report {
    watch: Stopwatch,
    steps: Vec<Step>,
}

struct Step {
    what: String,
    figures: String,
    /// Milliseconds from the begin to its end.
    end: u64,
}

impl Report {
    pub(super) fn begin() -> Self {
        Self {
            watch: Stopwatch::start(),
            steps: Vec::new(),
        }
    }

    /// Notes that a step is over.
    pub(super) fn step(&mut self, what: &str, figures: &str) {
        self.steps.push(Step {
            what: what.to_owned(),
            figures: figures.to_owned(),
            end: self.watch.millis(),
        });
    }

    pub(super) fn write(&self, scene: &Scene<'_>, path: &Path) -> anyhow::Result<()> {
        let audit = fs::read_to_string(scene.world.places.log("audit"))?;
        let ironic = fs::read_to_string(&scene.fleet.log)?;
        let text = format!(
            "{}\n{}\n{}",
            self.steps(),
            of_users(&Log::read(&audit)?),
            of_ironic(&ironic)
        );
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    fn steps(&self) -> String {
        let mut text = "# The mission\n\n| Step | s | Figures |\n| --- | ---: | --- |\n".to_owned();
        let mut begin = 0;
        for Step { what, figures, end } in &self.steps {
            let tenths = end.saturating_sub(begin) / 100;
            let (whole, rest) = (tenths / 10, tenths % 10);
            text += &format!(
                "| {what} | {whole}.{rest} | {} |\n",
                figures.lines().next().unwrap_or_default()
            );
            begin = *end;
        }
        text
    }
}

/// Requests of each user to the management cluster, by the audit log.
fn of_users(log: &Log) -> String {
    let mut text =
        "## Requests to the management cluster\n\n| User | Requests | Forbidden |\n| --- | ---: | ---: |\n".to_owned();
    for user in log.users() {
        let tally = log.of(user);
        let asked: u64 = tally.asked.values().sum();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {user} | {asked} | {} |", tally.forbidden.len());
    }
    text
}

/// Requests to Ironic, by method and path without names, and by whether they bore its login.
fn of_ironic(log: &str) -> String {
    let mut counts: BTreeMap<(bool, String), usize> = BTreeMap::new();
    for request in requests::of(log) {
        *counts.entry((request.by_login, request.to_string())).or_default() += 1;
    }
    let mut text = "## Requests to Ironic\n\n| By | Request | Number |\n| --- | --- | ---: |\n".to_owned();
    for ((by_login, what), number) in counts {
        let by = if by_login { "login" } else { "agents" };
        let _ = writeln!(text, "| {by} | {what} | {number} |");
    }
    text
}
