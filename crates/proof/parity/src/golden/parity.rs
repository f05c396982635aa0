//! Rows of `docs/parity.md`: deliberate differences and their reasons.

use std::collections::BTreeMap;

use anyhow::Result;

use metal3_files::{documents, workspace};

/// Text that a row needs when it covers more than a tenth of a group.
pub(super) const SHARE: &str = "more than a tenth";

/// Rows by name.
#[derive(Debug, Default)]
pub(super) struct Document(BTreeMap<String, String>);

impl Document {
    /// Reads the document of this checkout.
    pub(super) fn read() -> Result<Self> {
        Ok(Self::parse(&documents::text(
            &workspace::root()?.join("docs/parity.md"),
        )?))
    }

    /// Parses the rows of all tables: the first cell is the name, the last the reason.
    pub(super) fn parse(text: &str) -> Self {
        let cells = |line: &str| -> Option<(String, String)> {
            let line = line.trim().strip_prefix('|')?.strip_suffix('|')?;
            let (name, rest) = line.split_once('|')?;
            let why = rest.rsplit_once('|').map_or(rest, |(_, last)| last);
            Some((name.trim().trim_matches('`').to_owned(), why.trim().to_owned()))
        };
        Self(text.lines().filter_map(cells).collect())
    }

    /// The reason of a row; `None` without a row or a reason.
    pub(super) fn why(&self, row: &str) -> Option<&str> {
        self.0.get(row).map(String::as_str).filter(|why| !why.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_name_and_only_with_a_reason() {
        let text = "| Row | What | Why |\n| --- | --- | --- |\n| `a-b` | x | because |\n| c | x | |\n";
        let document = Document::parse(text);
        assert_eq!(document.why("a-b"), Some("because"));
        assert_eq!(document.why("c"), None);
        assert_eq!(document.why("d"), None);
    }
}
