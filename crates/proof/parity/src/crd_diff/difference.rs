//! A difference between two CRDs, and its direction.

use std::fmt;

use serde_json::Value;

/// The side that accepts and keeps more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// This project accepts and keeps more.
    Wider,
    /// Upstream accepts or keeps values that this project rejects or drops.
    Narrower,
    /// Neither: a default, a column, a merge rule.
    Other,
}

/// A difference at one node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// Node.
    pub(crate) node: Node,
    /// Aspect of the node: `enum`, `pattern`, `column` and so on.
    pub(crate) aspect: String,
    /// Direction.
    pub(crate) direction: Direction,
    /// Value of upstream; null if absent.
    pub(crate) upstream: Value,
    /// Value of this project; null if absent.
    pub(crate) project: Value,
}

/// A node of a CRD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    /// Defined kind.
    pub(crate) kind: String,
    /// Version; `None` for parts that all versions share.
    pub(crate) version: Option<String>,
    /// Dotted path; `[]` is an item of a list, `{}` a value of a map.
    pub(crate) path: String,
}

impl Node {
    /// A node below this one.
    pub(crate) fn child(&self, step: &str) -> Self {
        let separator = if self.path.is_empty() || step.starts_with(['[', '{']) {
            ""
        } else {
            "."
        };
        Self {
            path: format!("{}{separator}{step}", self.path),
            ..self.clone()
        }
    }

    /// A difference of an aspect of this node.
    pub(crate) fn difference(
        &self,
        aspect: &str,
        direction: Direction,
        upstream: Option<&Value>,
        project: Option<&Value>,
    ) -> Difference {
        Difference {
            node: self.clone(),
            aspect: aspect.to_owned(),
            direction,
            upstream: upstream.cloned().unwrap_or_default(),
            project: project.cloned().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wider => "wider",
            Self::Narrower => "narrower",
            Self::Other => "other",
        })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(version) = &self.version {
            write!(f, "/{version}")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} {}: upstream {}, project {}",
            self.direction,
            self.node,
            self.aspect,
            shortened(&self.upstream),
            shortened(&self.project)
        )
    }
}

/// A value, truncated for a report.
fn shortened(value: &Value) -> String {
    const LONGEST: usize = 160;
    if value.is_null() {
        return "nothing".to_owned();
    }
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain("...".chars()).collect()
}
