//! The packages of the released program: what `cargo tree` prints for its features and targets, and where their sources are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::images::{RELEASED, triples};
use crate::run::succeed;

/// The package of the program.
pub(crate) const PROGRAM: &str = "metal3-manager";

/// Name and version.
pub(crate) type Package = (String, String);

/// Packages, and what each needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packages {
    /// The licence of each.
    pub(crate) licences: BTreeMap<Package, String>,
    /// Those that need others.
    pub(crate) needs: BTreeMap<Package, BTreeSet<Package>>,
}

impl Packages {
    /// Those of the programs of all targets.
    pub(crate) fn released(root: &Path) -> Result<Self> {
        let mut all = Self::default();
        for triple in triples() {
            let of_target = Self::of_target(root, "normal,build", triple)?;
            all.licences.extend(of_target.licences);
            for (package, needed) in of_target.needs {
                all.needs.entry(package).or_default().extend(needed);
            }
        }
        Ok(all)
    }

    /// Those of the program for a target. `edges`: `normal`, or `normal,build`.
    pub(crate) fn of_target(root: &Path, edges: &str, triple: &str) -> Result<Self> {
        let tree = succeed(
            cargo()
                .args(["tree", "--locked", "--package", PROGRAM, "--target", triple])
                .args(RELEASED)
                .args(["--edges", edges, "--prefix", "depth", "--format", "{p}|{l}"])
                .current_dir(root),
        )?;
        Self::read(&tree)
    }

    /// Reads lines such as `2serde v1.0.0 (proc-macro)|MIT OR Apache-2.0 (*)`: what a package needs follows it, one deeper, at the
    /// first of its places.
    pub(crate) fn read(tree: &str) -> Result<Self> {
        let mut all = Self::default();
        let mut above: Vec<Package> = Vec::new();
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let (depth, package, licence) = parted(line).with_context(|| format!("cargo tree printed `{line}`"))?;
            ensure!(depth <= above.len(), "cargo tree printed `{line}` below nothing");
            above.truncate(depth);
            if let Some(needing) = above.last() {
                all.needs.entry(needing.clone()).or_default().insert(package.clone());
            }
            all.licences.insert(package.clone(), licence);
            above.push(package);
        }
        Ok(all)
    }
}

fn parted(line: &str) -> Option<(usize, Package, String)> {
    let (package, licence) = line.split_once('|')?;
    let name = package.trim_start_matches(|c: char| c.is_ascii_digit());
    let depth = package.strip_suffix(name)?.parse().ok()?;
    let mut words = name.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let licence = licence.trim_end_matches("(*)").trim();
    Some((depth, (name.to_owned(), version.to_owned()), licence.to_owned()))
}

/// The folders of all packages of the lock file that the targets need. Those of the workspace have none.
pub(crate) fn folders(root: &Path) -> Result<BTreeMap<Package, Option<PathBuf>>> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    for triple in triples() {
        metadata.args(["--filter-platform", triple]);
    }
    let text = succeed(metadata.current_dir(root))?;
    let read: Value = serde_json::from_str(&text).context("read the answer of cargo metadata")?;
    let packages = read.get("packages").and_then(Value::as_array);
    let folder = |package: &Value| {
        let text = |member: &str| package.get(member).and_then(Value::as_str);
        let identity = (text("name")?.to_owned(), text("version")?.to_owned());
        let folder = Path::new(text("manifest_path")?).parent()?.to_owned();
        Some((identity, text("source").map(|_| folder)))
    };
    let folders: Option<BTreeMap<_, _>> = packages.and_then(|all| all.iter().map(folder).collect());
    folders.context("cargo metadata names no packages")
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use metal3_files::workspace;

    use super::*;

    fn package(name: &str) -> Package {
        (name.to_owned(), "1.0.0".to_owned())
    }

    #[test]
    fn packages_have_their_licences_and_what_they_need() {
        let tree = "0a v1.0.0 (/checkout)|Apache-2.0\n1b v1.0.0|MIT / Apache-2.0\n2c v1.0.0 (proc-macro)|MIT\n1d v1.0.0|ISC\n\
                    2b v1.0.0|MIT / Apache-2.0 (*)\n\n0a v1.0.0 (/checkout)|Apache-2.0\n1e v1.0.0|MIT\n";
        let found = Packages::read(tree).unwrap();
        let licences: Vec<(&str, &str)> = found
            .licences
            .iter()
            .map(|((name, _), licence)| (name.as_str(), licence.as_str()))
            .collect();
        assert_eq!(
            licences,
            [
                ("a", "Apache-2.0"),
                ("b", "MIT / Apache-2.0"),
                ("c", "MIT"),
                ("d", "ISC"),
                ("e", "MIT")
            ]
        );
        let wanted = [("a", vec!["b", "d", "e"]), ("b", vec!["c"]), ("d", vec!["b"])]
            .map(|(name, needed)| (package(name), needed.into_iter().map(package).collect()));
        assert_eq!(found.needs, wanted.into());
    }

    #[test]
    fn line_that_is_no_package_is_an_error() {
        for line in [
            "serde",
            "0serde v1.0.0",
            "serde v1.0.0|MIT",
            "0serde 1.0.0|MIT",
            "1serde v1.0.0|MIT",
        ] {
            let error = Packages::read(line).unwrap_err().to_string();
            assert!(error.contains(&format!("`{line}`")), "{error}");
        }
    }

    #[test]
    fn packages_of_other_operating_systems_are_not_listed_and_all_are_needed() {
        let packages = Packages::released(&workspace::root().unwrap()).unwrap();
        assert!(packages.licences.len() > 100, "{}", packages.licences.len());
        let needed: BTreeSet<&Package> = packages.needs.values().flatten().collect();
        for package in packages.licences.keys() {
            let is_other = [
                "windows",
                "schannel",
                "security-framework",
                "jni",
                "wasm-bindgen",
                "js-sys",
            ];
            assert!(
                !is_other.iter().any(|other| package.0.starts_with(other)),
                "{package:?}"
            );
            assert!(needed.contains(package) || package.0 == PROGRAM, "{package:?}");
        }
    }
}
