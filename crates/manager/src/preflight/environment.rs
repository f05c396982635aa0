//! The environments of the Go managers, and what this program says of that of hosts by the rules of its own start.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, EnvVarSource};
use metal3_flags::Owner;
use metal3_hosts::ironics::USUAL_NAME;
use metal3_preflight::{
    Decision, Finding, Given, Manager, NotRead, ONE_NAMESPACE, Source, Variable, WATCH_NAMESPACE, container, expanded,
    unknown_reference,
};

use super::reader::Reader;
use crate::hosts_config::Environment;

/// Variables of hosts that may stop a switch by their value: where Ironic is, and how its certificate is verified.
const OF_TRUST: [&str; 7] = [
    "IRONIC_ENDPOINT",
    "IRONIC_ENDPOINTS",
    "IRONIC_CACERT_FILE",
    "IRONIC_CLIENT_CERT_FILE",
    "IRONIC_CLIENT_PRIVATE_KEY_FILE",
    "IRONIC_INSECURE",
    "IRONIC_SKIP_CLIENT_SAN_VERIFY",
];

/// Variables by name: a later one replaces an earlier one, as in a container.
type Variables = BTreeMap<String, Variable>;

/// The environment of each Go manager, and the findings about those of hosts.
pub(super) async fn read(
    reader: &mut Reader,
    deployments: &[Deployment],
    managers: &[Manager],
) -> (Vec<Given>, Vec<Finding>) {
    let (mut all, mut findings) = (Vec::new(), Vec::new());
    for manager in managers.iter().filter(|manager| !manager.is_this_program) {
        let namespace = manager.deployment.split('/').next().unwrap_or_default();
        let Some(container) = manager.find(deployments).and_then(container) else {
            continue;
        };
        let variables = variables(reader, namespace, container).await;
        let mut without_effect = Vec::new();
        if manager.controllers.contains(&Owner::Hosts.name()) {
            let object = format!("Deployment {}", manager.deployment);
            // Other variables are valid with an image of the agent for each host.
            let builds_images = manager.is_on("build-preprov-image");
            let (of_hosts, refused) = judged(&object, &variables, container, builds_images);
            findings.extend(of_hosts);
            reader.not_read.extend(not_judged(&object, &variables));
            without_effect = refused;
        }
        all.push(Given {
            deployment: manager.deployment.clone(),
            variables: variables.into_values().collect(),
            without_effect,
        });
    }
    (all, findings)
}

/// The variables with their sources. Values of Secrets are not read.
async fn variables(reader: &mut Reader, namespace: &str, container: &Container) -> Variables {
    let mut variables = Variables::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        if let Some(map) = &source.config_map_ref {
            let source = Source::ConfigMap(map.name.clone());
            match reader.config_map(namespace, &map.name).await {
                Some(entries) => {
                    for (name, value) in entries {
                        add(&mut variables, format!("{prefix}{name}"), Some(value), source.clone());
                    }
                }
                None => any_of(&mut variables, prefix, (&map.name, source)),
            }
        }
        if let Some(secret) = &source.secret_ref {
            any_of(
                &mut variables,
                prefix,
                (&secret.name, Source::Secret(secret.name.clone())),
            );
        }
    }
    for variable in container.env.iter().flatten() {
        let (value, source) = match &variable.value_from {
            None => written(variable.value.as_deref(), &variables),
            Some(from) => referenced(reader, namespace, from).await,
        };
        add(&mut variables, variable.name.clone(), value, source);
    }
    variables
}

/// Any variable with the prefix, of a source whose content is not read. Several may have the same prefix, or none.
fn any_of(variables: &mut Variables, prefix: &str, (name, source): (&str, Source)) {
    let variable = Variable {
        name: format!("{prefix}*"),
        value: None,
        source,
    };
    variables.insert(format!("{prefix}* {name}"), variable);
}

/// The value that is written in the Deployment. It is not known where it refers to one that is not.
fn written(text: Option<&str>, earlier: &Variables) -> (Option<String>, Source) {
    let Some(text) = text else {
        return (None, Source::Deployment);
    };
    let find = |name: &str| Variable::find(earlier.values(), name);
    match unknown_reference(text, find) {
        Some(unknown) => (None, unknown.source.clone()),
        None => (
            Some(expanded(text, |name| find(name)?.value.clone())),
            Source::Deployment,
        ),
    }
}

fn add(variables: &mut Variables, name: String, value: Option<String>, source: Source) {
    variables.insert(name.clone(), Variable { name, value, source });
}

async fn referenced(reader: &mut Reader, namespace: &str, from: &EnvVarSource) -> (Option<String>, Source) {
    if let Some(entry) = &from.config_map_key_ref {
        let entries = reader.config_map(namespace, &entry.name).await;
        let value = entries.and_then(|mut entries| entries.remove(&entry.key));
        return (value, Source::ConfigMap(entry.name.clone()));
    }
    if let Some(entry) = &from.secret_key_ref {
        return (None, Source::Secret(entry.name.clone()));
    }
    let field = from.field_ref.as_ref().map(|field| field.field_path.clone());
    if field.as_deref() == Some("metadata.namespace") {
        return (Some(namespace.to_owned()), Source::Pod("metadata.namespace".to_owned()));
    }
    let resource = from.resource_field_ref.as_ref().map(|field| field.resource.clone());
    (None, Source::Pod(field.or(resource).unwrap_or_default()))
}

/// Variables that may stop a switch, and whose values are not known, by their source.
fn not_judged(object: &str, variables: &Variables) -> Vec<NotRead> {
    let mut by_source: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in OF_TRUST {
        let found = Variable::find(variables.values(), name).filter(|one| one.value.is_none());
        if let Some(unknown) = found {
            by_source.entry(unknown.source.text()).or_default().push(name);
        }
    }
    let not_read = |(source, names): (String, Vec<&str>)| NotRead {
        what: format!("{} of {object}", names.join(", ")),
        why: format!(
            "what comes from {source} is not read, so it is not known whether this program starts with it and accepts Ironic's certificate"
        ),
    };
    by_source.into_iter().map(not_read).collect()
}

/// What this program would say about these variables of hosts: findings, and the variables that it rejects or ignores, each with
/// the reason. A variable whose value is not known is not judged.
fn judged(
    object: &str,
    variables: &Variables,
    container: &Container,
    builds_images: bool,
) -> (Vec<Finding>, Vec<(String, String)>) {
    let mounts = container.volume_mounts.iter().flatten();
    let mounts: Vec<&str> = mounts.map(|mount| mount.mount_path.as_str()).collect();
    let is_there = |path: &Path| mounts.iter().any(|mount| path.starts_with(mount));
    let variable = |name: &str| variables.get(name)?.value.clone();
    match Environment::read_for(variable, is_there, builds_images) {
        Ok(read) => {
            let ignored = read.warnings.iter().filter_map(|warning| {
                let (name, why) = warning.split_once(' ')?;
                Some((name.to_owned(), why.to_owned()))
            });
            let ignored = ignored.collect();
            let warnings = read.warnings.into_iter();
            let mut findings: Vec<Finding> = warnings
                .map(|warning| Finding::new(Decision::Go, object, warning, ""))
                .collect();
            for ironic in read
                .ironics
                .iter()
                .filter(|ironic| ironic.source.sends_login_in_clear())
            {
                let variable = match ironic.name == USUAL_NAME {
                    true => "IRONIC_ENDPOINT begins".to_owned(),
                    false => format!("the URL of {} in IRONIC_ENDPOINTS begins", ironic.name),
                };
                let what =
                    format!("{variable} with http://, and a login is sent to it: the host controllers do not start");
                let cure = "give Ironic a certificate, or start them with --allow-insecure-ironic";
                findings.push(Finding::new(Decision::No, object, what, cure).row("ironic-login-encrypted"));
            }
            (findings, ignored)
        }
        Err(errors) => {
            let cure = "do not copy this variable to this program, which would not start";
            let is_known = |name: &str| variables.get(name).is_some_and(|variable| variable.value.is_some());
            let known = || errors.iter().filter(|error| is_known(error.variable));
            let finding = |error: &crate::hosts_config::VariableError| match error.variable {
                WATCH_NAMESPACE => {
                    Finding::new(Decision::No, object, error.to_string(), ONE_NAMESPACE).row("hosts-one-namespace")
                }
                // Without it the certificate is refused, and every host waits.
                "IRONIC_SKIP_CLIENT_SAN_VERIFY" => {
                    let cure = "give Ironic a certificate for the name that it is asked by";
                    Finding::new(Decision::No, object, error.to_string(), cure)
                }
                _ => Finding::new(Decision::Go, object, error.to_string(), cure),
            };
            let refused = known().map(|error| (error.variable.to_owned(), error.why.clone()));
            (known().map(finding).collect(), refused.collect())
        }
    }
}
