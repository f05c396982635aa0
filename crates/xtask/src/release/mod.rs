//! `release`: writes the manifests for users, composed from the generated parts.
//!
//! Each product has two variants: `ipam-components.yaml` uses cert-manager and is installed by `clusterctl`;
//! `ipam-components-self-managed.yaml` is for clusters without cert-manager, with certificates of the program. Clusters
//! and machines have `infrastructure-components.yaml`. `hosts-components.yaml` and `all-in-one.yaml`, which runs all
//! three in one process, are installed by `kubectl`.
//!
//! `clusterctl.yaml` and the folders that it names are a repository of both providers.
//!
//! `PRODUCT-namespaced.yaml` replaces the roles for a process that watches one namespace.
//!
//! Namespaces, names and variables are those of the Go managers, so that an installer replaces one by the other. Roles
//! are derived from the permissions that the code declares.

pub(crate) mod bundle;
pub(crate) mod chart;
pub(crate) mod clusterctl;
mod form;
mod install;
pub(crate) mod kustomize;
mod layout;
pub(crate) mod monitoring;
mod namespaced;
mod policies;
mod rules;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use metal3_api::catalog;
use metal3_domain::yaml;
use metal3_flags::CertificateSource;
use metal3_flags::version::version;
use metal3_runtime::guard;
use metal3_webhooks::manifest::{INJECTION_ANNOTATION, configurations};
use serde_json::{Value, json};

use self::layout::Layout;
use crate::notices;
use metal3_files::{documents, workspace};

/// Version metadata for `clusterctl` in the checkout.
const METADATA: &str = "clusterctl-metadata.yaml";
/// Default template of `clusterctl generate cluster`.
const TEMPLATE: &str = "cluster-template.yaml";
/// Templates for `--flavor`, for clusters of several providers.
const FLAVOURS: [&str; 3] = [
    "cluster-template-byoh.yaml",
    "cluster-template-kamaji.yaml",
    "cluster-template-secondary.yaml",
];
/// The ClusterClass, a Cluster of it, and values for the variables of all templates.
const CLASS: [&str; 3] = [
    "cluster-template-topology.yaml",
    "clusterclass-metal3.yaml",
    "example_variables.rc",
];
const TEMPLATES: &str = "manifests/templates";

/// Writes the files of a release into a folder, and prints their paths.
pub(crate) fn run(folder: &Path, image: &str) -> Result<bool> {
    for path in write(folder, image)? {
        println!("{}", path.display());
    }
    Ok(true)
}

/// Writes the files of a release into a folder; returns their paths.
pub(crate) fn write(folder: &Path, image: &str) -> Result<Vec<PathBuf>> {
    let root = workspace::root()?;
    let mut files = files(image, documents::text(&root.join(METADATA))?)?;
    files.extend(clusterctl::repository(&files, &version())?);
    files.insert(PathBuf::from(notices::FILE), notices::of(&root)?);
    write_all(folder, files)
}

fn write_all(folder: &Path, files: Files) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        create(path.parent().unwrap_or(folder))?;
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))
}

/// The files of a release, by path.
type Files = BTreeMap<PathBuf, String>;

/// The files of a release.
fn files(image: &str, metadata: String) -> Result<Files> {
    let mut files = Files::from([(PathBuf::from("metadata.yaml"), metadata)]);
    for name in templates() {
        let text = documents::text(&workspace::root()?.join(TEMPLATES).join(name))?;
        files.insert(PathBuf::from(name), text);
    }
    let rules = monitoring::files().into_iter();
    files.extend(rules.map(|(name, text)| (Path::new("monitoring").join(name), text)));
    let dashboards = monitoring::dashboards();
    files.extend(dashboards.map(|(name, text)| (Path::new("monitoring/dashboards").join(name), text)));
    for layout in [layout::IPAM, layout::INFRASTRUCTURE, layout::HOSTS, layout::ALL_IN_ONE] {
        for (certificates, form) in [
            (CertificateSource::Mounted, ""),
            (CertificateSource::SelfManaged, "-self-managed"),
        ] {
            let text = |documents: Vec<Value>| documents.iter().map(yaml::document).collect::<String>();
            let name = match layout.name {
                name @ "all-in-one" => format!("{name}{form}.yaml"),
                name => format!("{name}-components{form}.yaml"),
            };
            files.insert(PathBuf::from(name), text(documents_of(&layout, image, certificates)));
            let roles = namespaced::documents(&layout, certificates);
            files.insert(
                PathBuf::from(format!("{}-namespaced{form}.yaml", layout.name)),
                text(roles),
            );
        }
    }
    Ok(files)
}

fn templates() -> impl Iterator<Item = &'static str> {
    std::iter::once(TEMPLATE).chain(FLAVOURS).chain(CLASS)
}

/// All objects of a product, beginning with its namespace.
fn documents_of(layout: &Layout, image: &str, certificates: CertificateSource) -> Vec<Value> {
    let mut documents = install::objects(layout, image, certificates);
    let suites = layout.webhooks();
    let definitions = catalog::definitions()
        .into_iter()
        .filter(|definition| suites.iter().any(|suite| suite.group == definition.group));
    let rest: Vec<Value> = definitions
        .map(|definition| for_form(definition.manifest(), layout, certificates))
        .chain(webhooks(layout, certificates))
        .collect();
    let after_namespace = documents.split_off(1.min(documents.len()));
    documents.extend(rest);
    documents.extend(after_namespace);
    documents
}

/// The webhook configurations of a product.
fn webhooks(layout: &Layout, certificates: CertificateSource) -> Vec<Value> {
    let documents = layout.webhooks().into_iter().flat_map(|suite| configurations(&suite));
    documents
        .map(|document| removable(for_form(document, layout, certificates)))
        .collect()
}

/// The object with the label by which an installation is removed.
fn removable(mut document: Value) -> Value {
    let (label, value) = guard::PART_OF_LABEL;
    if let Some(Value::Object(metadata)) = document.get_mut("metadata") {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Value::Object(labels) = labels {
            labels.insert(label.to_owned(), value.into());
        }
    }
    document
}

fn for_form(document: Value, layout: &Layout, certificates: CertificateSource) -> Value {
    let document = for_layout(document, layout);
    match certificates {
        CertificateSource::Mounted => document,
        CertificateSource::SelfManaged => without_injection(document),
    }
}

/// The document with the namespace, certificate and label of the layout.
fn for_layout(mut document: Value, layout: &Layout) -> Value {
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

/// The document without the annotation for CA injection by cert-manager.
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
mod class_tests;
#[cfg(test)]
mod containerfile;
#[cfg(test)]
mod hosts_tests;
#[cfg(test)]
mod infrastructure_tests;
#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod readme_tests;
#[cfg(test)]
mod restricted;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod workflows_tests;
