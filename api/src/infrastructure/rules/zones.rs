//! Deployment zones, of a Metal3Cluster and of a template of one.

use std::collections::BTreeSet;

use super::references::check_object;
use super::selectors;
use crate::infrastructure::v1beta2::DeploymentZone;
use crate::rules::{FieldPath, Findings};

pub(super) const DISTINCT: &str = "Deployment zones have distinct names.";
pub(super) const NEAR: &str = "The data template of a deployment zone is in the cluster's namespace.";
pub(super) const WITHOUT_NAMESPACE: &str =
    "The data template of a deployment zone names no namespace: it is in that of each Metal3Cluster.";
pub(super) const NAMED: &str = "The data template of a deployment zone has a name.";
pub(super) const SELECTOR: &str =
    "A warning is returned for a zone with an invalid host selector, which matches no host.";
pub(super) const DIFFERS: &str = "cluster-endpoint-source";

/// Rejects two zones of one name.
pub(super) fn distinct(path: &str, zones: &[DeploymentZone], findings: &mut Findings) {
    let mut names = BTreeSet::new();
    for (position, zone) in zones.iter().enumerate() {
        if !names.insert(&zone.name) {
            findings.duplicate(
                FieldPath::new(path).index(position).child("name"),
                &zone.name,
                "is the name of another zone",
                "give each zone another name",
            );
        }
    }
}

/// Rejects a data template of another namespace than the owner's, or of any when the owner is not known.
pub(super) fn templates_are_near(
    path: &str,
    zones: &[DeploymentZone],
    owner: Option<&String>,
    findings: &mut Findings,
) {
    for (position, zone) in zones.iter().enumerate() {
        let path = FieldPath::new(path).index(position).child("dataTemplate");
        check_object(
            path.as_str(),
            zone.data_template.as_ref(),
            owner,
            "Metal3Cluster",
            findings,
        );
    }
}

/// Rejects a data template without name.
pub(super) fn templates_are_named(path: &str, zones: &[DeploymentZone], findings: &mut Findings) {
    for (position, zone) in zones.iter().enumerate() {
        let template = zone.data_template.as_ref();
        if template.is_some_and(|template| template.name.as_deref().is_none_or(str::is_empty)) {
            findings.required(
                FieldPath::new(path).index(position).child("dataTemplate").child("name"),
                "is missing",
                "name a Metal3DataTemplate, or remove dataTemplate",
            );
        }
    }
}

/// Warns about selectors that cannot be read.
pub(super) fn selectors_are_readable(path: &str, zones: &[DeploymentZone], findings: &mut Findings) {
    for (position, zone) in zones.iter().enumerate() {
        let path = FieldPath::new(path).index(position).child("hostSelector");
        selectors::warn(path.as_str(), zone.host_selector.as_ref(), findings);
    }
}

/// Warns about members of zones that are stored without effect.
pub(super) fn warn_of_unserved(path: &FieldPath, zones: &[DeploymentZone], findings: &mut Findings) {
    for (position, zone) in zones.iter().enumerate() {
        let path = path.index(position);
        let selector = zone.host_selector.as_ref();
        let elsewhere = selector.is_some_and(|selector| selector.in_namespace.is_some());
        for (path, is_used) in [
            (path.child("identityRef"), zone.identity_ref.is_some()),
            (path.child("hostNamespace"), zone.host_namespace.is_some()),
            (path.child("hostSelector").child("inNamespace"), elsewhere),
        ] {
            if is_used {
                let problem = format!("{path} has no effect yet: hosts of the namespace of the machines are used");
                findings.warn(path, problem, "remove it, or machines get hosts of their own namespace");
            }
        }
    }
}
