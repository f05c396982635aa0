//! Import circles between the files of a package: none may have more than three files.
//!
//! A file imports another by a `use` or by a path in its code. An item that a file re-exports is imported from where it is
//! defined. Tests do not count, nor does the root file of a package.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use metal3_files::{documents, workspace};

/// The largest permitted circle: a module and two of its parts may be one idea.
const LARGEST: usize = 3;
/// Re-exports of re-exports are followed this often.
const HOPS: usize = 5;

/// Modules by path below the root, each with its imports: whether it re-exports the path, and the path as written.
type Modules = BTreeMap<String, Vec<(bool, String)>>;

/// A line for each large circle of this checkout.
pub(super) fn violations() -> Result<Vec<String>> {
    let (root, mut packages) = (workspace::root()?, BTreeMap::<String, Modules>::new());
    for folder in ["api", "crates", "e2e"] {
        for file in documents::files(&root.join(folder), &["rs"])? {
            let name = file.strip_prefix(&root)?.to_string_lossy().into_owned();
            if let Some((package, inner)) = name.split_once("/src/")
                && !(inner.ends_with("tests.rs") || format!("/{inner}").contains("/tests/"))
            {
                let modules = packages.entry(package.to_owned()).or_default();
                modules.insert(module(inner), imports(&documents::text(&file)?));
            }
        }
    }
    let large = packages.iter().flat_map(|(package, modules)| {
        let large = circles(modules).into_iter().filter(|circle| circle.len() > LARGEST);
        large.map(move |circle| format!("{package}: files import each other in a circle: {}", circle.join(", ")))
    });
    Ok(large.collect())
}

/// The module of a file below `src`.
fn module(inner: &str) -> String {
    let path = Path::new(inner).with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy().into_owned());
    let named = names.filter(|name| !["mod", "lib", "main"].contains(&name.as_str()));
    named.collect::<Vec<_>>().join("::")
}

/// The imports of a file, without its tests.
fn imports(text: &str) -> Vec<(bool, String)> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let (mut rest, mut found) = (code.as_str(), Vec::new());
    let begin = |rest: &str| {
        ["use ", "crate::", "super::"]
            .iter()
            .filter_map(|start| rest.find(start))
            .min()
    };
    while let Some((before, path)) = begin(rest).and_then(|at| rest.split_at_checked(at)) {
        let line = before.rsplit('\n').next().unwrap_or_default();
        let (is_public, mut paths) = (line.starts_with("pub") && path.starts_with("use "), Vec::new());
        rest = expand("", path.trim_start_matches("use "), &mut paths);
        // `pub(in crate::a)` is no import.
        if !before.ends_with("(in ") {
            found.extend(paths.into_iter().map(|path| (is_public, path)));
        }
    }
    found
}

/// Adds the paths of a tree of imports, and returns the text after it.
fn expand<'a>(outer: &str, text: &'a str, into: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = expand(outer, rest, into);
            // Before the comma may be `as Name`.
            let Some((between, after)) = rest.split_once([',', '}', ';']) else {
                return "";
            };
            let is_last = !rest.get(between.len()..).unwrap_or_default().starts_with(',');
            rest = after;
            if is_last {
                return rest;
            }
        }
    }
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if let Some(rest) = rest.strip_prefix("::") {
        return expand(&format!("{outer}{name}::"), rest, into);
    }
    into.push(format!("{outer}{name}"));
    rest
}

/// The module that defines what a module imports by this path; the module itself for another package.
fn origin<'a>(modules: &'a Modules, from: &'a str, path: &str, hops: usize) -> &'a str {
    let parent = |module: &'a str| module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let (mut base, mut rest) = (from, path.trim_start_matches("self::"));
    if let Some(path) = rest.strip_prefix("crate::") {
        (base, rest) = ("", path);
    }
    while let Some(path) = rest.strip_prefix("super::") {
        (base, rest) = (parent(base), path);
    }
    // The longest path that is a module.
    let path = format!("{base}::{rest}");
    let path = path.trim_start_matches("::");
    let is_prefix = |module: &&String| {
        path.strip_prefix(module.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let Some(module) = modules.keys().filter(is_prefix).max_by_key(|module| module.len()) else {
        return "";
    };
    let item = path.get(module.len()..).unwrap_or_default().split("::").nth(1);
    let is_item = |(is_public, path): &&(bool, String)| *is_public && path.rsplit("::").next() == item;
    match modules.get(module).and_then(|imports| imports.iter().find(is_item)) {
        Some((_, path)) if hops > 0 => origin(modules, module, path, hops - 1),
        _ => module,
    }
}

/// The circles between modules.
fn circles(modules: &Modules) -> BTreeSet<Vec<&str>> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, imports) in modules {
        let own = imports.iter().filter(|(is_public, _)| !is_public);
        let origins = own.map(|(_, path)| origin(modules, module, path, HOPS));
        graph.insert(
            module,
            origins
                .filter(|origin| !origin.is_empty() && origin != module)
                .collect(),
        );
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (*module, reached(&graph, module))).collect();
    let is_reached = |from: &str, to: &str| reached.get(from).is_some_and(|reached| reached.contains(to));
    let circle = |of: &&str| {
        graph
            .keys()
            .copied()
            .filter(|other| is_reached(of, other) && is_reached(other, of))
            .collect()
    };
    graph
        .keys()
        .filter(|module| is_reached(module, module))
        .map(circle)
        .collect()
}

/// The modules that a module imports, directly or not.
fn reached<'a>(graph: &BTreeMap<&str, BTreeSet<&'a str>>, module: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![module]);
    while let Some(next) = open.pop() {
        let targets = graph.get(next).into_iter().flatten();
        open.extend(targets.filter(|target| seen.insert(**target)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let modules = files.iter().map(|(file, text)| (module(file), imports(text))).collect();
        circles(&modules).iter().map(|circle| circle.join(", ")).collect()
    }

    #[test]
    fn a_circle_names_its_files_and_no_others() {
        let files = [
            ("lib.rs", "mod a;\nuse a::A;"),
            ("a.rs", "use std::{fmt, io};\nuse crate::b::{self as other, B};"),
            ("b.rs", "pub(super) fn b() -> super::c::D {}"),
            ("c/mod.rs", "mod d;\npub(crate) use d::{C as E, D};"),
            ("c/d.rs", "use crate::{leaf, a::A};"),
            (
                "leaf.rs",
                "// crate::a\npub(in crate::a) fn f() {}\n#[cfg(test)]\nmod tests {\n use crate::a;\n}",
            ),
        ];
        assert_eq!(found(&files), ["a, b, c::d"]);
    }

    #[test]
    fn a_type_that_a_module_defines_and_its_part_uses_makes_a_circle() {
        let of = |part| {
            found(&[
                ("m/mod.rs", "pub use x::X;\nuse y::Z;\nstruct W;"),
                ("m/x.rs", ""),
                ("m/y.rs", part),
            ])
        };
        assert_eq!(of("use super::X;"), [""; 0]);
        assert_eq!(of("use super::{W, X};"), ["m, m::y"]);
    }
}
