//! The inputs of the plan for a machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::cluster::names::{CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION};
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::{CHOSEN_HOST_ANNOTATION, HOST_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine, Metal3MachineTemplate,
};
use metal3_api::kind::Kind;
use metal3_api::meta::{ObjectReference, Time};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_capi::workload::{LabelledNode, Node, Nodes};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;

use super::reuse::ObservedSet;
use crate::label_sync::CopiedLabels;
use crate::node::NodeError;

/// The inputs of the plan for a machine, observed at one time.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The machine; `None` when it does not exist.
    pub machine: Option<Arc<Metal3Machine>>,
    /// Whether the machine, or its absence, was read live after the hosts of these facts were observed. Claiming and
    /// releasing a host require it, because a machine of the same name may have been deleted or created since.
    pub confirmed: bool,
    /// The Machine that owns it; absent when there is no owner reference or the Machine does not exist.
    pub owner: Observed<Arc<Machine>>,
    /// The Cluster that its label names.
    pub cluster: Observed<Arc<Cluster>>,
    /// The key of that Cluster. The name is empty when none is named.
    pub cluster_key: Key,
    /// The Metal3Clusters of the namespace.
    pub metal3_clusters: Vec<Arc<Metal3Cluster>>,
    /// Whether that of the machine was read from the API server in this reconcile.
    pub metal3_clusters_are_live: bool,
    /// Whether the data templates exist that zones of these Metal3Clusters name. Empty for a machine that takes no data from a
    /// zone.
    pub zone_templates: BTreeMap<String, Observed<()>>,
    /// An unreadable Metal3Cluster of the namespace, if any: it may be the machine's.
    pub unreadable_cluster: Option<String>,
    /// The template that it was created from; absent when it names none or the template does not exist.
    pub template: Observed<Arc<Metal3MachineTemplate>>,
    /// Whether it was read live. Removing an image requires it: the template may forbid that the disks are cleaned.
    pub template_is_live: bool,
    /// Whether a template of the namespace asks for node reuse, or may; false for a machine that is not being deleted.
    pub asks_for_reuse: bool,
    /// Whether another Cluster of the namespace has an owner of the same name for node reuse. False when no host is kept
    /// without its Cluster.
    pub has_namesake: bool,
    /// The set that keeps the machine's host, read live. Nothing else is read before a template asks for node reuse.
    pub set: ObservedSet,
    /// Hosts.
    pub hosts: Hosts,
    /// Why the API server refused, a short time ago, to remove the machine from the owners of its host.
    pub owner_refused: Option<String>,
    /// The claim on data with the machine's name.
    pub claim: Observed<Arc<Metal3DataClaim>>,
    /// The Metal3Data that the claim names.
    pub data: Observed<Arc<Metal3Data>>,
    /// All Nodes of the workload cluster.
    pub nodes: Observed<Nodes>,
    /// What the copy of labels to the Node needs.
    pub labels: LabelFacts,
    /// The administrator's settings.
    pub settings: Settings,
    /// The time for timestamps.
    pub now: Time,
}

/// What is known of the labels of the machine's Node.
#[derive(Debug, Clone)]
pub struct LabelFacts {
    /// The Node that the Machine names, as it is watched.
    pub node: Observed<Arc<Node>>,
    /// The same Node with its labels, read live.
    pub live: Observed<LabelledNode>,
    /// Whether that read was not sent, because another one is under way. Then nothing is known of the labels.
    pub is_busy: bool,
    /// What this process copied to it.
    pub copied: Option<CopiedLabels>,
    /// How long ago that was.
    pub since_copy: Duration,
}

/// The hosts relevant to a machine.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// The host that [`named`] returns.
    pub named: Observed<Arc<BareMetalHost>>,
    /// Whether it was read live before these hosts were observed.
    pub named_is_live: bool,
    /// The hosts whose consumer is the machine, by name.
    pub claimed: Vec<Arc<BareMetalHost>>,
    /// All readable hosts of the namespace; may be empty when the machine has a host.
    pub all: Vec<Arc<BareMetalHost>>,
    /// An unreadable host of the namespace, if any: its consumer may be the machine.
    pub unreadable: Option<String>,
}

impl Hosts {
    /// The hosts whose consumer is the machine, by name.
    pub fn claimed(&self) -> impl Iterator<Item = &BareMetalHost> {
        self.claimed.iter().map(AsRef::as_ref)
    }
}

/// The administrator's settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether released hosts stay powered on, so that they are cleaned and deployed without a reboot.
    pub fast_track: bool,
}

/// The host in the machine's annotation, without the namespace, which must be the machine's own. `None` for an invalid
/// value too: a machine with one neither uses nor releases a host, see [`check_host`].
#[must_use]
pub fn associated(machine: &Metal3Machine) -> Option<&str> {
    host_name(machine, annotation(machine, HOST_ANNOTATION)?)
}

fn host_name<'a>(machine: &Metal3Machine, text: &'a str) -> Option<&'a str> {
    let (namespace, name) = text.split_once('/')?;
    let is_own = machine.metadata.namespace.as_deref() == Some(namespace);
    Some(name).filter(|name| is_own && !name.is_empty() && !name.contains('/'))
}

/// Checks that the machine's annotation, if it is set, names a host of the machine's namespace.
///
/// differs (`host-annotation-checked`): the Go manager uses any namespace.
///
/// # Errors
/// When it does not.
pub fn check_host(machine: &Metal3Machine) -> Result<(), NodeError> {
    match annotation(machine, HOST_ANNOTATION) {
        Some(found) if !found.is_empty() && host_name(machine, found).is_none() => Err(NodeError::Host {
            found: found.to_owned(),
            namespace: machine.metadata.namespace.clone().unwrap_or_default(),
        }),
        _ => Ok(()),
    }
}

/// The host that the machine has chosen and not claimed yet.
#[must_use]
pub fn chosen(machine: &Metal3Machine) -> Option<&str> {
    annotation(machine, CHOSEN_HOST_ANNOTATION).filter(|name| !name.is_empty())
}

/// The Metal3Cluster found by an earlier reconcile, while the machine has a host.
pub(crate) fn recorded(machine: &Metal3Machine) -> Option<&str> {
    let found = machine.status.metal3_cluster.as_deref();
    found.filter(|_| associated(machine).is_some())
}

/// The Metal3Cluster that a machine may already use: it has one of its hosts, or chose one.
pub(crate) fn in_use(machine: &Metal3Machine) -> Option<&str> {
    let has_host = associated(machine).is_some() || chosen(machine).is_some();
    machine.status.metal3_cluster.as_deref().filter(|_| has_host)
}

/// Whether the host has an image or custom deploy.
pub(crate) const fn is_provisioned(host: &BareMetalHost) -> bool {
    host.spec.image.is_some() || host.spec.custom_deploy.is_some()
}

/// The host that the machine has, or else has chosen.
#[must_use]
pub fn named(machine: &Metal3Machine) -> Option<&str> {
    associated(machine).or_else(|| chosen(machine))
}

/// The Metal3MachineTemplate that the machine was created from, by the annotations of Cluster API.
#[must_use]
pub fn template_of(machine: &Metal3Machine) -> Option<&str> {
    let (kind, group) = annotation(machine, CLONED_FROM_GROUP_KIND_ANNOTATION)?.split_once('.')?;
    let is_template = kind == Metal3MachineTemplate::KIND && group == Metal3MachineTemplate::GROUP;
    annotation(machine, CLONED_FROM_NAME_ANNOTATION).filter(|name| is_template && !name.is_empty())
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
