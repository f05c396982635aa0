//! `release`: the manifests of a release, as installers take them.
//!
//! A manifest is put together from tables that the code itself runs by: kinds, webhooks, and the needs that each part
//! of the program declared. So what is installed is what the binary serves, and what is granted is what it may use.

mod deployment;
mod product;
mod roles;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{workspace, yaml};
use product::IPAM;

/// What the image of the manager is called, where the caller names none.
pub(crate) const IMAGE: &str = "metal3-rs/capm3:latest";

/// Writes the files of a release into a folder.
pub(crate) fn run(folder: &Path, image: &str) -> Result<bool> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let metadata = fs::read_to_string(workspace::root()?.join("clusterctl-metadata.yaml"))?;
    let mut written = Vec::new();
    for product in [IPAM] {
        let documents = product.documents(image);
        let text: String = documents.iter().map(yaml::document).collect();
        for (name, text) in [
            (format!("{}-components.yaml", product.name), &text),
            (format!("{}-metadata.yaml", product.name), &metadata),
        ] {
            let path = folder.join(&name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            written.push(format!("{name} ({} bytes)", text.len()));
        }
        println!("{}: {} objects, {}", product.name, documents.len(), kinds(&documents));
    }
    println!("{}: {}", folder.display(), written.join(", "));
    Ok(true)
}

/// The kinds among the documents, each once, in order of appearance.
fn kinds(documents: &[Value]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for document in documents {
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.join(" ")
}
