//! `fields`: the table of fields, keys, flags, environment variables and metrics, and of what this program does with each.
//!
//! The entries are collected: members of the kinds from their schemas, keys of annotations and labels and names of
//! metrics from the source, flags and environment variables from their tables. What this program does with them is written by
//! hand, as rows in `crates/xtask/fields`. `docs/fields.md` is the result of both. An entry without a row is an error, and so is a
//! row, a pattern or an alternative of a pattern that matches no entry, and a test that does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use metal3_files::{documents, workspace};

mod keys;
mod members;
mod page;
mod pattern;
mod prove;
mod rows;

use pattern::Pattern;
use rows::{Class, Row};

/// Folder of the rows.
const ROWS: &str = "crates/xtask/fields";
/// The generated page.
const PAGE: &str = "docs/fields.md";
/// Folders with tests.
const TESTED: [&str; 3] = ["api", "crates", "e2e"];

/// A member of a kind, or the name of a key, flag, environment variable or metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// A kind, or one of the subjects in [`keys`].
    subject: String,
    /// Path of the member, or name.
    name: String,
}

/// The entries, the rows, and the number of members of `status`.
struct Fields {
    entries: BTreeSet<Entry>,
    rows: Vec<Row>,
    status: usize,
}

impl Fields {
    fn read(root: &Path) -> Result<Self> {
        let (mut entries, status) = members::all();
        entries.extend(keys::all(root)?);
        let rows = rows::read(&root.join(ROWS))?;
        Ok(Self { entries, rows, status })
    }

    fn page(&self) -> String {
        page::text(&Table::new(&self.entries, &self.rows), &self.rows, self.status)
    }

    fn complaints(&self, root: &Path) -> Result<Vec<String>> {
        let table = Table::new(&self.entries, &self.rows);
        let mut found = rows::complaints(&self.rows, &tests(root)?);
        found.extend(table.complaints(&self.rows));
        found.extend(keys::contradictions(&table, &self.rows));
        Ok(found)
    }
}

/// Writes `docs/fields.md`, or with `check` reports whether it is up to date. Reports entries without rows in either case.
pub(crate) fn run(check: bool) -> Result<bool> {
    let root = workspace::root()?;
    let fields = Fields::read(&root)?;
    let mut complaints = fields.complaints(&root)?;
    let (path, text) = (root.join(PAGE), fields.page());
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
    let Fields { entries, rows, status } = &fields;
    let counts = Table::new(entries, rows).counts(rows);
    let all: usize = counts.values().sum();
    let counts: Vec<String> = counts
        .iter()
        .map(|(class, count)| format!("{count} {}", class.name()))
        .collect();
    println!(
        "fields: {all} entries: {}; {status} members of status; {} complaints",
        counts.join(", "),
        complaints.len()
    );
    Ok(complaints.is_empty())
}

/// Removes the members that act, one at a time, and requires that their tests fail. `sample`: how many, all by default.
pub(crate) fn prove(sample: Option<usize>) -> Result<bool> {
    let root = workspace::root()?;
    let Fields { entries, rows, .. } = Fields::read(&root)?;
    prove::run(&root, &Table::new(&entries, &rows), &rows, sample)
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

/// Entries and their rows.
pub(crate) struct Table<'a> {
    /// Index of the row of each entry.
    matched: BTreeMap<&'a Entry, Option<usize>>,
}

impl<'a> Table<'a> {
    /// The first row that matches an entry is its row.
    fn new(entries: &'a BTreeSet<Entry>, rows: &[Row]) -> Self {
        let row = |entry: &Entry| rows.iter().position(|row| row.is_about(&entry.subject, &entry.name));
        Self {
            matched: entries.iter().map(|entry| (entry, row(entry))).collect(),
        }
    }

    /// Entries without rows, and rows and patterns without entries.
    fn complaints(&self, rows: &[Row]) -> Vec<String> {
        let missing = self.matched.iter().filter(|(_, row)| row.is_none());
        let missing = missing.map(|(entry, _)| {
            format!(
                "{} {} has no row: say in {ROWS} what is done with it",
                entry.subject, entry.name
            )
        });
        let superfluous = rows.iter().enumerate().flat_map(|(index, row)| {
            let names: Vec<&str> = self.of_row(index).collect();
            let patterns = row.patterns.iter().filter(|_| !row.is_external());
            let alternatives = patterns.flat_map(Pattern::alternatives);
            let idle = alternatives.filter(move |pattern| !names.iter().any(|name| pattern::matches(pattern, name)));
            idle.map(move |pattern| {
                format!(
                    "{} {pattern}: the row matches nothing, or nothing that an earlier row does not match",
                    row.subject
                )
            })
        });
        missing.chain(superfluous).collect()
    }

    /// Names of the entries of a row.
    fn of_row(&self, index: usize) -> impl Iterator<Item = &str> {
        let matched = self.matched.iter().filter(move |(_, row)| **row == Some(index));
        matched.map(|(entry, _)| entry.name.as_str())
    }

    /// Number of entries in each class. Names that only Go managers know count once each.
    fn counts(&self, rows: &[Row]) -> BTreeMap<Class, usize> {
        let mut counts: BTreeMap<Class, usize> = Class::ALL.iter().map(|class| (*class, 0)).collect();
        for (index, row) in rows.iter().enumerate() {
            let names = row.patterns.iter().flat_map(Pattern::alternatives);
            let external = if row.is_external() { names.count() } else { 0 };
            *counts.entry(row.class).or_default() += self.of_row(index).count().max(external);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[&str]) -> BTreeSet<Entry> {
        let entry = |name: &&str| Entry {
            subject: "Kind".to_owned(),
            name: (*name).to_owned(),
        };
        names.iter().map(entry).collect()
    }

    fn complaints(names: &[&str], rows: &str) -> Vec<String> {
        let (entries, rows) = (entries(names), rows::parse(rows).unwrap());
        Table::new(&entries, &rows).complaints(&rows)
    }

    #[test]
    fn member_without_a_row_and_row_without_a_member_are_reported() {
        let rows = "Kind:\n- { at: spec.a, acts: api::a_b_c }\n";
        assert_eq!(complaints(&["spec.a"], rows), [""; 0]);
        assert!(complaints(&["spec.a", "spec.b"], rows)[0].contains("Kind spec.b has no row"));
        assert!(complaints(&[], rows)[0].contains("Kind spec.a: the row matches nothing"));
    }

    #[test]
    fn alternative_without_a_member_is_reported() {
        let rows = "Kind:\n- { at: 'spec.(a|b).(c|d)', acts: api::a_b_c }\n";
        let found = complaints(&["spec.a.c", "spec.a.d", "spec.b.c"], rows);
        assert!(found.len() == 1 && found[0].contains("Kind spec.b.d:"), "{found:?}");
    }

    #[test]
    fn names_of_go_managers_count_once_each() {
        let rows = rows::parse("Kind:\n- { at: '(A|B|C)', only-upstream: true, unread: a place }\n").unwrap();
        let counts = Table::new(&BTreeSet::new(), &rows).counts(&rows);
        assert_eq!(counts[&Class::Unread], 3);
    }

    #[test]
    fn first_row_that_matches_counts_and_a_hidden_row_is_reported() {
        let rows = "Kind:\n- { at: spec.a, acts: api::a_b_c }\n- { at: 'spec.**', unread: a place }\n";
        let (entries, parsed) = (entries(&["spec.a", "spec.b.c"]), rows::parse(rows).unwrap());
        let table = Table::new(&entries, &parsed);
        assert_eq!(table.complaints(&parsed), [""; 0]);
        let counts = table.counts(&parsed);
        assert_eq!((counts[&Class::Acts], counts[&Class::Unread]), (1, 1));
        assert!(complaints(&["spec.a"], rows)[0].contains("spec.**"));
    }
}
