//! `SHA256SUMS`: every file of a release with its digest, in the form that `sha256sum --check` reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{SIGNATURE, write};
use crate::files::{files_below, relative};
use crate::images::sha256;

pub(crate) const FILE: &str = "SHA256SUMS";

/// Writes the file.
pub(crate) fn run(folder: &Path) -> Result<bool> {
    write(&folder.join(FILE), of(folder)?)?;
    Ok(true)
}

/// The text for a folder.
pub(super) fn of(folder: &Path) -> Result<String> {
    let files = digests(folder)?;
    ensure!(
        !files.is_empty(),
        "{} has no files: run `make release`",
        folder.display()
    );
    Ok(files
        .iter()
        .map(|(path, digest)| format!("{digest}  {path}\n"))
        .collect())
}

/// Compares a folder with its file; the number of files. The error names what differs.
pub(crate) fn verify(folder: &Path) -> Result<usize> {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let named = read(&text)?;
    let found = digests(folder)?;
    let problems = differences(&named, &found, "is not named");
    ensure!(problems.is_empty(), "{}: {}", folder.display(), problems.join("; "));
    Ok(found.len())
}

/// Files by their names below a folder, with the digest of their content.
pub(super) type Digests = BTreeMap<String, String>;

fn read(text: &str) -> Result<Digests> {
    let entry = |line: &str| {
        let (digest, path) = line.split_once("  ")?;
        Some((path.to_owned(), digest.to_owned()))
    };
    text.lines()
        .map(|line| entry(line).with_context(|| format!("`{line}` in {FILE} is not a digest and a path")))
        .collect()
}

/// What differs, in words. `further`: what is said of a file that is found and not named.
pub(super) fn differences(named: &Digests, found: &Digests, further: &str) -> Vec<String> {
    let of_named = named.iter().filter_map(|(path, digest)| match found.get(path) {
        None => Some(format!("{path} is missing")),
        Some(other) if other != digest => Some(format!("{path} has other bytes")),
        Some(_) => None,
    });
    let added = found.keys().filter(|path| !named.contains_key(*path));
    of_named.chain(added.map(|path| format!("{path} {further}"))).collect()
}

/// The files of a release, without `SHA256SUMS` and its signature.
pub(super) fn digests(folder: &Path) -> Result<Digests> {
    let digest = |(name, path): (String, PathBuf)| {
        let content = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        Ok((name, sha256(&content).trim_start_matches("sha256:").to_owned()))
    };
    paths(folder)?.into_iter().map(digest).collect()
}

/// The files of a release by their names below the folder: `./a/b`.
pub(super) fn paths(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut paths = BTreeMap::new();
    for path in files_below(folder)? {
        let name = relative(&path, folder)?;
        if name != FILE && name != SIGNATURE {
            paths.insert(format!("./{name}"), path);
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_named() {
        let digests = |entries: &[(&str, &str)]| -> Digests {
            entries
                .iter()
                .map(|(path, digest)| ((*path).to_owned(), (*digest).to_owned()))
                .collect()
        };
        let named = digests(&[("./a", "1"), ("./b", "2"), ("./c", "3")]);
        let found = digests(&[("./a", "1"), ("./b", "9"), ("./d", "4")]);
        assert_eq!(
            differences(&named, &found, "is not named"),
            ["./b has other bytes", "./c is missing", "./d is not named"]
        );
        assert!(differences(&named, &named, "is not named").is_empty());
    }

    #[test]
    fn line_that_is_no_entry_is_an_error() {
        assert_eq!(read("1  ./a\n").unwrap()["./a"], "1");
        let error = read("1 ./a\n").unwrap_err().to_string();
        assert!(error.contains("`1 ./a`"), "{error}");
    }
}
