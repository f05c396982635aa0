//! `fields`: the table of everything that a user can say, and of what this program does with it.
//!
//! What can be said is collected: members of the kinds from their schemas, keys of annotations and labels and names of
//! metrics from the source, flags and environment variables from their tables. What is done with it is written by hand, as
//! rows in `crates/xtask/fields`. `docs/fields.md` is the result of both. A thing without a row is an error, and so is a row
//! that is about nothing, or that names a test that does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metal3_files::{documents, workspace};

mod keys;
mod members;
mod page;
mod pattern;
mod prove;
mod rows;

use rows::{Class, Row};

/// Folder of the rows.
const ROWS: &str = "crates/xtask/fields";
/// The generated page.
const PAGE: &str = "docs/fields.md";
/// Folders with tests.
const TESTED: [&str; 3] = ["api", "crates", "e2e"];

/// A thing that a user can say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Said {
    /// A kind, or one of the subjects in [`keys`].
    subject: String,
    /// Path of the member, or name.
    name: String,
}

/// What can be said, the rows, and the number of members of `status`.
struct Everything {
    said: BTreeSet<Said>,
    rows: Vec<Row>,
    status: usize,
}

impl Everything {
    fn read(root: &Path) -> Result<Self> {
        let (mut said, status) = members::all();
        said.extend(keys::all(root)?);
        let rows = rows::read(&root.join(ROWS))?;
        Ok(Self { said, rows, status })
    }

    fn page(&self) -> String {
        page::text(&Table::new(&self.said, &self.rows), &self.rows, self.status)
    }

    fn complaints(&self, root: &Path) -> Result<Vec<String>> {
        let table = Table::new(&self.said, &self.rows);
        let mut found = rows::complaints(&self.rows, &tests(root)?);
        found.extend(table.complaints(&self.rows));
        found.extend(keys::contradictions(&table, &self.rows));
        Ok(found)
    }
}

/// `docs/fields.md`.
pub(crate) fn page(root: &Path) -> Result<(PathBuf, String)> {
    Ok((root.join(PAGE), Everything::read(root)?.page()))
}

/// Things without rows, and rows that are about nothing or name no test.
pub(crate) fn complaints(root: &Path) -> Result<Vec<String>> {
    Everything::read(root)?.complaints(root)
}

/// Writes `docs/fields.md`, or with `check` reports whether it is up to date. Reports things without rows in either case.
pub(crate) fn run(check: bool) -> Result<bool> {
    let root = workspace::root()?;
    let everything = Everything::read(&root)?;
    let mut complaints = everything.complaints(&root)?;
    let (path, text) = (root.join(PAGE), everything.page());
    if !check {
        fs::write(&path, &text).with_context(|| format!("write {}", path.display()))?;
    } else if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
        complaints.push(format!(
            "{PAGE} is out of date: run `cargo run --bin xtask -- fields` and commit the result"
        ));
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    let Everything { said, rows, status } = &everything;
    let counts = Table::new(said, rows).counts(rows);
    let all: usize = counts.values().sum();
    let counts: Vec<String> = counts
        .iter()
        .map(|(class, count)| format!("{count} {}", class.name()))
        .collect();
    println!(
        "fields: {all} things that a user can say: {}; {status} members of status; {} complaints",
        counts.join(", "),
        complaints.len()
    );
    Ok(complaints.is_empty())
}

/// Removes the members that act, one at a time, and requires that their tests fail. `sample`: how many, all by default.
pub(crate) fn prove(sample: Option<usize>) -> Result<bool> {
    let root = workspace::root()?;
    let Everything { said, rows, .. } = Everything::read(&root)?;
    prove::run(&root, &Table::new(&said, &rows), &rows, sample)
}

/// Each test with the folder of its file: `crates/capm3/src/machine/tests/template.rs::paused_machine_takes_nothing_over`.
fn tests(root: &Path) -> Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for folder in TESTED {
        for file in documents::files(&root.join(folder), &["rs"])? {
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            let text = documents::text(&file)?;
            found.extend(crate::lints::tests(&text).map(|test| (name.clone(), test)));
        }
    }
    Ok(found)
}

/// Things and their rows.
pub(crate) struct Table<'a> {
    /// Index of the row of each thing.
    matched: BTreeMap<&'a Said, Option<usize>>,
}

impl<'a> Table<'a> {
    /// The first row that matches a thing is its row.
    fn new(said: &'a BTreeSet<Said>, rows: &[Row]) -> Self {
        let row = |thing: &Said| rows.iter().position(|row| row.is_about(&thing.subject, &thing.name));
        Self {
            matched: said.iter().map(|thing| (thing, row(thing))).collect(),
        }
    }

    /// Things without rows, and rows and patterns without things.
    fn complaints(&self, rows: &[Row]) -> Vec<String> {
        let missing = self.matched.iter().filter(|(_, row)| row.is_none());
        let missing = missing.map(|(thing, _)| {
            format!(
                "{} {} has no row: say in {ROWS} what is done with it",
                thing.subject, thing.name
            )
        });
        let superfluous = rows.iter().enumerate().flat_map(|(index, row)| {
            let things: Vec<&str> = self.of_row(index).collect();
            let patterns = row.patterns.iter().filter(|_| !row.is_external());
            let idle = patterns.filter(move |pattern| !things.iter().any(|name| pattern.matches(name)));
            idle.map(move |pattern| {
                format!(
                    "{} {}: the row matches nothing, or nothing that an earlier row does not match",
                    row.subject,
                    pattern.text()
                )
            })
        });
        missing.chain(superfluous).collect()
    }

    /// Names of the things of a row.
    fn of_row(&self, index: usize) -> impl Iterator<Item = &str> {
        let matched = self.matched.iter().filter(move |(_, row)| **row == Some(index));
        matched.map(|(thing, _)| thing.name.as_str())
    }

    /// Number of things in each class. Names that only Go managers know count once each.
    fn counts(&self, rows: &[Row]) -> BTreeMap<Class, usize> {
        let mut counts: BTreeMap<Class, usize> = Class::ALL.iter().map(|class| (*class, 0)).collect();
        for (index, row) in rows.iter().enumerate() {
            let external = if row.is_external() { row.patterns.len() } else { 0 };
            *counts.entry(row.class).or_default() += self.of_row(index).count().max(external);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(names: &[&str]) -> BTreeSet<Said> {
        let thing = |name: &&str| Said {
            subject: "Kind".to_owned(),
            name: (*name).to_owned(),
        };
        names.iter().map(thing).collect()
    }

    fn complaints(names: &[&str], rows: &str) -> Vec<String> {
        let (said, rows) = (said(names), rows::parse(rows).unwrap());
        Table::new(&said, &rows).complaints(&rows)
    }

    #[test]
    fn member_without_a_row_and_row_without_a_member_are_reported() {
        let rows = "Kind:\n- { at: spec.a, acts: api::a_b_c }\n";
        assert_eq!(complaints(&["spec.a"], rows), [""; 0]);
        assert!(complaints(&["spec.a", "spec.b"], rows)[0].contains("Kind spec.b has no row"));
        assert!(complaints(&[], rows)[0].contains("Kind spec.a: the row matches nothing"));
    }

    #[test]
    fn first_row_that_matches_counts_and_a_hidden_row_is_reported() {
        let rows = "Kind:\n- { at: spec.a, acts: api::a_b_c }\n- { at: 'spec.**', unread: a place }\n";
        let (things, parsed) = (said(&["spec.a", "spec.b.c"]), rows::parse(rows).unwrap());
        let table = Table::new(&things, &parsed);
        assert_eq!(table.complaints(&parsed), [""; 0]);
        let counts = table.counts(&parsed);
        assert_eq!((counts[&Class::Acts], counts[&Class::Unread]), (1, 1));
        assert!(complaints(&["spec.a"], rows)[0].contains("spec.**"));
    }
}
