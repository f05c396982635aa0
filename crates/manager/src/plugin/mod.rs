//! The words of `kubectl metal3` about many objects: `tree`, `hosts`, `pools`, `consumers`, `timeline`, `top` and
//! `support-bundle`. They only read, with the viewer's own rights, and what may not be read is named.
//!
//! The answers are `metal3_explain`'s; this module parses, reads and prints.

mod arguments;
mod logs;
mod watch;
mod words;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use anyhow::{Context as _, Result};
use kube::Client;
use metal3_api::meta::Time;
use metal3_domain::yaml;
use metal3_explain::bundle::{self, Logs, tar};
use metal3_explain::view::{Report, View, render};
use metal3_explain::{EventLine, Snapshot, State, Unread, text};
use serde::Serialize;

use crate::output::Output;
use crate::reader::Reader;

pub use arguments::{Ask, Command, Scope, parse};
pub use words::{candidates, completion, help, help_of};

/// Whether a command of this name is performed here.
#[must_use]
pub fn is_word(name: &str) -> bool {
    words::find(name).is_some()
}

impl Command {
    /// Answers the question, and returns the state for the exit code. `print` gets the output, and while the command
    /// watches each change.
    ///
    /// # Errors
    /// When a request fails, or a file cannot be written.
    pub async fn run(
        &self,
        client: &Client,
        default: &str,
        now: impl Fn() -> Time,
        print: &mut impl FnMut(&str),
    ) -> Result<State> {
        let namespace = self.scope.namespace(default);
        let mut reader = Reader::new(client, namespace);
        match &self.ask {
            Ask::View(View::Hosts(filter)) if self.watch => {
                watch::hosts(&mut reader, filter, (namespace, self.output), now, print).await
            }
            Ask::View(View::Timeline(host, _)) => {
                let history = history(self.ironic_history.as_deref())?;
                let view = View::Timeline(host.clone(), history);
                let report = reader.ask(|snapshot| view.report(snapshot, now())).await?;
                print(&self.shown(&report, namespace, now())?);
                Ok(report.state)
            }
            Ask::View(view) => {
                let report = reader.ask(|snapshot| view.report(snapshot, now())).await?;
                print(&self.shown(&report, namespace, now())?);
                Ok(report.state)
            }
            Ask::Bundle(file) => {
                let logs = logs::read(client, namespace).await;
                let (line, state) = save(&mut reader, &logs, file, namespace, now()).await?;
                print(&line);
                Ok(state)
            }
        }
    }
}

impl Command {
    fn shown(&self, report: &Report, namespace: Option<&str>, now: Time) -> Result<String> {
        match self.output {
            Output::Text => Ok(render(report, namespace, now)),
            Output::Json | Output::Yaml => document(report, self.output),
        }
    }
}

/// The entries of the file with the history of a node.
pub(crate) fn history(file: Option<&str>) -> Result<Vec<EventLine>> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let text = std::fs::read_to_string(file).with_context(|| format!("read {file}"))?;
    metal3_explain::history::parse(&text).map_err(|why| anyhow::anyhow!("--ironic-history {file}: {why}"))
}

/// A value for programs. It does not control a terminal either.
pub(crate) fn document(value: &impl Serialize, output: Output) -> Result<String> {
    let value = serde_json::to_value(value)?;
    let shown = match output {
        Output::Yaml => yaml::text(&value),
        Output::Json | Output::Text => format!("{value:#}\n"),
    };
    Ok(text::printable_text(&shown))
}

/// Writes the archive, which only its owner can read.
async fn save(
    reader: &mut Reader,
    logs: &Logs,
    file: &str,
    namespace: Option<&str>,
    now: Time,
) -> Result<(String, State)> {
    let mut snapshot = Snapshot::default();
    let mut unread = logs.1.len();
    let mut reads = bundle::reads();
    while !reads.is_empty() {
        for read in reads {
            let answer = reader.read(&read).await;
            if answer.as_ref().is_err_and(|why| *why != Unread::NotInstalled) {
                unread += 1;
            }
            snapshot.insert(read, answer);
        }
        reads = bundle::further(&snapshot);
    }
    let files = bundle::files(&snapshot, logs, namespace, now);
    let archive = tar::archive(&files, now.get().timestamp());
    let created = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file);
    let mut created = created.with_context(|| format!("create {file}"))?;
    created.write_all(&archive).with_context(|| format!("write {file}"))?;
    let line = format!(
        "{file}: {} files, {unread} lists or logs could not be read (not-read.txt)\n",
        files.len()
    );
    Ok((line, if unread == 0 { State::Ready } else { State::Unknown }))
}
