//! `adoption`: recordings of whole installations of the Go managers.
//!
//! A recording is a sequence of snapshots and a timeline. It is split into intervals of constant host states, each with
//! its snapshots and the requests of upstream to Ironic.
//!
//! Invariant: nothing is skipped. An unknown file, an unparsable line, an object that the types do not represent
//! completely, or a snapshot without an interval is an error.

mod hosts;
mod intervals;
mod losses;
mod replay;
mod snapshot;
mod timeline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};

use intervals::Interval;
pub(super) use losses::losses;
use metal3_files::documents;
pub(super) use replay::{Takeover, replay_recording, take_over};
use snapshot::Snapshot;

/// Folder of the recordings.
pub(super) const FOLDER: &str = "adoption";
/// Description of the recordings.
const README: &str = "README.md";
/// Prefix of timeline files; a suffix names the manager when two were recorded.
const TIMELINE: &str = "timeline";
/// Suffixes of the files of a snapshot.
const OBJECTS: &str = ".yaml";
const NODES: &str = ".ironic.json";

/// A recording from the view of one manager.
#[derive(Debug)]
pub(super) struct Recording {
    /// Its folder, and the manager when there are two.
    pub(super) name: String,
    /// In order.
    pub(super) intervals: Vec<Interval>,
}

/// Reads every recording below a folder.
///
/// # Errors
/// The first unknown or unparsable content, with its file.
pub(super) fn read(folder: &Path) -> Result<Vec<Recording>> {
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in documents::files(folder, &["yaml", "json", "txt", "md"])? {
        let parent = file.parent().unwrap_or(folder).to_path_buf();
        if parent != folder {
            folders.entry(parent).or_default().push(file);
        } else if file.file_name().is_none_or(|name| name != README) {
            bail!("{}: belongs to no recording", file.display());
        }
    }
    let recordings: Result<Vec<_>> = folders
        .iter()
        .map(|(folder, files)| recordings(folder, files))
        .collect();
    Ok(recordings?.into_iter().flatten().collect())
}

impl Recording {
    /// Summary in one line.
    pub(super) fn summary(&self) -> String {
        let snapshots: usize = self.intervals.iter().map(|interval| interval.snapshots.len()).sum();
        let of = |count: fn(&Interval) -> usize| self.intervals.iter().map(count).sum::<usize>();
        let requests = || self.intervals.iter().flat_map(|interval| &interval.requests);
        let changes = requests().filter(|request| request.is_change() && !request.is_refused());
        let reads: u32 = self.intervals.iter().map(|interval| interval.reads).sum();
        format!(
            "{FOLDER}/{}: {snapshots} moments in {} stretches, {} acts, {} events; of {} requests {} changed Ironic; {reads} reads",
            self.name,
            self.intervals.len(),
            of(|interval| interval.user_actions.len()),
            of(|interval| interval.events.len()),
            requests().count(),
            changes.count(),
        )
    }
}

/// Recordings of one folder, one per timeline.
fn recordings(folder: &Path, files: &[PathBuf]) -> Result<Vec<Recording>> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let (mut timelines, mut rest) = (Vec::new(), Vec::new());
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match stem.strip_prefix(TIMELINE) {
            Some(side) => timelines.push((side.trim_start_matches('-').to_owned(), file)),
            None => rest.push(file.clone()),
        }
    }
    ensure!(!timelines.is_empty(), "{}: has no timeline", folder.display());
    let snapshots = snapshots(&rest)?;
    let recording = |(side, file): &(String, &PathBuf)| {
        // Labels are `00-source-before`: number, manager, description.
        let is_of_side = |snapshot: &&Snapshot| side.is_empty() || snapshot.label.split('-').nth(1) == Some(side);
        let own: Vec<Snapshot> = snapshots.iter().filter(is_of_side).cloned().collect();
        let entries = timeline::read(&documents::text(file)?).with_context(|| file.display().to_string())?;
        Ok(Recording {
            name: [&*name, side].join(" ").trim_end().to_owned(),
            intervals: intervals::split(own, entries).with_context(|| file.display().to_string())?,
        })
    };
    let recordings: Vec<Recording> = timelines.iter().map(recording).collect::<Result<_>>()?;
    let placed: usize = recordings
        .iter()
        .flat_map(|recording| &recording.intervals)
        .map(|interval| interval.snapshots.len())
        .sum();
    ensure!(
        placed == snapshots.len(),
        "{}: a snapshot belongs to no timeline",
        folder.display()
    );
    Ok(recordings)
}

/// Snapshots of a folder in order. One without objects has those of the previous one.
fn snapshots(files: &[PathBuf]) -> Result<Vec<Snapshot>> {
    let mut labels: BTreeMap<String, (Option<&Path>, Option<&Path>)> = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if let Some(label) = name.strip_suffix(NODES) {
            labels.entry(label.to_owned()).or_default().1 = Some(file);
        } else if let Some(label) = name.strip_suffix(OBJECTS) {
            labels.entry(label.to_owned()).or_default().0 = Some(file);
        } else {
            bail!("{}: neither a timeline nor a snapshot", file.display());
        }
    }
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for (label, (objects, nodes)) in labels {
        let objects = match (objects, snapshots.last()) {
            (Some(file), _) => Arc::new(documents::parse(&documents::text(file)?, file)?),
            (None, Some(before)) => Arc::clone(&before.objects),
            (None, None) => bail!("{label}: the first snapshot has no objects"),
        };
        let nodes = nodes
            .map(|file| snapshot::machines(&documents::text(file)?).with_context(|| file.display().to_string()))
            .transpose()?;
        let snapshot = Snapshot { label, objects, nodes };
        snapshot.check()?;
        snapshots.push(snapshot);
    }
    Ok(snapshots)
}
