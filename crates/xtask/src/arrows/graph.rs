//! The dependency graph of the workspace, as `cargo metadata` resolves it.
//!
//! Only normal and build dependencies count, with the features of the workspace. Tests may depend on any package.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use metal3_files::workspace;

/// The released platform; otherwise cargo resolves the packages of every platform.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Packages by name; a name that occurs in two versions is one node.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Packages of this workspace.
    pub(super) members: BTreeSet<String>,
    /// Dependencies of each package.
    pub(super) edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// The graph of this checkout.
    pub(super) fn read() -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args([
                "metadata",
                "--format-version",
                "1",
                "--locked",
                "--filter-platform",
                PLATFORM,
            ])
            .current_dir(workspace::root()?)
            .output()
            .context("run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata = serde_json::from_slice(&output.stdout).context("parse the output of cargo metadata")?;
        Self::parse(&metadata).context("the output of cargo metadata is incomplete")
    }

    fn parse(metadata: &Value) -> Option<Self> {
        let packages = metadata.get("packages")?.as_array()?;
        let names: BTreeMap<&str, &str> = packages
            .iter()
            .filter_map(|package| Some((package.get("id")?.as_str()?, package.get("name")?.as_str()?)))
            .collect();
        let name = |id: &Value| names.get(id.as_str()?).map(|name| (*name).to_owned());
        let members = metadata.get("workspace_members")?.as_array()?;
        let mut graph = Self {
            members: members.iter().filter_map(name).collect(),
            ..Self::default()
        };
        for node in metadata.pointer("/resolve/nodes")?.as_array()? {
            let compiled = node.get("deps")?.as_array()?.iter().filter(|dep| is_compiled_in(dep));
            let into = graph.edges.entry(name(node.get("id")?)?).or_default();
            into.extend(compiled.filter_map(|dep| name(dep.get("pkg")?)));
        }
        Some(graph)
    }

    /// Direct dependencies of a package.
    pub(super) fn imports(&self, package: &str) -> impl Iterator<Item = &str> {
        self.edges.get(package).into_iter().flatten().map(String::as_str)
    }

    /// The shortest chain of dependencies between two packages.
    pub(super) fn chain(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut seen = BTreeSet::from([from.to_owned()]);
        let mut open = VecDeque::from([vec![from.to_owned()]]);
        while let Some(chain) = open.pop_front() {
            let last = chain.last()?;
            if last == to {
                return Some(chain);
            }
            for next in self.imports(last) {
                if seen.insert(next.to_owned()) {
                    open.push_back(chain.iter().cloned().chain([next.to_owned()]).collect());
                }
            }
        }
        None
    }
}

fn is_compiled_in(dependency: &Value) -> bool {
    let kinds = dependency.get("dep_kinds").and_then(Value::as_array);
    kinds.is_some_and(|kinds| {
        kinds
            .iter()
            .any(|kind| kind.get("kind").is_none_or(|kind| *kind != "dev"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dev_dependencies_do_not_count() {
        let dep = |pkg: &str, kind: Value| json!({ "pkg": pkg, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [{ "id": "1", "name": "a" }, { "id": "2", "name": "b" }, { "id": "3", "name": "c" }, { "id": "4", "name": "d" }],
            "workspace_members": ["1"],
            "resolve": { "nodes": [{ "id": "1", "deps": [dep("2", json!(null)), dep("3", json!("dev")), dep("4", json!("build"))] }] },
        });
        let graph = Graph::parse(&metadata).unwrap();
        assert_eq!(graph.imports("a").collect::<Vec<_>>(), ["b", "d"]);
        assert_eq!(graph.members, ["a".to_owned()].into());
    }

    #[test]
    fn metadata_without_a_resolution_is_rejected() {
        assert!(Graph::parse(&json!({ "packages": [], "workspace_members": [] })).is_none());
    }
}
