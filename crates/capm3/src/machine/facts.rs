//! The inputs of the plan for a machine.

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::{CHOSEN_HOST_ANNOTATION, HOST_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::kind::Kind;
use metal3_api::meta::{ObjectReference, Time};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_runtime::plan::Observed;

use crate::node::NodeFacts;

/// The inputs of the plan for a machine.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The machine.
    pub machine: &'a Metal3Machine,
    /// Whether the machine was read live after the hosts of these facts were observed. Claiming and releasing a host
    /// require it, because a machine of the same name may have been deleted or created since.
    pub confirmed: bool,
    /// The Machine that owns it; absent when there is no owner reference or the Machine does not exist.
    pub owner: Observed<&'a Machine>,
    /// The Cluster that its label names.
    pub cluster: Observed<&'a Cluster>,
    /// The Metal3Clusters of the namespace.
    pub metal3_clusters: &'a [&'a Metal3Cluster],
    /// An unreadable Metal3Cluster of the namespace, if any: it may be the machine's.
    pub unreadable_cluster: Option<&'a str>,
    /// Hosts.
    pub hosts: Hosts<'a>,
    /// The claim on data with the machine's name.
    pub claim: Observed<&'a Metal3DataClaim>,
    /// The Metal3Data that the claim names.
    pub data: Observed<&'a Metal3Data>,
    /// The Nodes of the workload cluster.
    pub nodes: Nodes<'a>,
    /// The administrator's settings.
    pub settings: Settings,
    /// The time for timestamps.
    pub now: Time,
}

/// The hosts relevant to a machine.
#[derive(Debug, Clone)]
pub struct Hosts<'a> {
    /// The host that [`named`] returns.
    pub named: Observed<&'a BareMetalHost>,
    /// Whether it was read live before these hosts were observed.
    pub named_is_live: bool,
    /// The hosts whose consumer is the machine, by name.
    pub claimed: &'a [&'a BareMetalHost],
    /// All readable hosts of the namespace; may be empty when the machine has a host.
    pub all: &'a [&'a BareMetalHost],
    /// An unreadable host of the namespace, if any: it may be the machine's.
    pub unreadable: Option<&'a str>,
}

/// The Nodes of a workload cluster.
#[derive(Debug, Clone, Copy)]
pub enum Nodes<'a> {
    /// The complete list.
    Listed(&'a [NodeFacts<'a>]),
    /// They cannot be listed, for this reason.
    Unknown(&'a str),
}

/// The administrator's settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether released hosts stay powered on, so that they are cleaned and deployed without a reboot.
    pub fast_track: bool,
}

/// The host in the machine's annotation, without the namespace, which is the machine's own.
#[must_use]
pub fn associated(machine: &Metal3Machine) -> Option<&str> {
    let text = annotation(machine, HOST_ANNOTATION)?;
    let name = text.rsplit_once('/').map_or(text, |(_, name)| name);
    Some(name).filter(|name| !name.is_empty())
}

/// The host that the machine has chosen and not claimed yet.
#[must_use]
pub fn chosen(machine: &Metal3Machine) -> Option<&str> {
    annotation(machine, CHOSEN_HOST_ANNOTATION).filter(|name| !name.is_empty())
}

/// The host that the machine has, or else has chosen.
#[must_use]
pub fn named(machine: &Metal3Machine) -> Option<&str> {
    associated(machine).or_else(|| chosen(machine))
}

/// Whether a consumer reference is to the Metal3Machine of this name and namespace.
#[must_use]
pub fn is_machine(consumer: &ObjectReference, namespace: &str, name: &str) -> bool {
    consumer.kind.as_deref() == Some(Metal3Machine::KIND)
        && owner::group_of(consumer.api_version.as_deref().unwrap_or_default()) == Metal3Machine::GROUP
        && consumer.name.as_deref() == Some(name)
        && consumer.namespace.as_deref() == Some(namespace)
}

fn annotation<'a>(machine: &'a Metal3Machine, key: &str) -> Option<&'a str> {
    machine.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
