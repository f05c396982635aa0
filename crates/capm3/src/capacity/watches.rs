//! From changes to what is reconciled. Many changes of hosts become one reconcile of each template.

use std::fmt;

use metal3_api::cluster::{Cluster, MachineDeployment};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3MachineTemplate};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::pause;
use metal3_runtime::cache::{Change, Key, SharedIndexes};

use super::figures;
use super::index::{DeploymentIndexes, autoscaled_template, node_group};
use crate::cluster::cluster_link;
use crate::controller::caches::old_and_new;
use crate::machine::watches::claim_relevant_fields;

/// What is reconciled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A template.
    Template(Key),
    /// The hosts of a namespace changed: its templates are enqueued a moment later, once for all changes until then.
    Hosts(String),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(key) => write!(f, "{key}"),
            Self::Hosts(namespace) => write!(f, "{namespace}/*"),
        }
    }
}

pub(super) fn of_template(change: &Change<'_, Metal3MachineTemplate>) -> Option<Work> {
    change.key().map(Work::Template)
}

pub(super) fn of_deployment(change: &Change<'_, MachineDeployment>) -> Vec<Work> {
    let read = |one: &MachineDeployment| Some((autoscaled_template(one)?, node_group("", one)));
    if change.is_same(|old, new| read(old) == read(new)) {
        return Vec::new();
    }
    let templates = old_and_new(change, autoscaled_template).into_iter();
    templates.map(Work::Template).collect()
}

/// Most hosts are in a namespace without an autoscaled MachineDeployment, and most changes concern nothing that is reported.
pub(super) fn of_host(
    deployments: &SharedIndexes<DeploymentIndexes>,
    change: &Change<'_, BareMetalHost>,
) -> Option<Work> {
    let is_same = |old: &BareMetalHost, new: &BareMetalHost| {
        claim_relevant_fields(old) == claim_relevant_fields(new) && figures::fields(old) == figures::fields(new)
    };
    let namespace = change.key()?.namespace;
    let is_used = deployments.read(|indexes| indexes.has_any_in(&namespace));
    (is_used && !change.is_same(is_same)).then_some(Work::Hosts(namespace))
}

/// A pause ends without a change of the template, and the infrastructure reference decides which Metal3Cluster is meant.
pub(super) fn of_cluster(deployments: &SharedIndexes<DeploymentIndexes>, change: &Change<'_, Cluster>) -> Vec<Work> {
    let read = |cluster: &Cluster| {
        (
            pause::is_cluster_paused(Some(cluster)),
            cluster.spec.infrastructure_ref.clone(),
        )
    };
    let changed = change
        .key()
        .filter(|_| !change.is_same(|old, new| read(old) == read(new)));
    let near = |cluster: Key| deployments.read(|indexes| indexes.of_cluster(&cluster));
    let templates = changed.map(near).unwrap_or_default().into_iter();
    templates.map(Work::Template).collect()
}

/// Policy and zones decide which hosts are counted and available, and the link which Cluster's machines they are for.
pub(super) fn of_metal3_cluster(
    deployments: &SharedIndexes<DeploymentIndexes>,
    change: &Change<'_, Metal3Cluster>,
) -> Option<Work> {
    let is_same = |old: &Metal3Cluster, new: &Metal3Cluster| {
        let read = |one: &Metal3Cluster| {
            let spec = one.spec.clone();
            (spec.failure_domain_policy, spec.deployment_zones, spec.failure_domains)
        };
        read(old) == read(new) && cluster_link(old) == cluster_link(new)
    };
    let namespace = change.key()?.namespace;
    let is_used = deployments.read(|indexes| indexes.has_any_in(&namespace));
    (is_used && !change.is_same(is_same)).then_some(Work::Hosts(namespace))
}
