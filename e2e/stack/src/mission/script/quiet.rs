//! Silence: what the managers of the release wrote in a while, by the audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, ensure};
use metal3_ledger::Log;

use crate::claims::world::World;
use crate::mission::audit::MANAGERS;
use crate::wait::until;

/// What was under way may end, in this time, and leaves silence for so long: longer than a lease outlives who died, and than
/// Ironic takes to ask each BMC for its health, which hosts tell when they hear of it first.
const SETTLES: Duration = Duration::from_secs(420);
const SETTLED: Duration = Duration::from_secs(120);
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// They are renewed, and asked for, whatever happens; nothing of anybody's is written by it.
const STEADY: [&str; 3] = ["leases", "tokenreviews", "subjectaccessreviews"];

/// What one of them asked for, how often.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    requests: u64,
    writes: BTreeMap<String, u64>,
}

/// Waits until the managers are through with what was under way; from there on, for so long, they write nothing.
pub(super) fn holds(world: &World, span: Duration) -> anyhow::Result<()> {
    let mut last = String::new();
    let settles = until(SETTLES, "the managers to be through", || {
        let heard = listen(world, SETTLED)?;
        last = written(&heard).join(", ");
        let all_are_up = heard.values().all(|heard| heard.requests > 0);
        Ok((last.is_empty() && all_are_up).then_some(()))
    });
    settles.with_context(|| last)?;
    let heard = listen(world, span)?;
    for (user, heard) in &heard {
        ensure!(heard.requests > 0, "nobody asks as {user}: its silence proves nothing");
    }
    let writes = written(&heard);
    ensure!(writes.is_empty(), "it is not quiet: {}", writes.join(", "));
    Ok(())
}

fn written(heard: &BTreeMap<&str, Heard>) -> Vec<String> {
    let each = heard.iter().flat_map(|(user, heard)| {
        let writes = heard.writes.iter();
        writes.map(move |(what, times)| format!("{user}: {what}: {times}"))
    });
    each.collect()
}

/// What was asked for in this time.
fn listen(world: &World, span: Duration) -> anyhow::Result<BTreeMap<&'static str, Heard>> {
    let mut log = File::open(world.places.log("audit")).context("opening the audit log")?;
    log.seek(SeekFrom::End(0))?;
    sleep(span);
    let mut text = String::new();
    log.read_to_string(&mut text)?;
    heard(&text)
}

/// By a part of the audit log, of which a line that is cut off at either end is left out.
fn heard(part: &str) -> anyhow::Result<BTreeMap<&'static str, Heard>> {
    let end = part.rfind('\n').unwrap_or_default();
    let whole = part.get(..end).unwrap_or_default();
    let begin = if whole.starts_with('{') {
        0
    } else {
        whole.find('\n').unwrap_or(end)
    };
    let log = Log::read(whole.get(begin..).unwrap_or_default().trim_start())?;
    let of = |user: &str| {
        let mut heard = Heard::default();
        for (target, times) in &log.of(user).asked {
            heard.requests = heard.requests.saturating_add(*times);
            if WRITES.contains(&target.verb.as_str()) && !STEADY.contains(&target.resource.as_str()) {
                heard.writes.insert(target.to_string(), *times);
            }
        }
        heard
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
    fn leases_are_heard_and_are_no_writes_and_events_are() {
        let part = ["leases", "events", "machines"];
        let part = part.iter().enumerate();
        let part: String = part
            .map(|(number, resource)| event(number, "update", resource))
            .collect();
        let part = format!("cut off}}\n{part}{{\"cut");
        let heard = heard(&part).unwrap();
        let first = &heard[MANAGERS[0].account.user];
        assert_eq!(first.requests, 3);
        assert_eq!(
            first.writes.keys().collect::<Vec<_>>(),
            ["update events", "update machines"]
        );
        assert_eq!(written(&heard).len(), 2);
        assert_eq!(heard[MANAGERS[1].account.user], Heard::default());
    }

    #[test]
    fn a_part_that_begins_with_a_line_loses_none() {
        let part = event(1, "patch", "machines");
        assert_eq!(written(&heard(&part).unwrap()).len(), 1);
    }
}
