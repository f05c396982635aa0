//! The environment of the Go host controllers, read by the same rules as this program's own at its start.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use metal3_preflight::{Decision, Finding};
use metal3_runtime::guard::PART_OF_LABEL;

use super::reader::Reader;
use crate::hosts_config::Environment;

/// The Deployment of the host controllers, whatever its namespace.
const DEPLOYMENT: &str = "baremetal-operator-controller-manager";
const CONTAINER: &str = "manager";

/// What the environment of each host manager would say at the start of this program.
pub(super) async fn findings(reader: &mut Reader, deployments: &[Deployment]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for deployment in deployments {
        let (Some(DEPLOYMENT), Some(namespace)) = (
            deployment.metadata.name.as_deref(),
            deployment.metadata.namespace.as_deref(),
        ) else {
            continue;
        };
        let Some(container) = container(deployment) else {
            continue;
        };
        let environment = environment(reader, namespace, container).await;
        let mounts: Vec<&str> = container
            .volume_mounts
            .iter()
            .flatten()
            .map(|mount| mount.mount_path.as_str())
            .collect();
        let object = format!("Deployment {namespace}/{DEPLOYMENT}");
        let builds = builds_agent_images(container);
        findings.extend(judged(&object, &environment, (&mounts, builds)));
    }
    findings
}

/// Whether the Go manager requests an image of the agent for each host: other variables are valid then.
fn builds_agent_images(container: &Container) -> bool {
    let on = ["--build-preprov-image", "-build-preprov-image"];
    let is_on = |argument: &str| {
        let (name, value) = argument.split_once('=').unwrap_or((argument, "true"));
        on.contains(&name) && !["false", "0", "f", "F", "False", "FALSE"].contains(&value)
    };
    container.args.iter().flatten().any(|argument| is_on(argument))
}

/// The container of a Go manager; none for this program, which has judged its environment at its start.
fn container(deployment: &Deployment) -> Option<&Container> {
    let template = &deployment.spec.as_ref()?.template;
    let labels = template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    let is_ours = labels.is_some_and(|labels| labels.get(PART_OF_LABEL.0).is_some_and(|part| part == PART_OF_LABEL.1));
    let containers = &template.spec.as_ref()?.containers;
    let named = containers.iter().find(|one| one.name == CONTAINER);
    named.or_else(|| containers.first()).filter(|_| !is_ours)
}

/// Variables of ConfigMaps, and those that are written in the Deployment. Those of other sources are not known.
async fn environment(reader: &mut Reader, namespace: &str, container: &Container) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        if let Some(map) = &source.config_map_ref {
            let prefix = source.prefix.as_deref().unwrap_or_default();
            let entries = reader.config_map(namespace, &map.name).await;
            variables.extend(
                entries
                    .into_iter()
                    .map(|(name, value)| (format!("{prefix}{name}"), value)),
            );
        }
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = &variable.value {
            variables.insert(variable.name.clone(), value.clone());
        }
    }
    variables
}

/// What this program would say about these variables. A variable that is not among them may come from another source.
fn judged(
    object: &str,
    environment: &BTreeMap<String, String>,
    (mounts, builds_agent_images): (&[&str], bool),
) -> Vec<Finding> {
    let is_there = |path: &Path| mounts.iter().any(|mount| path.starts_with(mount));
    let variable = |name: &str| environment.get(name).cloned();
    match Environment::read_for(variable, is_there, builds_agent_images) {
        Ok(read) => {
            let warnings = read.warnings.into_iter();
            let mut findings: Vec<Finding> = warnings
                .map(|warning| Finding::new(Decision::Go, object, warning, ""))
                .collect();
            if read.ironic.sends_login_in_clear() {
                let what =
                    "IRONIC_ENDPOINT begins with http://, and a login is sent to it: the host controllers do not start";
                let cure = "give Ironic a certificate, or start them with --allow-insecure-ironic";
                findings.push(Finding::new(Decision::No, object, what, cure).row("ironic-login-encrypted"));
            }
            findings
        }
        Err(errors) => {
            let cure = "do not copy this variable to this program, which would not start";
            let known = errors
                .into_iter()
                .filter(|error| environment.contains_key(error.variable));
            known
                .map(|error| Finding::new(Decision::Go, object, error.to_string(), cure))
                .collect()
        }
    }
}
