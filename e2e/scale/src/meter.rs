//! What a phase costs: the manager's requests from the audit log, and the processes of the stack.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use metal3_ledger::{Parts, Target, UserCounts};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::outcome::{Api, Cost, Counts};
use crate::processes::Processes;
use crate::tail::Tail;

/// Not for one host: the kinds of events, leader election, and the search for another manager.
const SHARED: [&str; 4] = ["events", "leases", "deployments", "customresourcedefinitions"];
const INTERVAL: Duration = Duration::from_secs(1);
/// A manager without requests for this long has finished.
const QUIET: Duration = Duration::from_secs(3);
/// All hosts have reached their target: what goes on for so long goes on for ever.
const RESTLESS: Duration = Duration::from_mins(10);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Meter {
    user: Arc<str>,
    state: Arc<Mutex<State>>,
}

struct State {
    tail: Tail,
    parts: Parts,
    counts: UserCounts,
    processes: Processes,
}

impl Meter {
    /// Counts the requests of this user.
    pub(crate) fn new(audit: PathBuf, user: &str) -> Self {
        let state = State {
            tail: Tail::new(audit),
            parts: Parts::default(),
            counts: UserCounts::default(),
            processes: Processes::default(),
        };
        Self {
            user: user.into(),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Samples until it is dropped, so that the log is never much to read and no process is missed.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        loop {
            self.sample()?;
            sleep(INTERVAL).await;
        }
    }

    fn sample(&self) -> anyhow::Result<()> {
        let mut state = self.state.lock();
        let lines = state.tail.lines().context("reading the audit log")?;
        let counts = state.parts.read(&lines)?.counts_of(&self.user);
        state.counts.add(counts);
        state.processes.sample();
        Ok(())
    }

    /// Begins a phase.
    pub(crate) fn begin(&self) -> anyhow::Result<()> {
        self.sample()?;
        let mut state = self.state.lock();
        state.counts = UserCounts::default();
        state.processes.begin();
        Ok(())
    }

    /// What the phase cost so far.
    pub(crate) fn read(&self) -> anyhow::Result<(Api, std::collections::BTreeMap<String, Cost>)> {
        self.sample()?;
        let state = self.state.lock();
        Ok((api(&state.counts), state.processes.costs()))
    }

    /// Waits until the manager sends no requests for hosts, and no lists.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        let (mut before, begin) = (None, Instant::now());
        loop {
            ensure!(
                begin.elapsed() < RESTLESS,
                "the manager has not come to rest for {} s: {before:?} writes, reads and lists in this phase",
                RESTLESS.as_secs()
            );
            let (api, _) = self.read()?;
            let lists: u64 = api.lists().map(|(_, number)| number).sum();
            let now = (Api::total(&api.writes), Api::total(&api.reads), lists);
            if before == Some(now) {
                return Ok(());
            }
            before = Some(now);
            sleep(QUIET).await;
        }
    }
}

fn is_shared(target: &Target) -> bool {
    ["list", "watch"].contains(&target.verb.as_str()) || SHARED.contains(&target.resource.as_str())
}

fn api(counts: &UserCounts) -> Api {
    let (mut writes, mut reads, mut shared) = (Counts::new(), Counts::new(), Counts::new());
    for (target, number) in &counts.requests {
        let into = match target.verb.as_str() {
            _ if is_shared(target) => &mut shared,
            "get" => &mut reads,
            _ => &mut writes,
        };
        into.insert(format!("{} {}", target.verb, target.resource), *number);
    }
    let of_hosts = |counts: &std::collections::BTreeMap<Target, u64>| {
        let of_hosts = counts.iter().filter(|(target, _)| !is_shared(target));
        of_hosts.map(|(_, number)| number).sum()
    };
    Api {
        writes,
        reads,
        shared,
        conflicts: of_hosts(&counts.conflicts),
        not_found: of_hosts(&counts.not_found),
        forbidden: counts.forbidden.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_not_for_a_host_are_counted_apart() {
        let target = |verb: &str, resource: &str| Target {
            group: String::new(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
        };
        let mut counts = UserCounts::default();
        for (verb, resource) in [
            ("patch", "baremetalhosts/status"),
            ("get", "secrets"),
            ("list", "secrets"),
            ("update", "leases"),
            ("create", "events"),
        ] {
            counts.requests.insert(target(verb, resource), 2);
            counts.not_found.insert(target(verb, resource), 1);
        }
        let api = api(&counts);
        assert_eq!(api.writes, [("patch baremetalhosts/status".to_owned(), 2)].into());
        assert_eq!(api.reads, [("get secrets".to_owned(), 2)].into());
        assert_eq!((api.shared.len(), api.not_found), (3, 2));
    }
}
