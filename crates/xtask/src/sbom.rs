//! `sbom`: what the released program is built from, in the form of CycloneDX.
//!
//! The list comes from `cargo tree` for the features and targets of the release, checksums from the lock file, and the versions of
//! the standard library from the images. It has no time and no random number: the same commit and compiler give the same file. The C
//! library, which is that of the machine that links, has no version.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use metal3_files::{documents, workspace};
use metal3_flags::version::version;
use serde_json::{Value, json};

use crate::images::Written;
use crate::notices;
use crate::packages::{PROGRAM, Package, Packages};

/// What depends on everything: the file that is released.
const FILE: &str = "capm3";

/// Writes the document for the images in a folder.
pub(crate) fn run(path: &Path, images: &Path) -> Result<bool> {
    let root = workspace::root()?;
    let packages = Packages::released(&root)?;
    let checksums = checksums(&documents::text(&root.join("Cargo.lock"))?);
    let written = Written::read(images)?;
    let compilers = compilers(&written.compiler);
    ensure!(
        !compilers.is_empty(),
        "the images name no version of rustc: run `make images`"
    );
    let document = document(&packages, &checksums, &linked(&compilers));
    fs::write(path, format!("{document:#}\n")).with_context(|| format!("write {}", path.display()))?;
    println!("{}: {} packages", path.display(), packages.licences.len());
    Ok(true)
}

/// The versions of `rustc` in a text: each architecture may have another.
fn compilers(text: &str) -> BTreeSet<&str> {
    let named = text.split("rustc ").skip(1);
    named.filter_map(|rest| rest.split_whitespace().next()).collect()
}

/// What the linker adds to the packages. What comes with a compiler is there once for each.
fn linked(compilers: &BTreeSet<&str>) -> Vec<Value> {
    let component = |library: &notices::Library, version: Option<&str>| {
        let reference = match version.filter(|_| compilers.len() > 1) {
            Some(version) => format!("{}-{version}", library.name),
            None => library.name.to_owned(),
        };
        let mut component = json!({
            "type": "library", "bom-ref": reference, "name": library.name,
            "licenses": [{ "expression": library.licence }], "description": library.about,
        });
        if let (Some(version), Value::Object(members)) = (version, &mut component) {
            members.insert("version".to_owned(), version.into());
            members.insert(
                "purl".to_owned(),
                format!("pkg:generic/{}@{version}", library.name).into(),
            );
        }
        component
    };
    let mut components = Vec::new();
    for library in &notices::LIBRARIES {
        if library.is_of_compiler {
            components.extend(compilers.iter().map(|version| component(library, Some(version))));
        } else {
            components.push(component(library, None));
        }
    }
    components
}

/// The packages of the program for one target, in the form of `cargo auditable`, for the program itself.
pub(crate) fn audited(root: &Path, triple: &str) -> Result<Value> {
    let all = Packages::of_target(root, "normal,build", triple)?;
    let at_run = Packages::of_target(root, "normal", triple)?;
    let checksums = checksums(&documents::text(&root.join("Cargo.lock"))?);
    Ok(listed(&all.licences, &at_run.licences, &checksums))
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

/// `linked`: components that are no packages.
fn document(packages: &Packages, checksums: &BTreeMap<Package, String>, linked: &[Value]) -> Value {
    let reference = |package: &Package| {
        let (name, version) = package;
        // Who registered the name of a package of the workspace at crates.io would be taken for its author.
        let place = if checksums.contains_key(package) {
            "cargo"
        } else {
            "generic"
        };
        format!("pkg:{place}/{name}@{version}")
    };
    let component = |(package, licence): (&Package, &String)| {
        // Cargo accepts a slash between alternatives, SPDX does not.
        let licence: Vec<&str> = licence.split('/').map(str::trim).collect();
        let (reference, (name, version)) = (reference(package), package);
        let mut component = json!({
            "type": "library", "bom-ref": reference, "purl": reference, "name": name, "version": version,
            "licenses": [{ "expression": licence.join(" OR ") }],
        });
        if let (Some(checksum), Value::Object(members)) = (checksums.get(package), &mut component) {
            members.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
        }
        component
    };
    let mut components: Vec<Value> = packages.licences.iter().map(component).collect();
    components.extend(linked.iter().cloned());
    let programs = packages
        .licences
        .keys()
        .filter(|(name, _)| name == PROGRAM)
        .map(reference);
    let libraries = linked
        .iter()
        .filter_map(|library| library.get("bom-ref")?.as_str().map(str::to_owned));
    let mut dependencies = vec![json!({ "ref": FILE, "dependsOn": programs.chain(libraries).collect::<Vec<_>>() })];
    dependencies.extend(packages.needs.iter().map(|(package, needed)| {
        json!({ "ref": reference(package), "dependsOn": needed.iter().map(reference).collect::<Vec<_>>() })
    }));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": FILE, "name": FILE, "version": version(),
            "licenses": [{ "license": { "id": "Apache-2.0" } }],
        } },
        "components": components,
        "dependencies": dependencies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"ab12\"\n\n\
                        [[package]]\nname = \"cc\"\nversion = \"1.2.0\"\nchecksum = \"cd\"\n\n\
                        [[package]]\nname = \"metal3-manager\"\nversion = \"0.1.0\"\n";
    const AT_RUN: &str = "0metal3-manager v0.1.0 (/checkout)|Apache-2.0\n1serde v1.0.1|MIT / Apache-2.0\n";

    fn packages(more: &str) -> Packages {
        Packages::read(&format!("{AT_RUN}{more}")).unwrap()
    }

    #[test]
    fn program_lists_the_packages_with_their_source_and_purpose() {
        let (at_run, all) = (packages(""), packages("1cc v1.2.0|MIT\n"));
        assert_eq!(
            listed(&all.licences, &at_run.licences, &checksums(LOCK)),
            json!({ "packages": [
                { "name": "cc", "version": "1.2.0", "source": "crates.io", "kind": "build" },
                { "name": "metal3-manager", "version": "0.1.0", "source": "local", "kind": "runtime", "root": true },
                { "name": "serde", "version": "1.0.1", "source": "crates.io", "kind": "runtime" },
            ] })
        );
    }

    #[test]
    fn what_is_linked_is_listed_with_the_version_of_each_compiler() {
        let two = compilers("amd64: rustc 1.2.3 (ab 2026), cc 1, arm64: rustc 1.3.0 (cd 2026), gcc 2");
        let of_two = linked(&two);
        let references: Vec<&Value> = of_two.iter().map(|library| &library["bom-ref"]).collect();
        assert_eq!(references, ["rust-std-1.2.3", "rust-std-1.3.0", "glibc", "libgcc"]);
        assert_eq!(of_two[1]["version"], "1.3.0");
        assert!(compilers("gcc 2").is_empty());
        let linked = linked(&compilers("rustc 1.2.3 (ab 2026), cc 1"));
        let names: Vec<&Value> = linked.iter().map(|library| &library["name"]).collect();
        assert_eq!(names, ["rust-std", "glibc", "libgcc"]);
        assert_eq!(linked[0]["version"], "1.2.3");
        assert_eq!(linked[0]["purl"], "pkg:generic/rust-std@1.2.3");
        assert_eq!(linked[1]["licenses"][0]["expression"], "LGPL-2.1-or-later");
        assert_eq!(linked[1].get("version"), None, "that of the machine that links");
    }

    #[test]
    fn a_package_is_listed_once_with_version_licence_and_checksum() {
        let packages = packages("1serde v1.0.1|MIT / Apache-2.0 (*)\n");
        let document = document(&packages, &checksums(LOCK), &[]);
        let components = document["components"].as_array().unwrap();
        let names: Vec<&Value> = components.iter().map(|component| &component["name"]).collect();
        assert_eq!(names, ["metal3-manager", "serde"]);
        assert_eq!(components[0].get("hashes"), None, "a package of the workspace");
        assert_eq!(components[0]["purl"], "pkg:generic/metal3-manager@0.1.0");
        assert_eq!(components[1]["version"], "1.0.1");
        assert_eq!(components[1]["purl"], "pkg:cargo/serde@1.0.1");
        assert_eq!(components[1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            components[1]["hashes"],
            json!([{ "alg": "SHA-256", "content": "ab12" }])
        );
        assert!(!document.to_string().contains("/checkout"));
    }

    #[test]
    fn graph_begins_with_the_program_and_names_listed_components_only() {
        let packages = packages("2cc v1.2.0|MIT\n");
        let document = document(&packages, &checksums(LOCK), &linked(&BTreeSet::from(["1.2.3"])));
        assert_eq!(
            document["dependencies"],
            json!([
                { "ref": "capm3", "dependsOn": ["pkg:generic/metal3-manager@0.1.0", "rust-std", "glibc", "libgcc"] },
                { "ref": "pkg:generic/metal3-manager@0.1.0", "dependsOn": ["pkg:cargo/serde@1.0.1"] },
                { "ref": "pkg:cargo/serde@1.0.1", "dependsOn": ["pkg:cargo/cc@1.2.0"] },
            ])
        );
        let components = document["components"].as_array().unwrap();
        let listed: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
        let rows = document["dependencies"].as_array().unwrap();
        for needed in rows.iter().flat_map(|row| row["dependsOn"].as_array().unwrap()) {
            assert!(listed.contains(&needed), "{needed}");
        }
    }
}
