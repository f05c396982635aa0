//! `fields --prove`: removes each member that acts from the decoded objects, and requires that a test of its row fails. A member
//! without which an object does not decode gets one value in all objects instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use metal3_api::catalog;
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
    let mut tests = Tests::build(root)?;
    let (mut proven, mut unproven) = (0, 0);
    for (entry, row) in acting.iter().step_by(step) {
        let mut has_failed = false;
        for test in &row.tests {
            has_failed = has_failed || tests.fails_without(entry, test)?;
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

/// The programs with the tests of the workspace.
struct Tests<'a> {
    root: &'a Path,
    programs: Programs,
    /// Tests that pass when nothing is dropped: only their failure shows something.
    passing: BTreeSet<String>,
}

/// Programs by the folder of their package.
type Programs = BTreeMap<PathBuf, Vec<PathBuf>>;

impl<'a> Tests<'a> {
    /// Builds them as `make test` does, so that after it nothing is left to build.
    fn build(root: &'a Path) -> Result<Self> {
        let mut command = Command::new("cargo");
        // `cargo run`, which started this program, set them. Build scripts that read them would run again.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        let output = command
            .args(["test", "--workspace", "--locked", "--no-run", "--quiet"])
            .arg("--message-format=json")
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .context("start cargo")?;
        if !output.status.success() {
            bail!("the tests do not build");
        }
        Ok(Self {
            root,
            programs: programs(&String::from_utf8_lossy(&output.stdout)),
            passing: BTreeSet::new(),
        })
    }

    /// Whether a test fails when the member is removed from every decoded object, and only then.
    fn fails_without(&mut self, entry: &Entry, test: &str) -> Result<bool> {
        if !self.passing.contains(test) {
            if !self.passes(test, &[])? {
                bail!("{test} fails although nothing is dropped");
            }
            self.passing.insert(test.to_owned());
        }
        let mut variables = vec![("METAL3_DROP_MEMBER", format!("{} {}", entry.subject, entry.name))];
        variables.extend(listed(entry).map(|value| ("METAL3_DROP_LISTED", value)));
        Ok(!self.passes(test, &variables)?)
    }

    /// Whether a test passes in the program that contains it.
    fn passes(&self, test: &str, variables: &[(&str, String)]) -> Result<bool> {
        let (folder, name) = test.split_once("::").unwrap_or_default();
        let folder = self.root.join(folder);
        let mut has_passed = false;
        for program in self.programs.get(&folder).into_iter().flatten() {
            let output = Command::new(program)
                .args(["--quiet", name])
                .envs(variables.iter().map(|(name, value)| (name, value)))
                .current_dir(&folder)
                .output()
                .with_context(|| format!("start {}", program.display()))?;
            let text = String::from_utf8_lossy(&output.stdout);
            match (output.status.success(), text.contains("test result: FAILED")) {
                (true, _) => has_passed |= text.contains(" 1 passed"),
                (false, true) => return Ok(false),
                (false, false) => bail!("{test} did not run:\n{text}{}", String::from_utf8_lossy(&output.stderr)),
            }
        }
        if !has_passed {
            bail!("{test} did not run");
        }
        Ok(true)
    }
}

/// Whether cargo sets a variable for the program of a package.
fn is_of_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
        .iter()
        .any(|begin| variable.starts_with(begin))
}

/// The programs with tests that the messages of cargo name.
fn programs(messages: &str) -> Programs {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = Programs::new();
    for message in messages.filter(|message| message.pointer("/profile/test") == Some(&Value::Bool(true))) {
        let path = |member: &str| message.get(member)?.as_str().map(PathBuf::from);
        if let (Some(mut folder), Some(program)) = (path("manifest_path"), path("executable")) {
            folder.pop();
            programs.entry(folder).or_default().push(program);
        }
    }
    programs
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
            r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","profile":{"test":false},"executable":"/a"}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","profile":{"test":true},"executable":"/b"}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","profile":{"test":true},"executable":null}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        let expected = Programs::from([(PathBuf::from("/w/a"), vec![PathBuf::from("/b")])]);
        assert_eq!(programs(&messages.join("\n")), expected);
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
