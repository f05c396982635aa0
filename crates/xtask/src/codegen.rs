//! `codegen`: the files that are written from tables in the code. A file in the folder that no table accounts for is
//! removed, so a renamed kind leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{workspace, yaml};

const HEADER: &str = "# Written by `cargo run -p xtask -- codegen` from the tables in `api`. Do not edit.\n";

/// Writes the generated files, or with `check` tells whether they are up to date.
pub(crate) fn run(check: bool) -> Result<bool> {
    let folder = workspace::root()?.join("manifests/crds");
    let wanted = crds();
    let drift = differences(&folder, &wanted)?;
    if check {
        for path in &drift {
            println!("out of date: {}", path.display());
        }
        let nodes: usize = metal3_api::catalog::definitions()
            .iter()
            .map(|crd| count_nodes(&crd.manifest()))
            .sum();
        println!(
            "codegen: {} CRDs with {nodes} described members, {} out of date",
            wanted.len(),
            drift.len()
        );
        if !drift.is_empty() {
            println!("run `cargo run -p xtask -- codegen` and commit the result");
        }
        return Ok(drift.is_empty());
    }
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    for path in &drift {
        match path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| wanted.get(name))
        {
            Some(text) => fs::write(path, text).with_context(|| format!("write {}", path.display()))?,
            None => fs::remove_file(path).with_context(|| format!("remove {}", path.display()))?,
        }
        println!("{}", path.display());
    }
    Ok(true)
}

fn crds() -> BTreeMap<String, String> {
    metal3_api::catalog::definitions()
        .iter()
        .map(|crd| {
            let name = format!("{}_{}.yaml", crd.group, crd.plural);
            (name, format!("{HEADER}{}", yaml::document(&crd.manifest())))
        })
        .collect()
}

/// Files whose content is not what it should be, missing ones and unaccounted ones among them.
fn differences(folder: &Path, wanted: &BTreeMap<String, String>) -> Result<Vec<PathBuf>> {
    let mut drift = Vec::new();
    for (name, text) in wanted {
        let path = folder.join(name);
        if fs::read_to_string(&path).ok().as_ref() != Some(text) {
            drift.push(path);
        }
    }
    if folder.is_dir() {
        for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
            let entry = entry?;
            if !wanted.contains_key(entry.file_name().to_string_lossy().as_ref()) {
                drift.push(entry.path());
            }
        }
    }
    drift.sort();
    Ok(drift)
}

/// Members of all schemas that carry a description.
fn count_nodes(node: &serde_json::Value) -> usize {
    let own = usize::from(node.get("description").is_some_and(serde_json::Value::is_string));
    let below: usize = match node {
        serde_json::Value::Object(map) => map.values().map(count_nodes).sum(),
        serde_json::Value::Array(items) => items.iter().map(count_nodes).sum(),
        _ => 0,
    };
    own + below
}
