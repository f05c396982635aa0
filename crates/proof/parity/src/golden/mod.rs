//! `golden`: compares with recorded answers of the Go managers.
//!
//! A case matches, deviates by a rule, or fails. A rule is a predicate on the input with a computed expectation and a
//! row in `docs/parity.md`; there are no exceptions for single cases. Groups without an implementation are counted as
//! pending. Recordings of whole installations are replayed completely.

mod admission;
mod adoption;
mod bmcaddress;
mod case;
mod conversion;
mod data;
mod evaluate;
mod group;
mod ipam;
mod parity;
mod providers;
mod server;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use case::Case;
use group::Group;

/// The implemented groups; all others are pending.
fn groups() -> impl Iterator<Item = Group> {
    admission::GROUPS
        .into_iter()
        .chain([bmcaddress::GROUP, conversion::GROUP, ipam::GROUP])
        .chain(data::GROUPS)
}

/// Runs all cases of a folder, or those of one group. `is_whole`: the folder is the whole recorded set, in which every
/// rule has a case.
pub(crate) fn run(folder: &Path, only: Option<&str>, is_whole: bool) -> Result<bool> {
    let is_wanted = |name: &str| only.is_none_or(|only| only == name) && folder.join(name).is_dir();
    let mut is_fine = true;
    if is_wanted(adoption::FOLDER) {
        is_fine &= replay_adoption(&folder.join(adoption::FOLDER))?;
    }
    if is_wanted(providers::FOLDER) {
        is_fine &= providers::run(&folder.join(providers::FOLDER))?;
    }
    if let Some(only) = only.filter(|only| FOLDERS.contains(only)) {
        ensure!(folder.join(only).is_dir(), "no {only} below {}", folder.display());
        return Ok(is_fine);
    }
    Ok(is_fine & answer(folder, only, is_whole)?)
}

/// Folders with recordings instead of cases.
const FOLDERS: [&str; 2] = [adoption::FOLDER, providers::FOLDER];

/// Returns whether every recorded snapshot is taken over without a loss.
fn replay_adoption(folder: &Path) -> Result<bool> {
    let mut errors = 0;
    for recording in adoption::read(folder)? {
        println!("{}", recording.summary());
        let report = adoption::replay_recording(&recording)?;
        report.errors.iter().for_each(|what| println!("{what}"));
        println!(
            "adoption/{}: {} snapshots taken over, {} without nodes, {} losses",
            recording.name,
            report.snapshots,
            report.skipped,
            report.errors.len()
        );
        errors += report.errors.len();
    }
    Ok(errors == 0)
}

/// Returns whether every case matches the recording, or deviates as a row of the parity document predicts.
fn answer(folder: &Path, only: Option<&str>, is_whole: bool) -> Result<bool> {
    let (cases, mut recordings) = case::read(folder)?;
    recordings.retain(|name| !FOLDERS.contains(&name.as_str()));
    let wanted =
        |case: &&Case| only.is_none_or(|only| only == case.group || only == format!("{}/{}", case.group, case.file));
    let cases: Vec<&Case> = cases.iter().filter(wanted).collect();
    if cases.is_empty() {
        bail!("no cases of {} below {}", only.unwrap_or("any group"), folder.display());
    }
    if only.is_none() && !recordings.is_empty() {
        println!("skipped recordings of another kind: {}", recordings.join(", "));
    }
    let document = parity::Document::read()?;
    let (mut hold, mut deviate, mut fail) = (0, 0, 0);
    for group in groups() {
        let own: Vec<&Case> = cases.iter().copied().filter(|case| group.covers(case)).collect();
        if own.is_empty() {
            continue;
        }
        let report = evaluate::evaluate(&group, &own, &document, is_whole);
        for failure in &report.failures {
            println!("{failure}");
        }
        for (row, count) in &report.used {
            println!("{}: {row} covers {count} of {} cases", group.name, own.len());
        }
        println!("{}: {} hold, {} deviate", group.name, report.hold, report.deviate);
        hold += report.hold;
        deviate += report.deviate;
        fail += report.failures.len();
    }
    let pending = pending(&cases);
    for (group, count) in &pending {
        println!("{group}: {count} pending");
    }
    let pending: usize = pending.values().sum();
    println!("golden: {hold} hold, {deviate} deviate, {pending} pending, {fail} fail");
    Ok(fail == 0)
}

/// Cases without an implementation, by folder.
fn pending<'a>(cases: &[&'a Case]) -> BTreeMap<&'a str, usize> {
    let mut pending = BTreeMap::new();
    for case in cases.iter().filter(|case| !groups().any(|group| group.covers(case))) {
        *pending.entry(case.group.as_str()).or_default() += 1;
    }
    pending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_that_a_rule_of_the_api_names_has_a_row() {
        let document = parity::Document::read().unwrap();
        let missing: Vec<String> = metal3_api::catalog::reviewers()
            .iter()
            .flat_map(|reviewer| (reviewer.rows)().into_iter().map(|row| (reviewer.kind, row)))
            .filter_map(|(kind, row)| Some((kind, row.differs?)))
            .filter(|(_, name)| document.why(name).is_none())
            .map(|(kind, name)| format!("{kind}: {name}"))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn every_rule_has_a_row_in_the_parity_document() {
        let document = parity::Document::read().unwrap();
        for rule in groups().flat_map(|group| group.rules) {
            assert!(document.why(rule.row).is_some(), "{}", rule.row);
        }
    }
}
