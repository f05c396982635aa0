//! `fields --prove`: removes each member that acts from the decoded objects, and requires that a test of its row fails.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use metal3_files::documents;

use super::keys;
use super::rows::{Class, Row};
use super::{Said, Table};

/// Members at equal distances: all of them without a number.
pub(crate) fn run(root: &Path, table: &Table<'_>, rows: &[Row], sample: Option<usize>) -> Result<bool> {
    let acting: Vec<(&Said, &Row)> = table
        .matched
        .iter()
        .filter_map(|(said, row)| Some((*said, rows.get((*row)?)?)))
        .filter(|(said, row)| row.class == Class::Acts && !keys::SUBJECTS.contains(&said.subject.as_str()))
        .collect();
    let step = sample.map_or(1, |sample| acting.len().div_ceil(sample.max(1)).max(1));
    let (mut proven, mut unproven) = (0, 0);
    for (said, row) in acting.iter().step_by(step) {
        let fails = |test: &String| fails_without(root, said, test);
        let mut has_failed = false;
        for test in &row.tests {
            has_failed = has_failed || fails(test)?;
        }
        if has_failed {
            proven += 1;
        } else {
            unproven += 1;
            println!(
                "{} {}: {} passes without it",
                said.subject,
                said.name,
                row.tests.join(", ")
            );
        }
    }
    println!(
        "fields: {proven} of {} members fail their test when they are dropped",
        proven + unproven
    );
    Ok(unproven == 0)
}

/// Whether a test fails when the member is removed from every decoded object.
fn fails_without(root: &Path, said: &Said, test: &str) -> Result<bool> {
    let (folder, name) = test.split_once("::").unwrap_or_default();
    let manifest = documents::text(&root.join(folder).join("Cargo.toml"))?;
    let package = manifest.lines().find_map(|line| line.strip_prefix("name = "));
    let package = package
        .with_context(|| format!("{folder} has no package"))?
        .trim_matches('"');
    let feature = if package == "metal3-api" {
        "drop-member"
    } else {
        "metal3-api/drop-member"
    };
    let output = Command::new("cargo")
        .args([
            "test",
            "--quiet",
            "--locked",
            "--package",
            package,
            "--features",
            feature,
            name,
        ])
        .env("METAL3_DROP_MEMBER", format!("{} {}", said.subject, said.name))
        .current_dir(root)
        .output()
        .context("start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    match (output.status.success(), text.contains("test result: FAILED")) {
        (true, _) if text.contains(" 1 passed") => Ok(false),
        (false, true) => Ok(true),
        _ => bail!("{test} did not run:\n{text}{}", String::from_utf8_lossy(&output.stderr)),
    }
}
