//! Invalid and hostile documents. Each causes findings that name the member and the problem; none causes a panic.
//!
//! The first line of each file contains the member that must be named.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use metal3_api::catalog;
use metal3_api::rules::Operation;
use metal3_schema::CustomResource;
use serde_json::Value;

/// Path and problem.
type Found = (String, String);

fn check(text: &str) -> Vec<Found> {
    let mut object: Value = match serde_saphyr::from_str(text) {
        Ok(object) => object,
        Err(error) => return vec![(error.to_string(), error.to_string())],
    };
    let member = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (member("kind"), member("apiVersion"));
    let Some(crd) = catalog::definitions().into_iter().find(|crd| crd.kind == kind) else {
        return vec![("kind".into(), format!("{kind:?} is no kind that is served"))];
    };
    let crd = CustomResource::parse(&crd.manifest()).unwrap();
    let name = api_version.rsplit('/').next().unwrap_or_default();
    let Some(version) = crd.version(name) else {
        return vec![("apiVersion".into(), format!("{api_version:?} is not served"))];
    };
    let pruned = version.schema.prune(&mut object);
    let mut found: Vec<Found> = pruned
        .into_iter()
        .map(|path| (path, "unknown field".to_owned()))
        .collect();
    version.schema.default(&mut object);
    found.extend(
        crd.create_errors(version, &object)
            .into_iter()
            .map(|error| (error.field.clone(), error.to_string())),
    );
    found.extend(review(&kind, &object));
    found
}

/// Runs the rules even on objects that the schema rejects: rules may run without a schema and must not panic.
fn review(kind: &str, object: &Value) -> Vec<Found> {
    let Some(reviewer) = catalog::reviewers().into_iter().find(|reviewer| reviewer.kind == kind) else {
        return Vec::new();
    };
    let defaulted = (reviewer.set_defaults)(object).unwrap_or_else(|_| object.clone());
    let requests = [
        (Operation::Create, None, Some(&defaulted)),
        (Operation::Update, Some(&defaulted), Some(&defaulted)),
        (Operation::Delete, Some(&defaulted), None),
    ];
    let mut found = Vec::new();
    for (operation, old, new) in requests {
        match (reviewer.review)(operation, old, new) {
            Ok(decision) => found.extend(decision.findings.iter().map(|it| (it.path.to_string(), it.detail()))),
            Err(error) => found.push((error.to_string(), error.to_string())),
        }
    }
    found
}

#[test]
fn hostile_documents_cause_findings_that_name_the_member() {
    let folder = Path::new("tests/hostile");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 60, "{} files", files.len());
    let mut silent = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let named = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# names: "))
            .unwrap();
        let found = check(&text);
        let hit = found
            .iter()
            .any(|(path, detail)| path.to_lowercase().contains(&named.to_lowercase()) && !detail.trim().is_empty());
        if !hit {
            silent.push(format!("{}: {named} is not named by {found:?}", file.display()));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
