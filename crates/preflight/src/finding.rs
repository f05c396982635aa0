//! A finding, and what it means for the switch.

use std::fmt;

use serde::Serialize;

/// Whether to switch now. The worst of all findings counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It is treated otherwise, and nothing has to be done before.
    Go,
    /// Nothing speaks against it, and something that may could not be read. Of the whole, never of one finding.
    Unknown,
    /// It ends without help; then the switch is as safe as it can be.
    Wait,
    /// Something has to be done before, or something in use is lost.
    No,
}

impl Decision {
    /// The exit code of the command, that of `why` for the same need to act.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Go => 0,
            Self::Unknown => 5,
            Self::Wait => 3,
            Self::No => 4,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Go => "go",
            Self::Unknown => "not known",
            Self::Wait => "wait",
            Self::No => "no",
        })
    }
}

/// A character of another's text, as it is shown: it neither begins a line, nor controls a terminal, nor reorders text.
pub(crate) fn printable(character: char) -> char {
    let reorders = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || reorders {
        char::REPLACEMENT_CHARACTER
    } else {
        character
    }
}

/// One object, or one setting, that the switch meets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What it means for the switch.
    pub decision: Decision,
    /// The object, as `KIND NAMESPACE/NAME`.
    pub object: String,
    /// What is so, and what happens.
    pub what: String,
    /// What to do; empty if nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cure: String,
    /// The row of `docs/parity.md` about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<&'static str>,
}

impl Finding {
    /// A finding about an object.
    #[must_use]
    pub fn new(
        decision: Decision,
        object: impl Into<String>,
        what: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        let line = |text: String| text.chars().map(printable).collect();
        Self {
            decision,
            object: line(object.into()),
            what: line(what.into()),
            cure: line(cure.into()),
            row: None,
        }
    }

    /// With the row of `docs/parity.md`.
    #[must_use]
    pub const fn row(mut self, row: &'static str) -> Self {
        self.row = Some(row);
        self
    }
}

/// Something that could not be read, so the decision may be too good.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotRead {
    /// What, as in `list baremetalhosts.metal3.io`.
    pub what: String,
    /// Why.
    pub why: String,
}
