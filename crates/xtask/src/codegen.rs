//! `codegen`: generates files from tables in the code. Files in generated folders that no table produces are removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metal3_domain::yaml;
use metal3_webhooks::manifest::configurations;
use metal3_webhooks::table::SUITES;

use metal3_files::workspace;
use metal3_monitoring::alerts;

use crate::pages;
use crate::release::kustomize;

const CRDS: &str = "manifests/crds";
const WEBHOOKS: &str = "manifests/webhooks";
const RUNBOOKS: &str = "docs/runbooks";
/// Rules of alerts, and dashboards.
const MONITORING: &str = "manifests/monitoring";
const DASHBOARDS: &str = "manifests/dashboards";

/// Writes the generated files, or with `check` reports whether they are up to date.
pub(crate) fn run(check: bool) -> Result<bool> {
    let root = workspace::root()?;
    let mut wanted = crds(&root.join(CRDS));
    let kinds = wanted.len();
    wanted.extend(webhooks(&root.join(WEBHOOKS)));
    wanted.extend(pages::wanted(&root.join("docs/controllers"))?);
    wanted.insert(root.join("docs/flags.md"), metal3_flags::page());
    wanted.extend(pages::why(&root.join("docs/why.md"))?);
    wanted.extend(pages::plugin(&root.join("docs/kubectl-metal3.md"))?);
    let runbooks = root.join(RUNBOOKS);
    let pages = metal3_explain::runbook::pages();
    wanted.extend(pages.into_iter().map(|(name, text)| (runbooks.join(name), text)));
    wanted.extend(monitoring(&root));
    let kustomizations = kustomize::files()?.into_iter();
    wanted.extend(kustomizations.map(|(path, text)| (root.join(path), text)));
    let mut owned = vec![root.join(CRDS), root.join(WEBHOOKS), runbooks];
    owned.extend([root.join(MONITORING), root.join(DASHBOARDS)]);
    owned.extend(kustomize::folders().map(|folder| root.join(folder)));
    let drift = differences(&owned, &wanted)?;
    if check {
        for path in &drift {
            println!("out of date: {}", path.display());
        }
        let members: usize = metal3_api::catalog::definitions()
            .iter()
            .map(|crd| described(&crd.manifest()))
            .sum();
        println!(
            "codegen: {kinds} CRDs with {members} described members, {} of {} files out of date",
            drift.len(),
            wanted.len()
        );
        if !drift.is_empty() {
            println!("run `cargo run -p xtask -- codegen` and commit the result");
        }
        return Ok(drift.is_empty());
    }
    for path in &drift {
        write_or_remove(path, wanted.get(path))?;
        println!("{}", path.display());
    }
    Ok(true)
}

fn write_or_remove(path: &Path, text: Option<&String>) -> Result<()> {
    let Some(text) = text else {
        return fs::remove_file(path).with_context(|| format!("remove {}", path.display()));
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

fn crds(folder: &Path) -> BTreeMap<PathBuf, String> {
    metal3_api::catalog::definitions()
        .iter()
        .map(|crd| {
            let path = folder.join(format!("{}_{}.yaml", crd.group, crd.plural));
            (path, format!("{}{}", header("api"), yaml::document(&crd.manifest())))
        })
        .collect()
}

/// The webhook configurations, a file for each suite.
fn webhooks(folder: &Path) -> BTreeMap<PathBuf, String> {
    SUITES
        .iter()
        .map(|suite| {
            let documents: String = configurations(suite).iter().map(yaml::document).collect();
            let path = folder.join(format!("{}.yaml", suite.prefix));
            (path, format!("{}{documents}", header("webhooks")))
        })
        .collect()
}

/// The pages about metrics and alerts, the rules and the dashboards.
fn monitoring(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut wanted = BTreeMap::from([
        (root.join("docs/metrics.md"), metal3_monitoring::page()),
        (root.join("docs").join(alerts::RUNBOOK), alerts::page()),
    ]);
    let rules = crate::release::monitoring::files().into_iter();
    wanted.extend(rules.map(|(name, text)| (root.join(MONITORING).join(name), text)));
    let dashboards = crate::release::monitoring::dashboards();
    wanted.extend(dashboards.map(|(name, text)| (root.join(DASHBOARDS).join(name), text)));
    wanted
}

pub(crate) fn header(source: &str) -> String {
    format!("# Written by `cargo run -p xtask -- codegen` from the tables in `{source}`. Do not edit.\n")
}

/// Files with another content than generated, including missing and superfluous ones.
fn differences(owned: &[PathBuf], wanted: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>> {
    let mut drift: Vec<PathBuf> = wanted
        .iter()
        .filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text))
        .map(|(path, _)| path.clone())
        .collect();
    for folder in owned.iter().filter(|folder| folder.is_dir()) {
        for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
            let path = entry?.path();
            if !wanted.contains_key(&path) {
                drift.push(path);
            }
        }
    }
    drift.sort();
    Ok(drift)
}

/// Number of described members in a schema.
fn described(node: &serde_json::Value) -> usize {
    let own = usize::from(node.get("description").is_some_and(serde_json::Value::is_string));
    let below: usize = match node {
        serde_json::Value::Object(map) => map.values().map(described).sum(),
        serde_json::Value::Array(items) => items.iter().map(described).sum(),
        _ => 0,
    };
    own + below
}
