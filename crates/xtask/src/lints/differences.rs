//! Differences from the Go managers: names in the code, compared with the rows of `docs/parity.md`.
//!
//! A comment names a difference after `differs`, a rule of `api` in its member of that name or with `differing`.
//! Comparisons with recorded answers name rows; those are checked where they are used.

use std::collections::BTreeSet;

/// Prefixes of a name where the code differs, split so that this file contains none.
const HERE: [&str; 3] = [
    concat!("differs", ": "),
    concat!("differs", " ("),
    concat!(".differing", "("),
];
/// Prefix of a name where a comparison expects the difference.
const EXPECTED: &str = concat!("row", ": ");
/// Text between prefix and name.
const OPENINGS: [&str; 3] = ["Some(\"", "\"", "`"];

/// Collected names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    here: BTreeSet<String>,
    expected: BTreeSet<String>,
}

impl Differences {
    /// Adds the names in the text of a file.
    pub(super) fn read(&mut self, text: &str) {
        self.here
            .extend(HERE.iter().flat_map(|before| names(text, before)).map(str::to_owned));
        self.expected.extend(names(text, EXPECTED).map(str::to_owned));
    }

    /// Number of names where the code differs.
    pub(super) fn count(&self) -> usize {
        self.here.len()
    }

    /// Names without a row, and rows without a name.
    pub(super) fn complaints(&self, parity: &str) -> Vec<String> {
        let rows: BTreeSet<&str> = parity.lines().filter_map(row).collect();
        let is_unexplained = |name: &&String| !rows.contains(name.as_str());
        let is_unnamed = |row: &&&str| !self.here.contains(**row) && !self.expected.contains(**row);
        let unexplained = self.here.iter().filter(is_unexplained);
        let unnamed = rows.iter().filter(is_unnamed);
        unexplained
            .map(|name| format!("has no row `{name}`, which the code names"))
            .chain(
                unnamed.map(|row| {
                    format!("no code names the row `{row}`: name it where the code differs, or remove the row")
                }),
            )
            .collect()
    }
}

/// The name of a table row; `None` for other lines.
fn row(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("| `")?.split_once("` |")?;
    Some(name)
}

/// Names after a prefix: lower-case words with dashes. Sentences are skipped.
fn names<'a>(text: &'a str, before: &str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| {
        let rest = OPENINGS
            .iter()
            .find_map(|opening| rest.strip_prefix(opening))
            .unwrap_or(rest);
        let name = rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next()?;
        (name.contains('-') && !rest.get(name.len()..)?.starts_with(' ')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARITY: &str = "| Row | What |\n| --- | --- |\n| `a-b` | x |\n| `c-d` | x |\n| words-only | x |\n";

    fn complaints(code: &str) -> Vec<String> {
        let mut differences = Differences::default();
        // Test inputs use DIFFERS, so that this file names no difference.
        differences.read(&code.replace("DIFFERS", "differs").replace("ROW", "row"));
        differences.complaints(PARITY)
    }

    #[test]
    fn every_form_of_a_name_is_found() {
        for form in [
            "// DIFFERS: `x-y`: why",
            "// DIFFERS: x-y. Why",
            "// (DIFFERS: `x-y`)",
            "/// DIFFERS (`x-y`): why",
            "DIFFERS: Some(\"x-y\"),",
            ".differing(\"x-y\")",
        ] {
            let found = complaints(&format!("// DIFFERS: a-b. Why\n// DIFFERS (`c-d`)\n{form}\n"));
            assert_eq!(found, ["has no row `x-y`, which the code names"], "{form}");
        }
    }

    #[test]
    fn sentences_are_skipped() {
        let sentences =
            "// DIFFERS: the Go manager\n// DIFFERS (mostly)\n// DIFFERS: well-known words\nDIFFERS: None,\n";
        assert_eq!(
            complaints(&format!("{sentences}// DIFFERS: a-b. Why\n// DIFFERS: c-d. Why\n")),
            [""; 0]
        );
    }

    #[test]
    fn a_row_without_a_name_is_reported() {
        let found = complaints("// DIFFERS (`a-b`)\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("the row `c-d`"), "{found:?}");
        assert_eq!(complaints("// DIFFERS (`a-b`)\nROW: \"c-d\",\n"), [""; 0]);
    }

    #[test]
    fn comparisons_may_have_further_rows() {
        let code = "// DIFFERS (`a-b`)\n// DIFFERS (`c-d`)\nROW: \"of-a-test\",\n";
        assert_eq!(complaints(code), [""; 0]);
    }
}
