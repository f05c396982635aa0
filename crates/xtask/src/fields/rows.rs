//! The rows, written by hand: a YAML file for each subject, with lists of rows under the names of kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use metal3_files::documents;
use serde::Deserialize;

use super::pattern::Pattern;

/// What this program does with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Acts,
    Refused,
    Condition,
    Warned,
    Unread,
    Superseded,
    Untested,
    Silent,
}

impl Class {
    pub(crate) const ALL: [Self; 8] = [
        Self::Acts,
        Self::Refused,
        Self::Condition,
        Self::Warned,
        Self::Unread,
        Self::Superseded,
        Self::Untested,
        Self::Silent,
    ];

    /// The name in the page and in the counts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Acts => "acts",
            Self::Refused => "refused",
            Self::Condition => "named by a condition",
            Self::Warned => "not served, with a warning",
            Self::Unread => "read by no controller",
            Self::Superseded => "superseded",
            Self::Untested => "acts, no test of its own yet",
            Self::Silent => "without effect, and nothing says so",
        }
    }

    /// What the name means.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Acts => {
                "it has the effect that it has with the Go managers, or that `docs/parity.md` states. The test fails without it: \
                 `make fields-prove` shows that for members, a review of the test for names"
            }
            Self::Refused => {
                "admission, or the start of the program, rejects it; the test asserts that the error names it"
            }
            Self::Condition => {
                "it has no effect, or a partial one, and a condition of the object names it; the test asserts the message"
            }
            Self::Warned => {
                "it is accepted without effect, and a warning at admission, or in the log, names it; the test asserts that"
            }
            Self::Unread => "no controller reads it, neither those of the Go managers nor those of this program",
            Self::Superseded => "an older form of another member; the test asserts that it becomes that member",
            Self::Untested => "it acts, and no test asserts its effect alone",
            Self::Silent => "a defect: the Go managers act on it",
        }
    }

    /// Whether a row needs a test; the others have a text instead.
    const fn needs_test(self) -> bool {
        !matches!(self, Self::Unread | Self::Untested | Self::Silent)
    }
}

/// A row.
#[derive(Debug)]
pub(crate) struct Row {
    /// The kind, or the name of another subject.
    pub(crate) subject: String,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) class: Class,
    /// What happens, or the place that shows that nothing does.
    pub(crate) how: String,
    /// Folder and name of each test, as `crates/capm3::name`.
    pub(crate) tests: Vec<String>,
    only_upstream: bool,
}

impl Row {
    pub(crate) fn is_about(&self, subject: &str, name: &str) -> bool {
        self.subject == subject && self.patterns.iter().any(|pattern| pattern.matches(name))
    }

    /// Whether it is about a name that only a Go manager knows, which therefore cannot be collected here.
    pub(crate) const fn is_external(&self) -> bool {
        self.only_upstream
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Several(texts) => texts,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    at: Texts,
    #[serde(default)]
    how: String,
    #[serde(default, rename = "only-upstream")]
    only_upstream: bool,
    acts: Option<Texts>,
    refused: Option<Texts>,
    condition: Option<Texts>,
    warned: Option<Texts>,
    superseded: Option<Texts>,
    unread: Option<String>,
    untested: Option<String>,
    silent: Option<String>,
}

impl Written {
    fn row(self, subject: &str) -> Result<Row> {
        let patterns: Vec<Pattern> = self.at.list().iter().map(|text| Pattern::new(text)).collect();
        let tested = [
            (Class::Acts, self.acts),
            (Class::Refused, self.refused),
            (Class::Condition, self.condition),
            (Class::Warned, self.warned),
            (Class::Superseded, self.superseded),
        ];
        let tested = tested.into_iter();
        let tested = tested.filter_map(|(class, tests)| Some((class, tests?.list(), self.how.clone())));
        let places = [
            (Class::Unread, self.unread),
            (Class::Untested, self.untested),
            (Class::Silent, self.silent),
        ];
        let places = places.into_iter();
        let places = places.filter_map(|(class, place)| Some((class, Vec::new(), place?)));
        let mut classes = tested.chain(places);
        let (Some((class, tests, how)), None) = (classes.next(), classes.next()) else {
            let at: Vec<&str> = patterns.iter().map(Pattern::text).collect();
            bail!("the row of {subject} {} needs exactly one class", at.join(", "));
        };
        Ok(Row {
            subject: subject.to_owned(),
            patterns,
            class,
            how,
            tests,
            only_upstream: self.only_upstream,
        })
    }
}

/// All rows of a folder.
pub(crate) fn read(folder: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for file in documents::files(folder, &["yaml"])? {
        let text = documents::text(&file)?;
        rows.extend(parse(&text).with_context(|| format!("read {}", file.display()))?);
    }
    Ok(rows)
}

/// The rows of one text.
pub(crate) fn parse(text: &str) -> Result<Vec<Row>> {
    let documents = documents::parse(text, Path::new("rows"))?;
    let mut rows = Vec::new();
    for document in documents {
        let written: BTreeMap<String, Vec<Written>> =
            serde_json::from_value(document.value).map_err(|error| anyhow!("a row is not well formed: {error}"))?;
        for (subjects, written) in written {
            for row in written {
                rows.push(row.row(&subjects)?);
            }
        }
    }
    Ok(rows)
}

/// Rows without what they need, and tests that do not exist. `tests` are pairs of file and name.
pub(crate) fn complaints(rows: &[Row], tests: &BTreeSet<(String, String)>) -> Vec<String> {
    let exists = |named: &str| {
        named.split_once("::").is_some_and(|(folder, name)| {
            let below = format!("{folder}/");
            tests
                .iter()
                .any(|(file, test)| test == name && file.starts_with(&below))
        })
    };
    let mut found = Vec::new();
    for row in rows {
        let at = row.patterns.first().map_or("", Pattern::text);
        let about = format!("{} {at}", row.subject);
        if row.class.needs_test() && row.tests.is_empty() {
            found.push(format!("{about}: names no test that fails without it"));
        }
        if row.class == Class::Superseded && row.how.is_empty() {
            found.push(format!("{about}: does not say by what it is superseded"));
        }
        let missing = row.tests.iter().filter(|test| !exists(test));
        found.extend(missing.map(|test| format!("{about}: the test {test} does not exist")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_needs_exactly_one_class() {
        for row in ["{ at: a }", "{ at: a, acts: api::x, unread: y }", "{ at: a, does: x }"] {
            assert!(parse(&format!("Kind:\n- {row}\n")).is_err(), "{row}");
        }
    }

    #[test]
    fn test_that_does_not_exist_in_its_folder_is_reported() {
        let tests = BTreeSet::from([("crates/a/src/x.rs".to_owned(), "a_b_c".to_owned())]);
        let found = |row: &str| complaints(&parse(&format!("Kind:\n- {row}\n")).unwrap(), &tests);
        assert_eq!(found("{ at: a, acts: 'crates/a::a_b_c' }"), [""; 0]);
        assert!(found("{ at: a, acts: 'crates/b::a_b_c' }")[0].contains("does not exist"));
        assert!(found("{ at: a, acts: [] }")[0].contains("names no test"));
        assert!(found("{ at: a, superseded: 'crates/a::a_b_c' }")[0].contains("by what"));
    }
}
