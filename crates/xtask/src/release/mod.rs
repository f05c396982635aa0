//! `release`: what a user installs, put together from the generated parts.
//!
//! The namespace, names and variables are the Go manager's, so that its installer replaces one by the other. Roles come
//! from what the code declares.

mod install;
mod rules;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metal3_api::catalog;
use metal3_webhooks::manifest::configurations;
use metal3_webhooks::table::IPAM;
use serde_json::Value;

use crate::{documents, workspace, yaml};

/// What `clusterctl` wants to know about versions, as it stands in the checkout.
const METADATA: &str = "clusterctl-metadata.yaml";

/// Writes the artefacts into a folder.
pub(crate) fn run(folder: &Path, image: &str) -> Result<bool> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let metadata = documents::text(&workspace::root()?.join(METADATA))?;
    for (name, text) in artefacts(image, metadata) {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(true)
}

/// The files of a release, by name.
fn artefacts(image: &str, metadata: String) -> BTreeMap<PathBuf, String> {
    let ipam: String = ipam_documents(image).iter().map(yaml::document).collect();
    [
        (PathBuf::from("ipam-components.yaml"), ipam),
        (PathBuf::from("metadata.yaml"), metadata),
    ]
    .into()
}

/// All objects of IP address management, the namespace first: it holds the others.
pub(crate) fn ipam_documents(image: &str) -> Vec<Value> {
    let mut documents = install::ipam(image);
    let definitions = catalog::definitions()
        .into_iter()
        .filter(|definition| definition.group == IPAM.group);
    let rest: Vec<Value> = definitions
        .map(|definition| definition.manifest())
        .chain(configurations(&IPAM))
        .collect();
    let after_namespace = documents.split_off(1.min(documents.len()));
    documents.extend(rest);
    documents.extend(after_namespace);
    documents
}

#[cfg(test)]
mod tests;
