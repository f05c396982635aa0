//! `release`: what a user installs, put together from the generated parts.
//!
//! There are two forms: `ipam-components.yaml` leaves certificates to cert-manager, and is what `clusterctl` installs;
//! `ipam-components-self-managed.yaml` is for clusters without cert-manager, where the program makes them itself. The
//! same for clusters and machines, as `infrastructure-components.yaml`, and for hosts, but that no installer of providers
//! knows them: `kubectl` installs `hosts-components.yaml`. `all-in-one.yaml` is all three in one process, for `kubectl` too.
//!
//! The namespace, names and variables are the Go manager's, so that its installer replaces one by the other. Roles come
//! from what the code declares.

mod gathered;
mod install;
mod layout;
mod rules;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metal3_api::catalog;
use metal3_flags::CertificateSource;
use metal3_webhooks::manifest::{INJECTION_ANNOTATION, configurations};
use serde_json::{Value, json};

use self::layout::Layout;
use crate::yaml;
use metal3_files::{documents, workspace};

/// What `clusterctl` wants to know about versions, as it stands in the checkout.
const METADATA: &str = "clusterctl-metadata.yaml";
/// What `clusterctl generate cluster` starts from, and where it stands in the checkout.
const TEMPLATE: &str = "cluster-template.yaml";
/// The same with `--flavor`, for clusters that several providers share.
const FLAVOURS: [&str; 3] = [
    "cluster-template-byoh.yaml",
    "cluster-template-kamaji.yaml",
    "cluster-template-secondary.yaml",
];
const TEMPLATES: &str = "manifests/templates";

/// Writes the artefacts into a folder.
pub(crate) fn run(folder: &Path, image: &str) -> Result<bool> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let metadata = documents::text(&workspace::root()?.join(METADATA))?;
    for (name, text) in artefacts(image, metadata)? {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(true)
}

/// The files of a release, by name.
fn artefacts(image: &str, metadata: String) -> Result<BTreeMap<PathBuf, String>> {
    let mut artefacts = BTreeMap::from([(PathBuf::from("metadata.yaml"), metadata)]);
    for name in std::iter::once(TEMPLATE).chain(FLAVOURS) {
        let text = documents::text(&workspace::root()?.join(TEMPLATES).join(name))?;
        artefacts.insert(PathBuf::from(name), text);
    }
    for layout in [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        for (certificates, form) in [
            (CertificateSource::Mounted, ""),
            (CertificateSource::SelfManaged, "-self-managed"),
        ] {
            let text = documents_of(&layout, image, certificates)
                .iter()
                .map(yaml::document)
                .collect();
            let name = match layout.name {
                name @ "all-in-one" => format!("{name}{form}.yaml"),
                name => format!("{name}-components{form}.yaml"),
            };
            artefacts.insert(PathBuf::from(name), text);
        }
    }
    Ok(artefacts)
}

/// All objects of a product, the namespace first: it holds the others.
fn documents_of(layout: &Layout, image: &str, certificates: CertificateSource) -> Vec<Value> {
    let mut documents = install::objects(layout, image, certificates);
    let suites = layout.webhooks();
    let definitions = catalog::definitions()
        .into_iter()
        .filter(|definition| suites.iter().any(|suite| suite.group == definition.group));
    let rest: Vec<Value> = definitions
        .map(|definition| definition.manifest())
        .chain(suites.iter().flat_map(configurations))
        .map(|document| at_home(document, layout))
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

/// The same where the layout has its webhooks and its certificate, and under its label or none.
fn at_home(mut document: Value, layout: &Layout) -> Value {
    let annotations = document.pointer_mut("/metadata/annotations");
    if let Some(certificate) = annotations.and_then(|all| all.get_mut(INJECTION_ANNOTATION)) {
        *certificate = layout.certificate().into();
    }
    let webhooks = document.pointer_mut("/webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        move_service(webhook, layout);
    }
    if let Some(webhook) = document.pointer_mut("/spec/conversion/webhook") {
        move_service(webhook, layout);
    }
    if let (None, Some(Value::Object(labels))) = (layout.suite.provider, document.pointer_mut("/metadata/labels")) {
        labels.remove("cluster.x-k8s.io/provider");
    }
    document
}

fn move_service(webhook: &mut Value, layout: &Layout) {
    if let Some(namespace) = webhook.pointer_mut("/clientConfig/service/namespace") {
        *namespace = layout.suite.namespace.into();
    }
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
mod all_in_one_tests;
#[cfg(test)]
mod containerfile;
#[cfg(test)]
mod hosts_tests;
#[cfg(test)]
mod infrastructure_tests;
#[cfg(test)]
mod restricted;
#[cfg(test)]
mod tests;
