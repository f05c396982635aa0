//! YAML documents of files and folders.
//!
//! This module reads and splits. Every error names the file. Invariant: files are ordered by path, documents by their
//! position, on every machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A document and its file.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its file.
    pub file: PathBuf,
    /// Its content.
    pub value: Value,
}

impl Document {
    /// `apiVersion` and `kind`, when the document has both.
    pub fn type_meta(&self) -> Option<(&str, &str)> {
        Some((
            self.value.get("apiVersion")?.as_str()?,
            self.value.get("kind")?.as_str()?,
        ))
    }

    /// File, kind and name, to identify the document.
    pub fn label(&self) -> String {
        let kind = self.value.get("kind").and_then(Value::as_str).unwrap_or("document");
        let name = self
            .value
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or("without name");
        format!("{}: {kind} {name}", self.file.display())
    }
}

/// All files below a folder with one of these extensions. A missing folder is an error.
pub fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        bail!("{} is not a folder", folder.display());
    }
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            let path = entry?.path();
            let ends_well = |ending: &&str| path.extension().is_some_and(|extension| extension == *ending);
            if path.is_dir() {
                open.push(path);
            } else if endings.iter().any(ends_well) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file.
pub fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

/// Parses the documents of a text, without empty ones.
pub fn parse(text: &str, file: &Path) -> Result<Vec<Document>> {
    let values: Vec<Value> =
        serde_saphyr::from_multiple(text).with_context(|| format!("parse {} as YAML", file.display()))?;
    Ok(values
        .into_iter()
        .filter(|value| !value.is_null())
        .map(|value| Document {
            file: file.to_path_buf(),
            value,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_documents_are_left_out_and_the_order_is_kept() {
        let read = parse("---\na: 1\n---\n---\n# a word\n---\nb: 2\n", Path::new("x.yaml")).unwrap();
        let values: Vec<String> = read.iter().map(|document| document.value.to_string()).collect();
        assert_eq!(values, [r#"{"a":1}"#, r#"{"b":2}"#]);
    }

    #[test]
    fn a_broken_document_is_reported_with_its_file() {
        let error = parse("a: [1", Path::new("folder/x.yaml")).unwrap_err();
        assert!(format!("{error:#}").contains("folder/x.yaml"), "{error:#}");
    }

    #[test]
    fn a_missing_folder_is_an_error_and_not_an_empty_one() {
        assert!(files(Path::new("no/such/folder"), &["yaml"]).is_err());
    }
}
