//! The stand-ins for Kamaji and BYOH beside the recordings of the real ones: what they write, and in which order.
//!
//! A user does in a simulated world what was done in a recording ([`super::script`]). Each recorded state has to be found
//! in what was written there, after the state before it: a provider's own objects all at one moment, each Cluster and
//! Metal3Cluster by itself, since those who write them look when they like. At the end all writes of a provider, and of
//! Cluster API into its Cluster, have to be the recorded ones: as many, in the same order, each with the same changes.
//!
//! Not compared, on purpose: messages, times, versions and UIDs, which are each world's own; specs of control planes and
//! tenants but for the endpoint, where the real provider spells out defaults; the content of TenantControlPlanes, of which
//! the stand-in has as much as it needs; conditions of Clusters, which are Cluster API's summaries; Machines and what
//! belongs to workers, which no provider here has to do with; what a Metal3Cluster says, since ours is another program
//! than the one that was recorded; and `kamaji/skip-patch-gate`, where a gate was open that the stand-in does not have.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};

use super::facts::{Facts, Subject};
use super::history::{Group, History};
use super::recording::Recording;
use super::script::{Phase, SCRIPTS, Script};
use super::{replay, timeline};
use crate::golden::site::play;

/// The real provider may pause for 1000 s.
const PATIENCE: Duration = Duration::from_secs(1200);
const GLANCE: Duration = Duration::from_millis(5);

/// Plays every recording; says whether nothing differs.
pub(super) fn run(folder: &Path) -> Result<bool> {
    let (mut states, mut writes, mut wrong) = (0_usize, 0_usize, 0_usize);
    for script in &SCRIPTS {
        let found = play(compare(script, &folder.join(script.folder)))?.with_context(|| script.folder.to_owned())?;
        found
            .wrong
            .iter()
            .for_each(|what| println!("{}/{}: {what}", super::FOLDER, script.folder));
        states += found.states;
        writes += found.writes;
        wrong += found.wrong.len();
    }
    let recordings = SCRIPTS.len();
    println!(
        "{}: {recordings} recordings played by stand-ins, {states} states and {writes} writes compared, {wrong} wrong",
        super::FOLDER
    );
    ensure!(states > 0 && writes > 0, "nothing was compared");
    Ok(wrong == 0)
}

#[derive(Default)]
struct Found {
    states: usize,
    writes: usize,
    wrong: Vec<String>,
}

async fn compare(script: &Script, folder: &Path) -> Result<Found> {
    let recording = Recording::read(folder)?;
    let world = replay::world()?;
    let history = History::of(&world);
    let (mut found, mut since) = (Found::default(), BTreeMap::new());
    for phase in script.phases {
        let begun = history.count();
        for act in phase.acts {
            replay::act(&world, &recording, *act)
                .await
                .with_context(|| format!("{act:?}"))?;
        }
        since.values_mut().for_each(|place| *place = begun.max(*place));
        let differs = states(&recording, &history, phase, (&mut since, begun)).await?;
        found.states += phase.states.len();
        if !differs.is_empty() {
            // What follows would differ for the same reason.
            found.wrong = differs;
            return Ok(found);
        }
        sleep(Duration::from_secs(phase.looks_on.into())).await;
    }
    let last = script.phases.last().context("a script without phases")?;
    let last = (*last.states.last().context("a script without a state")?, last.looks_on);
    let recorded = timeline::read(&recording.folder, last, &recording.names)?;
    found.writes = recorded.values().map(Vec::len).sum();
    found.wrong = differing(&recorded, &history.writes());
    Ok(found)
}

/// Waits until each state of a phase was there, one after the other; says what differs where one never was.
async fn states(
    recording: &Recording,
    history: &History,
    phase: &Phase,
    (since, floor): (&mut BTreeMap<Group, usize>, usize),
) -> Result<Vec<String>> {
    let end = Instant::now() + PATIENCE;
    for state in phase.states {
        let recorded = recording.facts(state)?;
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
                let said = missing
                    .iter()
                    .map(|group| difference(&group.of(&recorded), &group.of(&now)));
                return Ok(said.map(|what| format!("state {state} never was: {what}")).collect());
            }
            sleep(GLANCE).await;
        }
        for group in history.groups(&recorded) {
            let from = since.get(&group).copied().unwrap_or(floor);
            if let Some(place) = history.find(&group, &recorded, from) {
                since.insert(group, place);
            }
        }
    }
    Ok(Vec::new())
}

/// The groups that were not yet as they were recorded.
fn missing(
    history: &History,
    recorded: &BTreeMap<Subject, Facts>,
    since: &BTreeMap<Group, usize>,
    floor: usize,
) -> Vec<Group> {
    let groups = history.groups(recorded).into_iter();
    groups
        .filter(|group| {
            let from = since.get(group).copied().unwrap_or(floor);
            history.find(group, recorded, from).is_none()
        })
        .collect()
}

/// What differs between a recorded state and how things are.
fn difference(recorded: &BTreeMap<Subject, Facts>, now: &BTreeMap<Subject, Facts>) -> String {
    let mut all = Vec::new();
    for subject in recorded
        .keys()
        .chain(now.keys().filter(|subject| !recorded.contains_key(*subject)))
    {
        let label = format!("{} {}", subject.kind, subject.name);
        match (recorded.get(subject), now.get(subject)) {
            (Some(_), None) => all.push(format!("{label} is not there")),
            (None, Some(_)) => all.push(format!("{label} is there")),
            (Some(recorded), Some(now)) => {
                let mut paths: Vec<&String> = recorded.keys().chain(now.keys()).collect();
                paths.sort_unstable();
                paths.dedup();
                let differing = paths.into_iter().filter(|path| recorded.get(*path) != now.get(*path));
                all.extend(differing.map(|path| {
                    let said = |of: &Facts| of.get(path).cloned().unwrap_or_default();
                    format!("{label}: {path} is {:?} instead of {:?}", said(now), said(recorded))
                }));
            }
            (None, None) => {}
        }
    }
    if all.is_empty() {
        "all of it is so now, but was not in this order".to_owned()
    } else {
        all.join(", ")
    }
}

/// Where the writes of the two worlds part.
fn differing(recorded: &timeline::Writes, played: &timeline::Writes) -> Vec<String> {
    let mut wrong = Vec::new();
    for subject in recorded
        .keys()
        .chain(played.keys().filter(|subject| !recorded.contains_key(*subject)))
    {
        let of = |writes: &timeline::Writes| writes.get(subject).cloned().unwrap_or_default();
        let (recorded, played) = (of(recorded), of(played));
        let longest = recorded.len().max(played.len());
        let place = (0..longest).find(|number| recorded.get(*number) != played.get(*number));
        if let Some(number) = place {
            wrong.push(format!(
                "{} {}: write {} is {:?} instead of {:?}",
                subject.kind,
                subject.name,
                number + 1,
                played.get(number),
                recorded.get(number)
            ));
        }
    }
    wrong
}
