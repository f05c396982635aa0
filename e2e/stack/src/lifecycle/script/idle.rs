//! Checks from the audit log that the managers of the release write nothing for a while.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};
use metal3_ledger::Log;

use crate::claims::stack::Stack;
use crate::lifecycle::audit::MANAGERS;
use crate::wait::until;

/// Current work may end within the first duration, followed by the second one without writes: longer than a lease survives
/// its holder, and than Ironic's first health check of each BMC, which hosts report.
const IDLE_TIMEOUT: Duration = Duration::from_secs(420);
const IDLE_TIME: Duration = Duration::from_secs(120);
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// Written at any time, without effect on other objects.
const PERIODIC: [&str; 3] = ["leases", "tokenreviews", "subjectaccessreviews"];

#[derive(Debug, Default, PartialEq, Eq)]
struct ManagerRequests {
    requests: u64,
    writes: BTreeMap<String, u64>,
}

/// Waits until the managers are idle; then they must write nothing for this time.
pub(super) fn check(stack: &Stack, span: Duration) -> anyhow::Result<()> {
    let mut last = String::new();
    let settles = until(IDLE_TIMEOUT, "the managers to be idle", || {
        let requests = record(stack, IDLE_TIME)?;
        last = written(&requests).join(", ");
        let all_are_up = requests.values().all(|one| one.requests > 0);
        Ok((last.is_empty() && all_are_up).then_some(()))
    });
    settles.with_context(|| last)?;
    let requests = record(stack, span)?;
    for (user, requests) in &requests {
        ensure!(requests.requests > 0, "no requests of {user}: the check proves nothing");
    }
    let writes = written(&requests);
    ensure!(writes.is_empty(), "the managers write: {}", writes.join(", "));
    Ok(())
}

fn written(requests: &BTreeMap<&str, ManagerRequests>) -> Vec<String> {
    let each = requests.iter().flat_map(|(user, requests)| {
        let writes = requests.writes.iter();
        writes.map(move |(what, times)| format!("{user}: {what}: {times}"))
    });
    each.collect()
}

/// Records the requests during this time.
fn record(stack: &Stack, span: Duration) -> anyhow::Result<BTreeMap<&'static str, ManagerRequests>> {
    let mut log = File::open(stack.places.log("audit")).context("opening the audit log")?;
    log.seek(SeekFrom::End(0))?;
    sleep(span);
    let mut text = String::new();
    log.read_to_string(&mut text)?;
    requests_of(&text)
}

/// Reads a part of the audit log. Incomplete lines at either end are skipped.
fn requests_of(part: &str) -> anyhow::Result<BTreeMap<&'static str, ManagerRequests>> {
    let end = part.rfind('\n').unwrap_or_default();
    let whole = part.get(..end).unwrap_or_default();
    let begin = if whole.starts_with('{') {
        0
    } else {
        whole.find('\n').unwrap_or(end)
    };
    let log = Log::read(whole.get(begin..).unwrap_or_default().trim_start())?;
    let of = |user: &str| {
        let mut counts = ManagerRequests::default();
        for (target, times) in &log.counts_of(user).requests {
            counts.requests = counts.requests.saturating_add(*times);
            if WRITES.contains(&target.verb.as_str()) && !PERIODIC.contains(&target.resource.as_str()) {
                counts.writes.insert(target.to_string(), *times);
            }
        }
        counts
    };
    Ok(MANAGERS
        .iter()
        .map(|manager| (manager.account.user, of(manager.account.user)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize, verb: &str, resource: &str) -> String {
        let user = MANAGERS[0].account.user;
        format!(
            "{{\"auditID\":\"{number}\",\"verb\":\"{verb}\",\"user\":{{\"username\":\"{user}\"}},\
             \"objectRef\":{{\"resource\":\"{resource}\"}}}}\n"
        )
    }

    #[test]
    fn leases_are_requests_and_no_writes_and_events_are_writes() {
        let part = ["leases", "events", "machines"];
        let part = part.iter().enumerate();
        let part: String = part
            .map(|(number, resource)| event(number, "update", resource))
            .collect();
        let part = format!("cut off}}\n{part}{{\"cut");
        let requests = requests_of(&part).unwrap();
        let first = &requests[MANAGERS[0].account.user];
        assert_eq!(first.requests, 3);
        assert_eq!(
            first.writes.keys().collect::<Vec<_>>(),
            ["update events", "update machines"]
        );
        assert_eq!(written(&requests).len(), 2);
        assert_eq!(requests[MANAGERS[1].account.user], ManagerRequests::default());
    }

    #[test]
    fn part_that_begins_with_a_line_loses_none() {
        let part = event(1, "patch", "machines");
        assert_eq!(written(&requests_of(&part).unwrap()).len(), 1);
    }
}
