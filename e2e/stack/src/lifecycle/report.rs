//! The report of a run: its steps with seconds, and the numbers of requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use metal3_ledger::Log;

use super::cluster::DESCRIBED;
use super::env::TestEnv;
use super::phases::{self, Phase};
use super::plugin::SHOWN;
use super::requests;
use crate::wait::Stopwatch;

pub(super) struct Report {
    watch: Stopwatch,
    steps: Vec<Step>,
}

struct Step {
    what: String,
    figures: String,
    /// Milliseconds from the start of the run to the end of the step.
    end: u64,
    /// The lengths of the logs of API server and Ironic at the end of the step.
    logs: [usize; 2],
}

impl Report {
    pub(super) fn begin() -> Self {
        Self {
            watch: Stopwatch::start(),
            steps: Vec::new(),
        }
    }

    /// Records the end of a step.
    pub(super) fn step(&mut self, env: &TestEnv<'_>, what: &str, figures: &str) {
        // A log that cannot be read fails at the end of the run.
        let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len().try_into().unwrap_or(usize::MAX));
        self.steps.push(Step {
            what: what.to_owned(),
            figures: figures.to_owned(),
            end: self.watch.millis(),
            logs: [length(&env.stack.places.log("audit")), length(&env.fleet.log)],
        });
    }

    pub(super) fn write(&self, env: &TestEnv<'_>, path: &Path) -> anyhow::Result<()> {
        let audit = fs::read_to_string(env.stack.places.log("audit"))?;
        let ironic = fs::read_to_string(&env.fleet.log)?;
        let described = fs::read_to_string(env.stack.places.state_file(DESCRIBED)).unwrap_or_default();
        let shown = fs::read_to_string(env.stack.places.state_file(SHOWN)).unwrap_or_default();
        // `make plugin-outputs-real` copies the last part.
        let text = format!(
            "{}\n{}\n## The cluster when it was last settled\n\n```\n{described}```\n\n{}\n{}\n## kubectl metal3\n\n```text\n{shown}```\n",
            self.steps(),
            phases::table(&self.phases(&audit, &ironic)?),
            of_users(&Log::read(&audit)?),
            of_ironic(&ironic)
        );
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// The requests of each step except the first, which includes the installation.
    fn phases(&self, audit: &str, ironic: &str) -> anyhow::Result<Vec<Phase>> {
        let pairs = self.steps.iter().zip(self.steps.iter().skip(1));
        let phase = |(before, step): (&Step, &Step)| {
            let part = |text: &str, at: usize| {
                let (begin, end) = (before.logs.get(at).copied(), step.logs.get(at).copied());
                text.get(begin.unwrap_or_default()..end.unwrap_or_default())
                    .unwrap_or_default()
                    .to_owned()
            };
            Phase::read(&step.what, &part(audit, 0), &part(ironic, 1))
        };
        pairs.map(phase).collect()
    }

    fn steps(&self) -> String {
        let mut text = "# Life-cycle suite\n\n| Step | s | Figures |\n| --- | ---: | --- |\n".to_owned();
        let mut begin = 0;
        for Step { what, figures, end, .. } in &self.steps {
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

/// Requests of each user to the management cluster, from the audit log.
fn of_users(log: &Log) -> String {
    let mut text =
        "## Requests to the management cluster\n\n| User | Requests | Forbidden |\n| --- | ---: | ---: |\n".to_owned();
    for user in log.users() {
        let user_counts = log.counts_of(user);
        let total: u64 = user_counts.requests.values().sum();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {user} | {total} | {} |", user_counts.forbidden.len());
    }
    text
}

/// Requests to Ironic, by method, path without names, and whether they had a login.
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
