//! What a run leaves to read: its steps with their seconds, and who asked whom for how much.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use metal3_ledger::Log;

use super::Scene;
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
    for line in log.lines() {
        if let Some((by_login, what)) = request(line) {
            *counts.entry((by_login, what)).or_default() += 1;
        }
    }
    let mut text = "## Requests to Ironic\n\n| By | Request | Number |\n| --- | --- | ---: |\n".to_owned();
    for ((by_login, what), number) in counts {
        let by = if by_login { "login" } else { "agents" };
        let _ = writeln!(text, "| {by} | {what} | {number} |");
    }
    text
}

/// `... INFO ironic.api [None req-... admin - - - - -] 10.244.0.3 - GET /v1/nodes?x=y - 200 (1.2ms)`
fn request(line: &str) -> Option<(bool, String)> {
    let (_, rest) = line.split_once(" INFO ironic.api [")?;
    let (context, rest) = rest.split_once("] ")?;
    let mut words = rest.split(' ').skip(2);
    let (method, path) = (words.next()?, words.next()?);
    let status = words.nth(1)?;
    let path = path.split('?').next()?;
    let is_name = |part: &&str| part.contains('-') && part.len() > 30 || part.contains('~');
    let parts = path.split('/').map(|part| if is_name(&part) { "_" } else { part });
    let parts: Vec<&str> = parts.collect();
    Some((
        context.contains(" admin "),
        format!("{method} {} {status}", parts.join("/")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_by_method_path_and_status() {
        let line = "2026-11-22 02:01:29.877 643 INFO ironic.api [None req-12618995-4cbd-4bf5-9036-efddd617ad1b admin - - - \
                    - -] 10.244.0.3 - PUT /v1/nodes/306475c3-5c2c-4ba3-bbf0-2ab39df89169/states/power?x=1 - 202 (102.88ms)";
        let wanted = Some((true, "PUT /v1/nodes/_/states/power 202".to_owned()));
        assert_eq!(request(line), wanted);
        let agent = line.replace(" admin ", " - ");
        assert!(matches!(request(&agent), Some((false, _))));
        assert_eq!(request("2026-11-22 INFO ironic.conductor [x] y"), None);
    }
}
