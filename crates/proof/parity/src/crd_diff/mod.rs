//! `crd-diff`: our definitions beside the Go managers'.
//!
//! The rule is *superset*: whatever upstream's definitions accept and keep, ours accept and keep. Every difference is
//! wider, narrower or neither; what is not narrower may be excused by an entry of the allow-file, one node each.
//! Descriptions are not compared. A pattern that differs counts as narrower, since containment of patterns is not
//! decided here.

mod allow;
mod definition;
mod difference;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use difference::{Difference, Direction, Node};
use metal3_files::{documents, workspace};

/// Where the differences that are meant stand, with their reasons.
const ALLOWED: &str = "crates/proof/parity/crd-diff.allow.yaml";

/// What a comparison found.
#[derive(Debug, Default)]
struct Comparison {
    definitions: usize,
    nodes: usize,
    differences: Vec<Difference>,
}

/// Compares, prints, and tells whether every difference is meant.
pub(crate) fn run(folder: &Path) -> Result<bool> {
    let upstream = read(folder)?;
    if upstream.is_empty() {
        bail!("no CustomResourceDefinition below {}", folder.display());
    }
    let ours: BTreeMap<String, Value> = metal3_api::catalog::definitions()
        .iter()
        .map(|crd| (crd.name(), crd.manifest()))
        .collect();
    let allowed = allow::parse(&documents::text(&workspace::root()?.join(ALLOWED))?)?;
    let comparison = compare(&upstream, &ours);
    let verdict = allow::judge(&comparison.differences, &allowed);
    for difference in &verdict.unexplained {
        println!("{difference}");
    }
    for (entry, difference) in &verdict.forbidden {
        println!("may not be excused ({}): {difference}", entry.label());
    }
    for entry in &verdict.unused {
        println!("unused entry in {ALLOWED}: {}", entry.label());
    }
    let going = |direction| {
        let same = |difference: &&Difference| difference.direction == direction;
        comparison.differences.iter().filter(same).count()
    };
    println!(
        "crd-diff: {} CRDs, {} schema nodes compared; {} wider, {} narrower, {} other; {} excused, {} unexplained, {} unused entries",
        comparison.definitions,
        comparison.nodes,
        going(Direction::Wider),
        going(Direction::Narrower),
        going(Direction::Other),
        verdict.excused,
        verdict.unexplained.len() + verdict.forbidden.len(),
        verdict.unused.len(),
    );
    Ok(verdict.is_clean())
}

/// The definitions below a folder, by name.
fn read(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for file in documents::files(folder, &["yaml", "yml"])? {
        let text = documents::text(&file)?;
        // Templates with variables are no YAML yet, and hold no definition.
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

fn compare(upstream: &BTreeMap<String, Value>, ours: &BTreeMap<String, Value>) -> Comparison {
    let mut comparison = Comparison::default();
    for (name, theirs) in upstream {
        match ours.get(name) {
            Some(own) => {
                let (differences, nodes) = definition::compare(theirs, own);
                comparison.definitions += 1;
                comparison.nodes += nodes;
                comparison.differences.extend(differences);
            }
            None => comparison.differences.push(whole(theirs, Direction::Narrower)),
        }
    }
    let groups: Vec<&Value> = upstream.values().filter_map(|crd| crd.pointer("/spec/group")).collect();
    for (name, own) in ours {
        let same_group = own.pointer("/spec/group").is_some_and(|group| groups.contains(&group));
        if same_group && !upstream.contains_key(name) {
            comparison.differences.push(whole(own, Direction::Wider));
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
