//! The environments of the Go managers, and what this program says of that of hosts by the rules of its own start.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use metal3_flags::Owner;
use metal3_hosts::ironics::USUAL_NAME;
use metal3_preflight::{
    ConfigMaps, Decision, Finding, Given, Manager, NotRead, ONE_NAMESPACE, Variable, WATCH_NAMESPACE, config_maps,
    container, variables,
};

use super::reader::Reader;
use crate::hosts_config::Environment;

/// Variables of hosts that may stop a switch by their value: where Ironic is, and how its certificate is verified.
const OF_IRONIC_CONNECTION: [&str; 7] = [
    "IRONIC_ENDPOINT",
    "IRONIC_ENDPOINTS",
    "IRONIC_CACERT_FILE",
    "IRONIC_CLIENT_CERT_FILE",
    "IRONIC_CLIENT_PRIVATE_KEY_FILE",
    "IRONIC_INSECURE",
    "IRONIC_SKIP_CLIENT_SAN_VERIFY",
];

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
        let mut maps = ConfigMaps::new();
        for name in config_maps(container) {
            let entries = reader.config_map(namespace, &name).await;
            maps.insert(name, entries);
        }
        let variables = variables(container, namespace, &maps);
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
            variables,
            without_effect,
        });
    }
    (all, findings)
}

/// Variables that may stop a switch, and whose values are not known, by their source.
fn not_judged(object: &str, variables: &[Variable]) -> Vec<NotRead> {
    let mut by_source: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in OF_IRONIC_CONNECTION {
        let found = Variable::find(variables, name).filter(|one| one.value.is_none());
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
    variables: &[Variable],
    container: &Container,
    builds_images: bool,
) -> (Vec<Finding>, Vec<(String, String)>) {
    let mounts = container.volume_mounts.iter().flatten();
    let mounts: Vec<&str> = mounts.map(|mount| mount.mount_path.as_str()).collect();
    let is_there = |path: &Path| mounts.iter().any(|mount| path.starts_with(mount));
    let variable = |name: &str| Variable::find(variables, name)?.value.clone();
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
            let is_known = |name: &str| variable(name).is_some();
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
