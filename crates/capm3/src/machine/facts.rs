//! What a decision about a machine sees.

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::{CHOSEN_HOST_ANNOTATION, HOST_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::kind::Kind;
use metal3_api::meta::{ObjectReference, Time};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::{Sight, owner};

use crate::node::NodeFacts;

/// Everything that may decide what happens to a machine.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The machine.
    pub machine: &'a Metal3Machine,
    /// Whether it was read live after the hosts in these facts were looked up. What takes or gives back a host rests on
    /// that: nobody of the machine's name came or went in between.
    pub confirmed: bool,
    /// The Machine that owns it. Absent where none does, or where that one is gone.
    pub owner: Sight<'a, Machine>,
    /// The Cluster it says it belongs to.
    pub cluster: Sight<'a, Cluster>,
    /// The Metal3Clusters of the namespace.
    pub metal3_clusters: &'a [&'a Metal3Cluster],
    /// A Metal3Cluster of the namespace that cannot be read, if there is one: it may be the machine's.
    pub unreadable_cluster: Option<&'a str>,
    /// Hosts.
    pub hosts: Hosts<'a>,
    /// The claim on data of the machine's name.
    pub claim: Sight<'a, Metal3DataClaim>,
    /// The Metal3Data that the claim names.
    pub data: Sight<'a, Metal3Data>,
    /// The Nodes of the workload cluster.
    pub nodes: Nodes<'a>,
    /// What the administrator chose.
    pub settings: Settings,
    /// The time for what is written.
    pub now: Time,
}

/// The hosts that may matter to a machine.
#[derive(Debug, Clone, Copy)]
pub struct Hosts<'a> {
    /// The one that [`named`] names.
    pub named: Sight<'a, BareMetalHost>,
    /// Whether that one was read live before these were looked up.
    pub named_is_live: bool,
    /// Those whose consumer is the machine, by name.
    pub claimed: &'a [&'a BareMetalHost],
    /// All of the namespace that can be read; none is needed where the machine has a host.
    pub all: &'a [&'a BareMetalHost],
    /// A host of the namespace that cannot be read, if there is one: it may be the machine's.
    pub unreadable: Option<&'a str>,
}

/// What is known of the Nodes of a workload cluster.
#[derive(Debug, Clone, Copy)]
pub enum Nodes<'a> {
    /// All of them.
    Seen(&'a [NodeFacts<'a>]),
    /// Nobody can say, for this reason.
    Unknown(&'a str),
}

/// What the administrator chose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether released hosts stay powered on, so that they are cleaned and deployed without a reboot.
    pub fast_track: bool,
}

/// The host that the machine says it has; namespaces are always its own.
#[must_use]
pub fn associated(machine: &Metal3Machine) -> Option<&str> {
    let text = annotation(machine, HOST_ANNOTATION)?;
    let name = text.rsplit_once('/').map_or(text, |(_, name)| name);
    Some(name).filter(|name| !name.is_empty())
}

/// The host that the machine says it is about to take.
#[must_use]
pub fn chosen(machine: &Metal3Machine) -> Option<&str> {
    annotation(machine, CHOSEN_HOST_ANNOTATION).filter(|name| !name.is_empty())
}

/// The host that the machine has, or else is about to take.
#[must_use]
pub fn named(machine: &Metal3Machine) -> Option<&str> {
    associated(machine).or_else(|| chosen(machine))
}

/// Whether a reference of a host is to the machine of this name and namespace.
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
