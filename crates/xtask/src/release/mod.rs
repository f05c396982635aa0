//! `release`: what a user installs, put together from the generated parts.
//!
//! There are two forms: `ipam-components.yaml` leaves certificates to cert-manager, and is what `clusterctl` installs;
//! `ipam-components-self-managed.yaml` is for clusters without cert-manager, where the program makes them itself.
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
use metal3_manager::flags::CertificateSource;
use metal3_webhooks::manifest::{INJECTION_ANNOTATION, configurations};
use metal3_webhooks::table::IPAM;
use serde_json::{Value, json};

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
    let ipam = |certificates| -> String {
        let documents = ipam_documents(image, certificates);
        documents.iter().map(yaml::document).collect()
    };
    [
        (PathBuf::from("ipam-components.yaml"), ipam(CertificateSource::Mounted)),
        (
            PathBuf::from("ipam-components-self-managed.yaml"),
            ipam(CertificateSource::SelfManaged),
        ),
        (PathBuf::from("metadata.yaml"), metadata),
    ]
    .into()
}

/// All objects of IP address management, the namespace first: it holds the others.
fn ipam_documents(image: &str, certificates: CertificateSource) -> Vec<Value> {
    let mut documents = install::ipam(image, certificates);
    let definitions = catalog::definitions()
        .into_iter()
        .filter(|definition| definition.group == IPAM.group);
    let rest: Vec<Value> = definitions
        .map(|definition| definition.manifest())
        .chain(configurations(&IPAM))
        .collect();
    let rest = rest.into_iter().map(|document| match certificates {
        CertificateSource::Mounted => document,
        CertificateSource::SelfManaged => without_injection(document),
    });
    let after_namespace = documents.split_off(1.min(documents.len()));
    documents.extend(rest);
    documents.extend(after_namespace);
    documents
}

/// The same for nobody but us: cert-manager is not told to write into it.
fn without_injection(mut document: Value) -> Value {
    if let Some(Value::Object(metadata)) = document.get_mut("metadata") {
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(INJECTION_ANNOTATION);
        }
        metadata.retain(|name, value| name != "annotations" || value != &json!({}));
    }
    document
}

#[cfg(test)]
mod containerfile;
#[cfg(test)]
mod restricted;
#[cfg(test)]
mod tests;
