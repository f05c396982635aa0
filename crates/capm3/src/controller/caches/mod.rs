//! The shared caches with their indexes.
//!
//! Mappings between kinds read [`SharedIndexes`], because a cache handler must not lock another cache.

use metal3_api::cluster::{Cluster, Machine, MachineDeployment};
use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine, Metal3MachineTemplate,
};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::{owner, progress};
use metal3_runtime::cache::{Change, Index, Indexes, Key, SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};

use crate::capacity::DeploymentIndexes;
use crate::cluster::{cluster_name, zones};
use crate::endpoint::render;
use crate::machine::facts::{associated, is_machine, named, template_of};
use crate::needs::Machines;

/// The caches of all watched kinds. Clones share their content.
#[derive(Clone, Default)]
pub struct Caches {
    /// Clusters.
    pub clusters: SharedCache<Cluster>,
    /// Machines.
    pub machines: SharedCache<Machine>,
    /// Metal3Clusters.
    pub metal3_clusters: SharedCache<Metal3Cluster, SharedIndexes<ClusterIndexes>>,
    /// Metal3Machines.
    pub metal3_machines: SharedCache<Metal3Machine, SharedIndexes<MachineIndexes>>,
    /// Templates of machines.
    pub machine_templates: SharedCache<Metal3MachineTemplate>,
    /// MachineDeployments, with the templates that the autoscaled ones use. Optional: only their templates need them.
    pub deployments: SharedCache<MachineDeployment, SharedIndexes<DeploymentIndexes>>,
    /// Claims on data.
    pub claims: SharedCache<Metal3DataClaim>,
    /// Data.
    pub data: SharedCache<Metal3Data>,
    /// Hosts.
    pub hosts: SharedCache<BareMetalHost, HostIndexes>,
}

/// The indexes that map a change of one kind to keys of Metal3Machines and Metal3Clusters. Safe to read in a cache
/// handler.
#[derive(Clone)]
pub(crate) struct RelatedKeys {
    pub(crate) machines: SharedIndexes<MachineIndexes>,
    pub(crate) metal3_clusters: SharedIndexes<ClusterIndexes>,
}

/// Indexes of Metal3Clusters by namespace, Cluster, endpoint Secret and data template of a zone.
#[derive(Default)]
pub struct ClusterIndexes {
    pub(crate) by_namespace: Index<String>,
    pub(crate) by_cluster: Index<Key>,
    pub(crate) by_secret: Index<Key>,
    pub(crate) by_zone_template: Index<Key>,
}

/// Indexes of Metal3Machines by namespace, Cluster, host and template, and of those without a host.
#[derive(Default)]
pub struct MachineIndexes {
    pub(crate) by_namespace: Index<String>,
    pub(crate) by_cluster: Index<Key>,
    pub(crate) by_host: Index<Key>,
    pub(crate) by_template: Index<Key>,
    pub(crate) without_host: Index<String>,
}

/// Index of hosts by consumer.
#[derive(Default)]
pub struct HostIndexes {
    by_consumer: Index<Key>,
}

impl Indexes<Metal3Cluster> for ClusterIndexes {
    fn replace(&mut self, key: &Key, old: Option<&Metal3Cluster>, new: Option<&Metal3Cluster>) {
        let namespace = |_: &Metal3Cluster| key.namespace.clone();
        self.by_namespace.replace(key, old.map(namespace), new.map(namespace));
        let cluster = |one: &Metal3Cluster| Some(key.sibling(cluster_name(one)?));
        self.by_cluster
            .replace(key, old.and_then(cluster), new.and_then(cluster));
        let secret = |one: &Metal3Cluster| Some(key.sibling(&render::requested(one)?.secret_name));
        self.by_secret.replace(key, old.and_then(secret), new.and_then(secret));
        let templates = |one: Option<&Metal3Cluster>| -> Vec<Key> {
            let names = one.into_iter().flat_map(zones::templates_of);
            names.map(|name| key.sibling(name)).collect()
        };
        self.by_zone_template.replace(key, templates(old), templates(new));
    }
}

impl Indexes<Metal3Machine> for MachineIndexes {
    fn replace(&mut self, key: &Key, old: Option<&Metal3Machine>, new: Option<&Metal3Machine>) {
        let namespace = |_: &Metal3Machine| key.namespace.clone();
        self.by_namespace.replace(key, old.map(namespace), new.map(namespace));
        let cluster = |machine: &Metal3Machine| Some(key.sibling(owner::cluster_of(&machine.metadata)?));
        self.by_cluster
            .replace(key, old.and_then(cluster), new.and_then(cluster));
        self.by_host.replace(key, old.and_then(host_of), new.and_then(host_of));
        let template = |machine: &Metal3Machine| Some(key.sibling(template_of(machine)?));
        self.by_template
            .replace(key, old.and_then(template), new.and_then(template));
        let without_host = |machine: &Metal3Machine| {
            let meta = &machine.metadata;
            let has_finalizer = meta.finalizers.iter().flatten().any(|name| name == MACHINE_FINALIZER);
            // A machine in deletion with the finalizer may have claimed a host that it does not name.
            let is_without_host = associated(machine).is_none() && (meta.deletion_timestamp.is_none() || has_finalizer);
            is_without_host.then(|| key.namespace.clone())
        };
        self.without_host
            .replace(key, old.and_then(without_host), new.and_then(without_host));
    }
}

impl Indexes<BareMetalHost> for HostIndexes {
    fn replace(&mut self, key: &Key, old: Option<&BareMetalHost>, new: Option<&BareMetalHost>) {
        self.by_consumer
            .replace(key, old.and_then(consumer), new.and_then(consumer));
    }
}

impl HostIndexes {
    /// The hosts whose consumer is the machine.
    pub fn of_machine(&self, machine: &Key) -> impl Iterator<Item = &Key> + use<'_> {
        self.by_consumer.get(machine)
    }
}

/// The Metal3Machine that is the host's consumer; `None` for consumers of other kinds.
pub(crate) fn consumer(host: &BareMetalHost) -> Option<Key> {
    let consumer = host.spec.consumer_ref.as_ref()?;
    let (namespace, name) = (consumer.namespace.clone()?, consumer.name.clone()?);
    let is_metal3_machine = is_machine(consumer, &namespace, &name);
    // A consumer in another namespace is ignored: references do not cross namespaces.
    (is_metal3_machine && host.metadata.namespace.as_ref() == Some(&namespace)).then_some(Key { namespace, name })
}

/// What `read` returns for the object before and after a change.
pub(crate) fn old_and_new<'a, K, T>(change: &Change<'a, K>, read: impl Fn(&'a K) -> Option<T>) -> Vec<T> {
    let (old, new) = match change {
        Change::Applied { old, new, .. } => (*old, Some(*new)),
        Change::Deleted { old, .. } | Change::Unreadable { old, .. } => (*old, None),
        Change::Synced => (None, None),
    };
    [old.and_then(&read), new.and_then(&read)]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether no field changed that concerns machines or Metal3Clusters.
pub(crate) fn is_cluster_unchanged(old: &Cluster, new: &Cluster) -> bool {
    old.spec == new.spec
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        && progress::has_infrastructure(old) == progress::has_infrastructure(new)
}

/// The host that a machine has or has chosen.
pub(crate) fn host_of(machine: &Metal3Machine) -> Option<Key> {
    Some(Key::of(machine).sibling(named(machine)?))
}

impl Caches {
    pub(crate) fn related_keys(&self) -> RelatedKeys {
        RelatedKeys {
            machines: self.metal3_machines.indexes(),
            metal3_clusters: self.metal3_clusters.indexes(),
        }
    }

    /// The watches of all kinds that the controllers of clusters and machines read.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Machines> {
        WatchSet::new(config)
            .whole(&self.clusters)
            .whole(&self.machines)
            .whole(&self.metal3_clusters)
            .whole(&self.metal3_machines)
            .whole(&self.machine_templates)
            .optional(&self.deployments)
            .whole(&self.claims)
            .whole(&self.data)
            .whole(&self.hosts)
    }
}

#[cfg(test)]
mod tests;
