//! One difference between a definition of ours and the Go managers', and which way it goes.

use std::fmt;

use serde_json::Value;

/// Which of the two accepts and keeps more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// Ours accepts and keeps more.
    Wider,
    /// Upstream accepts or keeps something that ours refuses or drops.
    Narrower,
    /// Neither: a default, a column, a merge rule.
    Other,
}

/// What differs, at one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    /// Where.
    pub(crate) node: Node,
    /// Which part of the node: `enum`, `pattern`, `column` and so on.
    pub(crate) aspect: String,
    /// Which way.
    pub(crate) direction: Direction,
    /// What upstream says; null where it says nothing.
    pub(crate) upstream: Value,
    /// What ours says; null where it says nothing.
    pub(crate) ours: Value,
}

/// A place in a definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    /// Kind that is defined.
    pub(crate) kind: String,
    /// Version; `None` for what all versions share.
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

    /// The difference of an aspect here.
    pub(crate) fn difference(
        &self,
        aspect: &str,
        direction: Direction,
        upstream: Option<&Value>,
        ours: Option<&Value>,
    ) -> Difference {
        Difference {
            node: self.clone(),
            aspect: aspect.to_owned(),
            direction,
            upstream: upstream.cloned().unwrap_or_default(),
            ours: ours.cloned().unwrap_or_default(),
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
            "{}: {} {}: upstream {}, ours {}",
            self.direction,
            self.node,
            self.aspect,
            shortened(&self.upstream),
            shortened(&self.ours)
        )
    }
}

/// A value on one line of bearable length.
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
