//! Documents with a generated section between two marks.

use anyhow::{Context as _, Result};

use metal3_files::{documents, workspace};

/// A generated section of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) document: &'static str,
    /// The mark before it.
    pub(crate) begin: &'static str,
    /// The mark after it.
    pub(crate) end: &'static str,
}

impl Part {
    /// Writes the section.
    pub(crate) fn write(&self, text: &str) -> Result<()> {
        let path = workspace::root()?.join(self.document);
        let document = self.replaced(&documents::text(&path)?, text)?;
        std::fs::write(&path, document).with_context(|| format!("write {}", self.document))
    }

    /// The document with the section replaced.
    pub(crate) fn replaced(&self, document: &str, text: &str) -> Result<String> {
        let Self { begin, end, .. } = self;
        let marks = || format!("{} has no {} and {end}", self.document, begin.trim());
        let (before, rest) = document.split_once(begin).with_context(marks)?;
        let (_, after) = rest.split_once(end).with_context(marks)?;
        Ok(format!("{before}{begin}{text}{end}{after}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let part = Part {
            document: "x.md",
            begin: "<!-- begin -->\n",
            end: "<!-- end -->",
        };
        let document = |text: &str| format!("a\n<!-- begin -->\n{text}<!-- end -->\nb\n");
        assert_eq!(part.replaced(&document("old\n"), "new\n").unwrap(), document("new\n"));
        assert!(part.replaced("a\n", "new\n").is_err());
    }
}
