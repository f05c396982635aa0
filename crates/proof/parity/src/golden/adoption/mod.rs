//! `adoption`: what the Go managers did with whole installations, as typed moments.
//!
//! A recording is a row of moments and a timeline. It is cut into stretches: as long as every host stands as it does,
//! these were the moments, and these the requests that upstream made of Ironic next. Which product replays what is not
//! decided here.
//!
//! Invariant: nothing is passed over. A file of an unknown name, a line of no form, an object that our types do not carry
//! whole, or a moment that the timeline never reaches is an error.

mod hosts;
mod losses;
mod moment;
mod replay;
mod stretches;
mod timeline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};

pub(super) use losses::losses;
use metal3_files::documents;
use moment::Moment;
pub(super) use replay::{Handover, handed_over, taken_over};
use stretches::Stretch;

/// Folder of the recordings, beside the cases.
pub(super) const FOLDER: &str = "adoption";
/// Words about the recordings.
const WORDS: &str = "README.md";
/// What the name of a timeline begins with; a side may follow where two managers were recorded.
const TIMELINE: &str = "timeline";
/// Ends of the names of a moment's files.
const OBJECTS: &str = ".yaml";
const NODES: &str = ".ironic.json";

/// One recording, seen from one manager.
#[derive(Debug)]
pub(super) struct Recording {
    /// Its folder, and its side where there are two.
    pub(super) name: String,
    /// In order.
    pub(super) stretches: Vec<Stretch>,
}

/// Every recording below a folder.
///
/// # Errors
/// The first thing that is not understood, with its file.
pub(super) fn read(folder: &Path) -> Result<Vec<Recording>> {
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in documents::files(folder, &["yaml", "json", "txt", "md"])? {
        let parent = file.parent().unwrap_or(folder).to_path_buf();
        if parent != folder {
            folders.entry(parent).or_default().push(file);
        } else if file.file_name().is_none_or(|name| name != WORDS) {
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
    /// What was read, in one line.
    pub(super) fn summary(&self) -> String {
        let moments: usize = self.stretches.iter().map(|stretch| stretch.moments.len()).sum();
        let of = |count: fn(&Stretch) -> usize| self.stretches.iter().map(count).sum::<usize>();
        let requests = || self.stretches.iter().flat_map(|stretch| &stretch.requests);
        let changes = requests().filter(|request| request.is_change() && !request.is_refused());
        let reads: u32 = self.stretches.iter().map(|stretch| stretch.reads).sum();
        format!(
            "{FOLDER}/{}: {moments} moments in {} stretches, {} acts, {} events; of {} requests {} changed Ironic; {reads} reads",
            self.name,
            self.stretches.len(),
            of(|stretch| stretch.acts.len()),
            of(|stretch| stretch.events.len()),
            requests().count(),
            changes.count(),
        )
    }
}

/// The recordings of one folder: one for each timeline.
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
    let moments = moments(&rest)?;
    let recording = |(side, file): &(String, &PathBuf)| {
        // Labels are `00-source-before`: a number, the side, what there is to see.
        let is_of_side = |moment: &&Moment| side.is_empty() || moment.label.split('-').nth(1) == Some(side);
        let own: Vec<Moment> = moments.iter().filter(is_of_side).cloned().collect();
        let entries = timeline::read(&documents::text(file)?).with_context(|| file.display().to_string())?;
        Ok(Recording {
            name: [&*name, side].join(" ").trim_end().to_owned(),
            stretches: stretches::cut(own, entries).with_context(|| file.display().to_string())?,
        })
    };
    let recordings: Vec<Recording> = timelines.iter().map(recording).collect::<Result<_>>()?;
    let placed: usize = recordings
        .iter()
        .flat_map(|recording| &recording.stretches)
        .map(|stretch| stretch.moments.len())
        .sum();
    ensure!(
        placed == moments.len(),
        "{}: a moment is of no timeline",
        folder.display()
    );
    Ok(recordings)
}

/// The moments of a folder in order. One without objects has those of the moment before it.
fn moments(files: &[PathBuf]) -> Result<Vec<Moment>> {
    let mut labels: BTreeMap<String, (Option<&Path>, Option<&Path>)> = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if let Some(label) = name.strip_suffix(NODES) {
            labels.entry(label.to_owned()).or_default().1 = Some(file);
        } else if let Some(label) = name.strip_suffix(OBJECTS) {
            labels.entry(label.to_owned()).or_default().0 = Some(file);
        } else {
            bail!("{}: neither a timeline nor a moment", file.display());
        }
    }
    let mut moments: Vec<Moment> = Vec::new();
    for (label, (objects, nodes)) in labels {
        let objects = match (objects, moments.last()) {
            (Some(file), _) => Arc::new(documents::parse(&documents::text(file)?, file)?),
            (None, Some(before)) => Arc::clone(&before.objects),
            (None, None) => bail!("{label}: the first moment has no objects"),
        };
        let nodes = nodes
            .map(|file| moment::machines(&documents::text(file)?).with_context(|| file.display().to_string()))
            .transpose()?;
        let moment = Moment { label, objects, nodes };
        moment.check()?;
        moments.push(moment);
    }
    Ok(moments)
}
