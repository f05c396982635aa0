//! `alerts-check`: the real promtool checks the rules of alerts, and runs the tests that `scenarios alerts` wrote.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use metal3_files::{documents, workspace};

use crate::tools;

const PROGRAM: &str = "promtool";
/// The Debian package with it.
const PACKAGE: &str = "prometheus";
const RULES: &str = "manifests/monitoring/rules.yaml";

/// Checks the rules, and runs the tests of a folder.
pub(crate) fn check(folder: &Path) -> Result<bool> {
    tools::install(PROGRAM, &[PACKAGE])?;
    let rules = workspace::root()?.join(RULES);
    let tests = documents::files(folder, &["yaml"])?;
    ensure!(
        !tests.is_empty(),
        "no test in {}: run `scenarios alerts` first",
        folder.display()
    );
    let is_valid = promtool(&["check", "rules"], &[rules])?;
    Ok(is_valid && promtool(&["test", "rules"], &tests)?)
}

fn promtool(words: &[&str], files: &[PathBuf]) -> Result<bool> {
    let status = Command::new(PROGRAM).args(words).args(files).status();
    Ok(status.context("run promtool")?.success())
}

#[cfg(test)]
mod tests {
    use metal3_explain::runbook;
    use metal3_monitoring::alerts::{ALERTS, Alert};

    use super::*;

    #[test]
    fn each_alert_links_to_sections_that_exist() {
        let pages = runbook::pages();
        for alert in ALERTS {
            for place in alert.see {
                let (file, anchor) = place.split_once('#').unwrap();
                let (_, text) = pages.iter().find(|(name, _)| name == file).unwrap();
                let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
                let found = headings.filter(|heading| heading.to_ascii_lowercase() == anchor);
                assert_eq!(found.count(), 1, "{}: {place}", alert.name);
            }
        }
    }

    #[test]
    fn each_command_of_an_alert_is_one_of_kubectl_metal3() {
        let page = documents::text(&workspace::root().unwrap().join("docs/kubectl-metal3.md")).unwrap();
        let commands = |alert: &Alert| {
            alert
                .cure
                .split("kubectl metal3 ")
                .skip(1)
                .map(first_word)
                .collect::<Vec<_>>()
        };
        for alert in ALERTS {
            for command in commands(alert) {
                let is_row = |line: &str| line.strip_prefix("| `").map(first_word) == Some(command);
                assert!(page.lines().any(is_row), "{}: {command}", alert.name);
            }
        }
    }

    fn first_word(text: &str) -> &str {
        text.split([' ', '`']).next().unwrap_or_default()
    }
}
