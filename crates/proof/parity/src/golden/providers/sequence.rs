//! Compares the stand-ins for Kamaji and BYOH with recordings of the real ones: writes and their order.
//!
//! The user actions of a recording ([`super::script`]) are repeated on simulators. Each recorded state must occur, in
//! order: objects of the provider all at one moment, each Cluster and Metal3Cluster separately, because their writers
//! are independent. Finally, all writes of a provider, and of Cluster API to its Cluster, must equal the recorded ones
//! in number, order and content.
//!
//! Not compared: messages, times, versions and UIDs; specs of control planes and tenants except the endpoint, where the
//! real provider sets defaults; content of TenantControlPlanes; conditions of Clusters; Machines and worker objects;
//! the status of Metal3Clusters, which this project writes differently; and `kamaji/skip-patch-gate`, a feature gate
//! that the stand-in lacks.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};

use super::fields::{Fields, ObjectId};
use super::history::{History, ObjectGroup};
use super::recording::Recording;
use super::script::{Phase, SCRIPTS, Script};
use super::{replay, timeline};
use crate::golden::server::run_paused;

/// The backoff of the real provider is up to 1000 s.
const TIMEOUT: Duration = Duration::from_secs(1200);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Replays every recording; returns whether there is no difference.
pub(super) fn run(folder: &Path) -> Result<bool> {
    let (mut states, mut writes, mut errors) = (0_usize, 0_usize, 0_usize);
    for script in &SCRIPTS {
        let comparison =
            run_paused(compare(script, &folder.join(script.folder)))?.with_context(|| script.folder.to_owned())?;
        comparison
            .errors
            .iter()
            .for_each(|what| println!("{}/{}: {what}", super::FOLDER, script.folder));
        states += comparison.states;
        writes += comparison.writes;
        errors += comparison.errors.len();
    }
    let recordings = SCRIPTS.len();
    println!(
        "{}: {recordings} recordings played by stand-ins, {states} states and {writes} writes compared, {errors} wrong",
        super::FOLDER
    );
    ensure!(states > 0 && writes > 0, "nothing was compared");
    Ok(errors == 0)
}

#[derive(Default)]
struct Comparison {
    states: usize,
    writes: usize,
    errors: Vec<String>,
}

async fn compare(script: &Script, folder: &Path) -> Result<Comparison> {
    let recording = Recording::read(folder)?;
    let world = replay::world()?;
    let history = History::of(&world);
    let (mut comparison, mut since) = (Comparison::default(), BTreeMap::new());
    for phase in script.phases {
        let first = history.count();
        for action in phase.actions {
            replay::action(&world, &recording, *action)
                .await
                .with_context(|| format!("{action:?}"))?;
        }
        since.values_mut().for_each(|position| *position = first.max(*position));
        let differs = states(&recording, &history, phase, (&mut since, first)).await?;
        comparison.states += phase.states.len();
        if !differs.is_empty() {
            // Later differences would have the same cause.
            comparison.errors = differs;
            return Ok(comparison);
        }
        sleep(Duration::from_secs(phase.observe_seconds.into())).await;
    }
    let last = script.phases.last().context("a script without phases")?;
    let last = (
        *last.states.last().context("a script without a state")?,
        last.observe_seconds,
    );
    let recorded = timeline::read(&recording.folder, last, &recording.placeholders)?;
    comparison.writes = recorded.values().map(Vec::len).sum();
    comparison.errors = write_differences(&recorded, &history.writes());
    Ok(comparison)
}

/// Waits for each state of a phase in order; returns the differences of a state that never occurs.
async fn states(
    recording: &Recording,
    history: &History,
    phase: &Phase,
    (since, floor): (&mut BTreeMap<ObjectGroup, usize>, usize),
) -> Result<Vec<String>> {
    let end = Instant::now() + TIMEOUT;
    for state in phase.states {
        let recorded = recording.fields(state)?;
        let mut known = None;
        loop {
            let count = history.count();
            if known != Some(count) {
                known = Some(count);
                let missing = missing(history, &recorded, since, floor);
                if missing.is_empty() {
                    break;
                }
            }
            if Instant::now() > end {
                let now = history.now();
                let missing = missing(history, &recorded, since, floor);
                let differences = missing
                    .iter()
                    .map(|group| difference(&group.of(&recorded), &group.of(&now)));
                return Ok(differences
                    .map(|what| format!("state {state} never occurred: {what}"))
                    .collect());
            }
            sleep(POLL_INTERVAL).await;
        }
        for group in history.groups(&recorded) {
            let from = since.get(&group).copied().unwrap_or(floor);
            if let Some(position) = history.find(&group, &recorded, from) {
                since.insert(group, position);
            }
        }
    }
    Ok(Vec::new())
}

/// Groups that did not reach the recorded state yet.
fn missing(
    history: &History,
    recorded: &BTreeMap<ObjectId, Fields>,
    since: &BTreeMap<ObjectGroup, usize>,
    floor: usize,
) -> Vec<ObjectGroup> {
    let groups = history.groups(recorded).into_iter();
    groups
        .filter(|group| {
            let from = since.get(group).copied().unwrap_or(floor);
            history.find(group, recorded, from).is_none()
        })
        .collect()
}

/// Differences between a recorded and the current state.
fn difference(recorded: &BTreeMap<ObjectId, Fields>, now: &BTreeMap<ObjectId, Fields>) -> String {
    let mut all = Vec::new();
    for id in recorded
        .keys()
        .chain(now.keys().filter(|id| !recorded.contains_key(*id)))
    {
        let label = format!("{} {}", id.kind, id.name);
        match (recorded.get(id), now.get(id)) {
            (Some(_), None) => all.push(format!("{label} does not exist")),
            (None, Some(_)) => all.push(format!("{label} exists")),
            (Some(recorded), Some(now)) => {
                let mut paths: Vec<&String> = recorded.keys().chain(now.keys()).collect();
                paths.sort_unstable();
                paths.dedup();
                let write_differences = paths.into_iter().filter(|path| recorded.get(*path) != now.get(*path));
                all.extend(write_differences.map(|path| {
                    let value_at = |of: &Fields| of.get(path).cloned().unwrap_or_default();
                    format!(
                        "{label}: {path} is {:?} instead of {:?}",
                        value_at(now),
                        value_at(recorded)
                    )
                }));
            }
            (None, None) => {}
        }
    }
    if all.is_empty() {
        "the state occurs, but not in this order".to_owned()
    } else {
        all.join(", ")
    }
}

/// The first different write of each object.
fn write_differences(recorded: &timeline::Writes, played: &timeline::Writes) -> Vec<String> {
    let mut errors = Vec::new();
    for id in recorded
        .keys()
        .chain(played.keys().filter(|id| !recorded.contains_key(*id)))
    {
        let of = |writes: &timeline::Writes| writes.get(id).cloned().unwrap_or_default();
        let (recorded, played) = (of(recorded), of(played));
        let longest = recorded.len().max(played.len());
        let position = (0..longest).find(|number| recorded.get(*number) != played.get(*number));
        if let Some(number) = position {
            errors.push(format!(
                "{} {}: write {} is {:?} instead of {:?}",
                id.kind,
                id.name,
                number + 1,
                played.get(number),
                recorded.get(number)
            ));
        }
    }
    errors
}
