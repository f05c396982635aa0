//! The list of differences that are meant, each with its reason.
//!
//! An entry names one node and one aspect, exactly; there are no patterns. An entry can excuse a difference that widens
//! or that is neither, never one that narrows: the promise to whoever switches over has no exceptions.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::difference::{Difference, Direction, Node};

/// One difference that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    kind: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    path: String,
    aspect: String,
    reason: String,
}

/// What the list makes of the differences that were found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Differences nobody accounts for.
    pub(crate) unexplained: Vec<Difference>,
    /// Entries that would excuse a narrowing.
    pub(crate) forbidden: Vec<(Entry, Difference)>,
    /// Entries that match nothing.
    pub(crate) unused: Vec<Entry>,
    /// How many differences are excused.
    pub(crate) excused: usize,
}

impl Entry {
    fn node(&self) -> Node {
        Node {
            kind: self.kind.clone(),
            version: self.version.clone(),
            path: self.path.clone(),
        }
    }

    fn names(&self, difference: &Difference) -> bool {
        self.aspect == difference.aspect && self.node() == difference.node
    }

    /// Node and aspect, as reports write them.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.node(), self.aspect)
    }
}

/// Reads the list. Two entries for one node and aspect, and an entry without a reason, are errors.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>> {
    let entries: Vec<Entry> = serde_saphyr::from_str(text).context("read the list of allowed differences")?;
    for (index, entry) in entries.iter().enumerate() {
        if entry.reason.trim().is_empty() {
            bail!("{}: an entry needs a reason", entry.label());
        }
        let same = |other: &Entry| other.node() == entry.node() && other.aspect == entry.aspect;
        if entries.iter().take(index).any(same) {
            bail!("{}: the entry stands twice", entry.label());
        }
    }
    Ok(entries)
}

/// Holds the list against the differences.
pub(crate) fn judge(differences: &[Difference], entries: &[Entry]) -> Verdict {
    let mut verdict = Verdict::default();
    for difference in differences {
        match entries.iter().find(|entry| entry.names(difference)) {
            None => verdict.unexplained.push(difference.clone()),
            Some(entry) if difference.direction == Direction::Narrower => {
                verdict.forbidden.push((entry.clone(), difference.clone()));
            }
            Some(_) => verdict.excused += 1,
        }
    }
    let unused = |entry: &&Entry| !differences.iter().any(|difference| entry.names(difference));
    verdict.unused = entries.iter().filter(unused).cloned().collect();
    verdict
}

impl Verdict {
    /// Whether every difference is meant and every entry is needed.
    pub(crate) fn is_clean(&self) -> bool {
        self.unexplained.is_empty() && self.forbidden.is_empty() && self.unused.is_empty()
    }
}
