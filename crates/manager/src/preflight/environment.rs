//! The environment of the Go host controllers, read by the same rules as this program's own at its start.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use metal3_preflight::{Decision, Finding};

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
        findings.extend(judged(&format!("Deployment {namespace}/{DEPLOYMENT}"), &environment));
    }
    findings
}

fn container(deployment: &Deployment) -> Option<&Container> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.iter().find(|one| one.name == CONTAINER)
}

/// Variables of ConfigMaps, and those that are written in the Deployment. Values from Secrets are not read.
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

fn judged(object: &str, environment: &BTreeMap<String, String>) -> Vec<Finding> {
    // Files are mounted into that Pod, and cannot be looked at from here.
    let read = Environment::read(|name| environment.get(name).cloned(), |_| true);
    match read {
        Ok(read) => {
            let warnings = read.warnings.into_iter();
            let mut findings: Vec<Finding> = warnings
                .map(|warning| Finding::new(Decision::Go, object, warning, ""))
                .collect();
            if read.ironic.endpoint.is_in_clear() {
                let what = "IRONIC_ENDPOINT begins with http://: with a login, the host controllers do not start";
                let cure = "give Ironic a certificate, or start them with --allow-insecure-ironic";
                findings.push(Finding::new(Decision::No, object, what, cure).row("ironic-login-encrypted"));
            }
            findings
        }
        Err(errors) => {
            let cure = "change it in the manifest of this program";
            let finding =
                |error: crate::hosts_config::VariableError| Finding::new(Decision::No, object, error.to_string(), cure);
            errors.into_iter().map(finding).collect()
        }
    }
}
