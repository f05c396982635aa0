//! Each row of each rule table has an example that only this row reports, so a lost row fails a test.
//!
//! `tests/rules/KIND/ROW.yaml` holds `operation` (create when absent), `object`, `oldObject` for an update or a delete,
//! and `fields`, the paths found. An example of a warning row has `warns: true`. An example of a defaulting row has
//! `object` and `defaulted`.
//!
//! `tests/accepted/KIND/NAME.yaml` are valid edge cases: no row reports them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use metal3_api::catalog;
use metal3_api::rules::{Finding, Operation, Reviewer, Unserved};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Example {
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    object: Option<Value>,
    #[serde(default)]
    old_object: Option<Value>,
    #[serde(default)]
    fields: BTreeSet<String>,
    #[serde(default)]
    warns: bool,
    #[serde(default)]
    defaulted: Option<Value>,
}

fn folder() -> PathBuf {
    PathBuf::from("tests/rules")
}

fn accepted() -> PathBuf {
    PathBuf::from("tests/accepted")
}

fn examples(folder: &Path) -> Vec<(String, Example)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.map(|e| e.unwrap().path()).collect())
        .unwrap_or_default();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let example = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.file_stem().unwrap().to_string_lossy().into_owned(), example)
        })
        .collect()
}

fn operation(example: &Example) -> Operation {
    match example.operation.as_deref() {
        None | Some("create") => Operation::Create,
        Some("update") => Operation::Update,
        Some("delete") => Operation::Delete,
        Some(other) => panic!("operation: create, update or delete, not {other}"),
    }
}

fn check(reviewer: &Reviewer, row: &str, example: &Example) {
    let what = format!("{} {row}", reviewer.kind);
    if let Some(defaulted) = &example.defaulted {
        let object = example.object.as_ref().expect("an example has an object");
        assert_eq!(&(reviewer.set_defaults)(object).unwrap(), defaulted, "{what}");
        assert_ne!(object, defaulted, "{what}: the example has no default to set");
        return;
    }
    let decision = (reviewer.review)(operation(example), example.old_object.as_ref(), example.object.as_ref()).unwrap();
    // Each write of a kind that is not served has that warning, too.
    let is_of_row = |finding: &&Finding| row == Unserved::ROW || finding.rule != Unserved::ROW;
    let found: Vec<&Finding> = decision.findings.iter().filter(is_of_row).collect();
    assert!(!found.is_empty(), "{what}: the row finds nothing in its example");
    for finding in &found {
        assert_eq!(finding.rule, row, "{what}: another row reports too: {finding}");
    }
    let fields: BTreeSet<String> = found.iter().map(|finding| finding.path.to_string()).collect();
    assert_eq!(fields, example.fields, "{what}");
    assert_eq!(
        decision.allowed(),
        example.warns,
        "{what}: warns is true when the write is accepted"
    );
    assert!(
        example.warns || !reviewer.only_warns,
        "{what}: it rejects, and the kind says that none does"
    );
    for finding in &decision.findings {
        assert!(!finding.problem.is_empty(), "{what}: no problem");
        assert!(!finding.cure.is_empty(), "{what}: no cure");
        assert!(!finding.path.as_str().is_empty(), "{what}: no field");
    }
}

#[test]
fn each_row_has_an_example_that_only_it_reports() {
    for reviewer in catalog::reviewers() {
        let rows: BTreeSet<String> = (reviewer.rows)().iter().map(|row| row.name.to_owned()).collect();
        assert_eq!(
            rows.len(),
            (reviewer.rows)().len(),
            "{}: two rows of one name",
            reviewer.kind
        );
        let examples = examples(&folder().join(reviewer.kind));
        let named: BTreeSet<String> = examples.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(
            rows, named,
            "{}: rows on the left, examples on the right",
            reviewer.kind
        );
        for (row, example) in &examples {
            check(&reviewer, row, example);
        }
    }
}

#[test]
fn valid_edge_cases_are_accepted() {
    for reviewer in catalog::reviewers() {
        for (name, example) in examples(&accepted().join(reviewer.kind)) {
            let (old, new) = (example.old_object.as_ref(), example.object.as_ref());
            let decision = (reviewer.review)(operation(&example), old, new).unwrap();
            let findings: Vec<String> = decision.findings.iter().map(ToString::to_string).collect();
            assert_eq!(findings, Vec::<String>::new(), "{} {name}", reviewer.kind);
        }
    }
}

fn folders(of: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(of).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn each_folder_of_examples_belongs_to_a_kind_with_rules() {
    let kinds: BTreeSet<String> = catalog::reviewers()
        .iter()
        .map(|reviewer| reviewer.kind.to_owned())
        .collect();
    assert_eq!(kinds, folders(&folder()));
    assert!(folders(&accepted()).is_subset(&kinds));
}
