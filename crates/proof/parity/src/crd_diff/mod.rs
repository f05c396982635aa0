//! `crd-diff`: compares the CRDs with those of the Go managers.
//!
//! The rule is *superset*: documents that upstream accepts and keeps are accepted and kept here. Every difference is
//! wider, narrower or neither; an entry of the allow-file can excuse one that is not narrower, for one node each.
//! Descriptions are not compared. A different pattern counts as narrower, because containment of patterns is not
//! decided.

mod allow;
mod definition;
mod difference;
mod keywords;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use difference::{Difference, Direction, Node};
use metal3_files::{documents, workspace};

/// The allow-file: deliberate differences with their reasons.
const ALLOWED: &str = "crates/proof/parity/crd-diff.allow.yaml";

/// Result of the comparison.
#[derive(Debug, Default)]
struct Comparison {
    definitions: usize,
    nodes: usize,
    differences: Vec<Difference>,
}

/// Compares and prints; returns whether every difference is deliberate.
pub(crate) fn run(folder: &Path) -> Result<bool> {
    let upstream = read(folder)?;
    if upstream.is_empty() {
        bail!("no CustomResourceDefinition below {}", folder.display());
    }
    let project: BTreeMap<String, Value> = metal3_api::catalog::definitions()
        .iter()
        .map(|crd| (crd.name(), crd.manifest()))
        .collect();
    let allowed = allow::parse(&documents::text(&workspace::root()?.join(ALLOWED))?)?;
    let comparison = compare(&upstream, &project);
    let evaluation = allow::evaluate(&comparison.differences, &allowed);
    for difference in &evaluation.unexplained {
        println!("{difference}");
    }
    for (entry, difference) in &evaluation.forbidden {
        println!("cannot be excused ({}): {difference}", entry.label());
    }
    for entry in &evaluation.unused {
        println!("unused entry in {ALLOWED}: {}", entry.label());
    }
    let count_of = |direction| {
        let same = |difference: &&Difference| difference.direction == direction;
        comparison.differences.iter().filter(same).count()
    };
    println!(
        "crd-diff: {} CRDs, {} schema nodes compared; {} wider, {} narrower, {} other; {} excused, {} unexplained, {} unused entries",
        comparison.definitions,
        comparison.nodes,
        count_of(Direction::Wider),
        count_of(Direction::Narrower),
        count_of(Direction::Other),
        evaluation.excused,
        evaluation.unexplained.len() + evaluation.forbidden.len(),
        evaluation.unused.len(),
    );
    Ok(evaluation.is_clean())
}

/// CRDs below a folder, by name.
fn read(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for file in documents::files(folder, &["yaml", "yml"])? {
        let text = documents::text(&file)?;
        // Templates with variables are not valid YAML, and contain no CRD.
        if !text.contains("kind: CustomResourceDefinition") {
            continue;
        }
        for document in documents::parse(&text, &file)? {
            if document.type_meta() != Some(("apiextensions.k8s.io/v1", "CustomResourceDefinition")) {
                continue;
            }
            let name = document.value.pointer("/metadata/name").and_then(Value::as_str);
            let name = name.with_context(|| format!("{} defines nothing", document.label()))?;
            if found.insert(name.to_owned(), document.value.clone()).is_some() {
                bail!("{name} is defined twice below {}", folder.display());
            }
        }
    }
    Ok(found)
}

fn compare(upstream: &BTreeMap<String, Value>, project: &BTreeMap<String, Value>) -> Comparison {
    let mut comparison = Comparison::default();
    for (name, expected) in upstream {
        match project.get(name) {
            Some(actual) => {
                let (differences, nodes) = definition::compare(expected, actual);
                comparison.definitions += 1;
                comparison.nodes += nodes;
                comparison.differences.extend(differences);
            }
            None => comparison.differences.push(whole(expected, Direction::Narrower)),
        }
    }
    let groups: Vec<&Value> = upstream.values().filter_map(|crd| crd.pointer("/spec/group")).collect();
    for (name, actual) in project {
        let same_group = actual
            .pointer("/spec/group")
            .is_some_and(|group| groups.contains(&group));
        if same_group && !upstream.contains_key(name) {
            comparison.differences.push(whole(actual, Direction::Wider));
        }
    }
    comparison
}

/// A kind that only one side defines.
fn whole(crd: &Value, direction: Direction) -> Difference {
    let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str);
    let node = Node {
        kind: kind.unwrap_or_default().to_owned(),
        version: None,
        path: String::new(),
    };
    let name = crd.pointer("/metadata/name");
    match direction {
        Direction::Narrower => node.difference("kind", direction, name, None),
        Direction::Wider | Direction::Other => node.difference("kind", direction, None, name),
    }
}
