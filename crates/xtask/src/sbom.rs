//! `sbom`: what the released program is built from, in the form of CycloneDX.
//!
//! The list comes from `cargo tree` for the features and targets of the release, checksums from the lock file. It has no time and
//! no random number: the same commit gives the same file. So the C library, which is that of the machine that links, has no version.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use metal3_files::{documents, workspace};
use metal3_flags::version::version;
use serde_json::{Value, json};

use crate::images::{RELEASED, triples};

const PROGRAM: &str = "metal3-manager";

/// Writes the document.
pub(crate) fn run(path: &Path) -> Result<bool> {
    let root = workspace::root()?;
    let packages = packages(&trees(&root)?);
    let mut document = document(&packages, &checksums(&documents::text(&root.join("Cargo.lock"))?));
    let compiler = documents::text(&root.join("rust-toolchain.toml"))?;
    if let Some(Value::Array(components)) = document.get_mut("components") {
        components.extend(linked(
            channel(&compiler).context("rust-toolchain.toml names no channel")?,
        ));
    }
    fs::write(path, format!("{document:#}\n")).with_context(|| format!("write {}", path.display()))?;
    println!("{}: {} packages", path.display(), packages.len());
    Ok(true)
}

/// What the linker adds to the packages.
fn linked(compiler: &str) -> [Value; 2] {
    let licence = |expression: &str| json!([{ "expression": expression }]);
    [
        json!({
            "type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": compiler,
            "purl": format!("pkg:generic/rust-std@{compiler}"), "licenses": licence("MIT OR Apache-2.0"),
        }),
        json!({
            "type": "library", "bom-ref": "glibc", "name": "glibc", "licenses": licence("LGPL-2.1-or-later"),
            "description": "linked statically; the program contains its version as a text",
        }),
    ]
}

/// The version of the compiler in `rust-toolchain.toml`.
fn channel(text: &str) -> Option<&str> {
    let mut values = text.lines().filter_map(|line| line.split_once('='));
    let (_, value) = values.find(|(name, _)| name.trim() == "channel")?;
    Some(value.trim().trim_matches('"'))
}

/// The packages of the program for one target, in the form of `cargo auditable`, for the program itself.
pub(crate) fn audited(root: &Path, triple: &str) -> Result<Value> {
    let (all, at_run) = (tree(root, "normal,build", triple)?, tree(root, "normal", triple)?);
    let checksums = checksums(&documents::text(&root.join("Cargo.lock"))?);
    Ok(listed(&packages(&all), &packages(&at_run), &checksums))
}

/// `at_run`: those that are not only for the build.
fn listed(
    all: &BTreeMap<Package, String>,
    at_run: &BTreeMap<Package, String>,
    checksums: &BTreeMap<Package, String>,
) -> Value {
    let package = |package: &Package| {
        let (name, version) = package;
        let source = if checksums.contains_key(package) {
            "crates.io"
        } else {
            "local"
        };
        let kind = if at_run.contains_key(package) {
            "runtime"
        } else {
            "build"
        };
        let mut listed = json!({ "name": name, "version": version, "source": source, "kind": kind });
        if let (PROGRAM, Value::Object(members)) = (name.as_str(), &mut listed) {
            members.insert("root".to_owned(), true.into());
        }
        listed
    };
    json!({ "packages": all.keys().map(package).collect::<Vec<_>>() })
}

/// The packages of the released programs of all targets, as cargo prints them.
fn trees(root: &Path) -> Result<String> {
    triples().map(|triple| tree(root, "normal,build", triple)).collect()
}

/// The packages of the released program for a target, as cargo prints them.
fn tree(root: &Path, edges: &str, triple: &str) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--locked", "--package", PROGRAM, "--target", triple])
        .args(RELEASED)
        .args(["--edges", edges, "--prefix", "none", "--format", "{p}|{l}"])
        .current_dir(root)
        .output()
        .context("run cargo tree")?;
    ensure!(
        output.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Name and version.
type Package = (String, String);

/// Packages with their licences, from lines such as `serde v1.0.0 (proc-macro)|MIT OR Apache-2.0 (*)`.
fn packages(tree: &str) -> BTreeMap<Package, String> {
    let lines = tree.lines().filter_map(|line| line.split_once('|'));
    let package = |(package, licence): (&str, &str)| {
        let mut words = package.split_whitespace();
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let licence = licence.trim_end_matches("(*)").trim();
        Some(((name.to_owned(), version.to_owned()), licence.to_owned()))
    };
    lines.filter_map(package).collect()
}

/// Checksums of the packages of a lock file. Packages of the workspace have none.
fn checksums(lock: &str) -> BTreeMap<Package, String> {
    let member = |package: &str, name: &str| {
        let prefix = format!("{name} = \"");
        let line = package.lines().find_map(|line| line.strip_prefix(&prefix));
        line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
    };
    let packages = lock.split("[[package]]");
    let with_checksum = packages.filter_map(|package| {
        let identity = (member(package, "name")?, member(package, "version")?);
        Some((identity, member(package, "checksum")?))
    });
    with_checksum.collect()
}

fn document(packages: &BTreeMap<Package, String>, checksums: &BTreeMap<Package, String>) -> Value {
    let component = |((name, version), licence): (&Package, &String)| {
        // Cargo accepts a slash between alternatives, SPDX does not.
        let licence: Vec<&str> = licence.split('/').map(str::trim).collect();
        let checksum = checksums.get(&(name.clone(), version.clone()));
        // Who registered the name of a package of the workspace at crates.io would be taken for its author.
        let place = if checksum.is_some() { "cargo" } else { "generic" };
        let purl = format!("pkg:{place}/{name}@{version}");
        let mut component = json!({
            "type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version,
            "licenses": [{ "expression": licence.join(" OR ") }],
        });
        if let (Some(checksum), Value::Object(members)) = (checksum, &mut component) {
            members.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
        }
        component
    };
    let components: Vec<Value> = packages.iter().map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": "capm3", "name": "capm3", "version": version(),
            "licenses": [{ "license": { "id": "Apache-2.0" } }],
        } },
        "components": components,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_lists_the_packages_with_their_source_and_purpose() {
        let at_run = packages("metal3-manager v0.1.0 (/checkout)|Apache-2.0\nserde v1.0.1|MIT\n");
        let mut all = at_run.clone();
        all.extend(packages("cc v1.2.0|MIT\n"));
        let lock = "[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"ab\"\n\n\
                    [[package]]\nname = \"cc\"\nversion = \"1.2.0\"\nchecksum = \"cd\"\n";
        assert_eq!(
            listed(&all, &at_run, &checksums(lock)),
            json!({ "packages": [
                { "name": "cc", "version": "1.2.0", "source": "crates.io", "kind": "build" },
                { "name": "metal3-manager", "version": "0.1.0", "source": "local", "kind": "runtime", "root": true },
                { "name": "serde", "version": "1.0.1", "source": "crates.io", "kind": "runtime" },
            ] })
        );
    }

    #[test]
    fn packages_of_other_operating_systems_are_not_listed() {
        let root = workspace::root().unwrap();
        let packages = packages(&trees(&root).unwrap());
        assert!(packages.len() > 100, "{}", packages.len());
        for name in packages.keys().map(|(name, _)| name) {
            let is_other = [
                "windows",
                "schannel",
                "security-framework",
                "jni",
                "wasm-bindgen",
                "js-sys",
            ];
            assert!(!is_other.iter().any(|other| name.starts_with(other)), "{name}");
        }
    }

    #[test]
    fn what_is_linked_is_listed_with_the_version_of_the_compiler() {
        let compiler = channel("[toolchain]\nchannel = \"1.2.3\"\n").unwrap();
        let [library, c] = linked(compiler);
        assert_eq!(
            (&library["name"], &library["version"]),
            (&json!("rust-std"), &json!("1.2.3"))
        );
        assert_eq!(c["licenses"][0]["expression"], "LGPL-2.1-or-later");
    }

    #[test]
    fn a_package_is_listed_once_with_version_licence_and_checksum() {
        let tree = "metal3-x v0.1.0 (/checkout)|Apache-2.0\nserde v1.0.1|MIT / Apache-2.0\n\
                    macro v2.0.0 (proc-macro)|MIT\nserde v1.0.1|MIT / Apache-2.0 (*)\n";
        let lock = "version = 4\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"ab12\"\n\n\
                    [[package]]\nname = \"metal3-x\"\nversion = \"0.1.0\"\n";
        let document = document(&packages(tree), &checksums(lock));
        let components = document["components"].as_array().unwrap();
        let names: Vec<&Value> = components.iter().map(|component| &component["name"]).collect();
        assert_eq!(names, ["macro", "metal3-x", "serde"]);
        assert_eq!(components[0]["version"], "2.0.0");
        assert_eq!(components[1].get("hashes"), None, "a package of the workspace");
        assert_eq!(components[1]["purl"], "pkg:generic/metal3-x@0.1.0");
        assert_eq!(components[2]["purl"], "pkg:cargo/serde@1.0.1");
        assert_eq!(components[2]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            components[2]["hashes"],
            json!([{ "alg": "SHA-256", "content": "ab12" }])
        );
        assert!(!document.to_string().contains("/checkout"));
    }
}
