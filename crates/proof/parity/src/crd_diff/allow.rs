//! The list of deliberate differences, each with its reason.
//!
//! An entry names one node and one aspect, without patterns. It can excuse a difference that is wider or neither, never
//! a narrower one.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::difference::{Difference, Direction, Node};

/// One deliberate difference.
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

/// Evaluation of the differences by the list.
#[derive(Debug, Default)]
pub(crate) struct Evaluation {
    /// Differences without an entry.
    pub(crate) unexplained: Vec<Difference>,
    /// Entries for narrower differences.
    pub(crate) forbidden: Vec<(Entry, Difference)>,
    /// Entries without a difference.
    pub(crate) unused: Vec<Entry>,
    /// Number of excused differences.
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

    /// Node and aspect, as in reports.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.node(), self.aspect)
    }
}

/// Parses the list. Duplicate entries and entries without a reason are errors.
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

/// Applies the list to the differences.
pub(crate) fn evaluate(differences: &[Difference], entries: &[Entry]) -> Evaluation {
    let mut evaluation = Evaluation::default();
    for difference in differences {
        match entries.iter().find(|entry| entry.names(difference)) {
            None => evaluation.unexplained.push(difference.clone()),
            Some(entry) if difference.direction == Direction::Narrower => {
                evaluation.forbidden.push((entry.clone(), difference.clone()));
            }
            Some(_) => evaluation.excused += 1,
        }
    }
    let unused = |entry: &&Entry| !differences.iter().any(|difference| entry.names(difference));
    evaluation.unused = entries.iter().filter(unused).cloned().collect();
    evaluation
}

impl Evaluation {
    /// Whether every difference is deliberate and every entry is used.
    pub(crate) fn is_clean(&self) -> bool {
        self.unexplained.is_empty() && self.forbidden.is_empty() && self.unused.is_empty()
    }
}
