//! `fields --prove`: removes each member that acts from the decoded objects, and requires that a test of its row fails. A member
//! without which an object does not decode gets one value in all objects instead.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use metal3_api::catalog;
use metal3_files::documents;
use serde_json::Value;

use super::keys;
use super::rows::{Class, Row};
use super::{Entry, Table};

/// Members at equal distances: all of them without a number.
pub(crate) fn run(root: &Path, table: &Table<'_>, rows: &[Row], sample: Option<usize>) -> Result<bool> {
    let acting: Vec<(&Entry, &Row)> = table
        .matched
        .iter()
        .filter_map(|(entry, row)| Some((*entry, rows.get((*row)?)?)))
        .filter(|(entry, row)| row.class == Class::Acts && !keys::SUBJECTS.contains(&entry.subject.as_str()))
        .collect();
    let step = sample.map_or(1, |sample| acting.len().div_ceil(sample.max(1)).max(1));
    let (mut proven, mut unproven, mut built) = (0, 0, BTreeMap::new());
    for (entry, row) in acting.iter().step_by(step) {
        let mut has_failed = false;
        for test in &row.tests {
            has_failed = has_failed || fails_without(root, entry, test, &mut built)?;
        }
        if has_failed {
            proven += 1;
        } else {
            unproven += 1;
            println!(
                "{} {}: {} passes without it",
                entry.subject,
                entry.name,
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

/// Programs with the tests of a folder. They are built once.
type Built = BTreeMap<String, Vec<PathBuf>>;

/// Whether a test fails when the member is removed from every decoded object.
fn fails_without(root: &Path, entry: &Entry, test: &str, built: &mut Built) -> Result<bool> {
    let (folder, name) = test.split_once("::").unwrap_or_default();
    if !built.contains_key(folder) {
        built.insert(folder.to_owned(), build(root, folder)?);
    }
    let mut has_passed = false;
    for program in built.get(folder).into_iter().flatten() {
        let mut command = Command::new(program);
        if let Some(value) = listed(entry) {
            command.env("METAL3_DROP_LISTED", value);
        }
        let output = command
            .args(["--quiet", name])
            .env("METAL3_DROP_MEMBER", format!("{} {}", entry.subject, entry.name))
            .current_dir(root.join(folder))
            .output()
            .with_context(|| format!("start {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match (output.status.success(), text.contains("test result: FAILED")) {
            (true, _) => has_passed |= text.contains(" 1 passed"),
            (false, true) => return Ok(true),
            (false, false) => bail!("{test} did not run:\n{text}{}", String::from_utf8_lossy(&output.stderr)),
        }
    }
    if !has_passed {
        bail!("{test} did not run");
    }
    Ok(false)
}

/// Builds the tests of a folder with the feature that removes members.
fn build(root: &Path, folder: &str) -> Result<Vec<PathBuf>> {
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
            "--no-run",
            "--quiet",
            "--locked",
            "--tests",
            "--message-format=json",
        ])
        .args(["--package", package, "--features", feature])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("start cargo")?;
    if !output.status.success() {
        bail!("the tests of {folder} do not build with the feature {feature}");
    }
    Ok(programs(&String::from_utf8_lossy(&output.stdout)))
}

/// The programs with tests that the messages of cargo name.
fn programs(messages: &str) -> Vec<PathBuf> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|message| message.pointer("/profile/test") == Some(&Value::Bool(true)));
    tests
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .collect()
}

/// The last value that the schema of a member lists, if it lists any.
fn listed(entry: &Entry) -> Option<String> {
    let definitions = catalog::definitions();
    let definition = definitions.iter().find(|definition| definition.kind == entry.subject)?;
    let mut schemas = definition.versions.iter().map(|version| (version.schema)());
    schemas.find_map(|schema| {
        let member = entry.name.split('.').try_fold(&schema, below)?;
        member.get("enum")?.as_array()?.last()?.as_str().map(str::to_owned)
    })
}

/// The schema of a member, or of its items or values.
fn below<'a>(schema: &'a Value, segment: &str) -> Option<&'a Value> {
    let name = segment.trim_end_matches("[]").trim_end_matches("{}");
    let member = schema.get("properties")?.get(name)?;
    if segment.ends_with("[]") {
        member.get("items")
    } else if segment.ends_with("{}") {
        member.get("additionalProperties")
    } else {
        Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_tests_are_found_in_the_messages_of_cargo() {
        let messages = [
            r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/a"}"#,
            r#"{"reason":"compiler-artifact","profile":{"test":true},"executable":"/b"}"#,
            r#"{"reason":"compiler-artifact","profile":{"test":true},"executable":null}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        assert_eq!(programs(&messages.join("\n")), [PathBuf::from("/b")]);
    }

    #[test]
    fn values_that_a_schema_lists_are_found() {
        let listed = |subject: &str, name: &str| {
            super::listed(&Entry {
                subject: subject.to_owned(),
                name: name.to_owned(),
            })
        };
        let bond = "spec.networkData.links.bonds[].bondMode";
        assert_eq!(listed("Metal3DataTemplate", bond).as_deref(), Some("802.3ad"));
        assert_eq!(listed("Metal3DataTemplate", "spec.clusterName"), None);
    }
}
