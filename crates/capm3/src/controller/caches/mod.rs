//! The shared caches, and which keys a change enqueues.
//!
//! A host that becomes available enqueues the machines of its namespace without a host, so nothing polls. Mappings
//! between kinds read [`SharedIndexes`], because a cache handler must not lock another cache.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube_core::{PartialObjectMeta, Resource};
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::MACHINE_FINALIZER;
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3ClusterSpec, Metal3Data, Metal3DataClaim, Metal3Machine,
};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_capi::owner;
use metal3_runtime::cache::{Change, Index, Indexes, Key, SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};

use crate::cluster::{cluster_name, is_namesake};
use crate::endpoint::pool::object_of;
use crate::endpoint::render;
use crate::machine::facts::{associated, named};
use crate::needs::Machines;

/// The caches of all watched kinds. Clones share their content.
#[derive(Debug, Clone, Default)]
pub struct Caches {
    /// Clusters.
    pub clusters: SharedCache<Cluster>,
    /// Machines.
    pub machines: SharedCache<Machine>,
    /// Metal3Clusters.
    pub metal3_clusters: SharedCache<Metal3Cluster, SharedIndexes<ClusterIndexes>>,
    /// Metal3Machines.
    pub metal3_machines: SharedCache<Metal3Machine, SharedIndexes<MachineIndexes>>,
    /// Claims on data.
    pub claims: SharedCache<Metal3DataClaim>,
    /// Data.
    pub data: SharedCache<Metal3Data>,
    /// Hosts.
    pub hosts: SharedCache<BareMetalHost, HostIndexes>,
}

/// Maps a change of one kind to keys of Metal3Machines and Metal3Clusters. Safe to call in a cache handler.
#[derive(Debug, Clone)]
pub(crate) struct RelatedKeys {
    machines: SharedIndexes<MachineIndexes>,
    metal3_clusters: SharedIndexes<ClusterIndexes>,
}

/// Indexes of Metal3Clusters by namespace, Cluster and endpoint Secret.
#[derive(Debug, Default)]
pub struct ClusterIndexes {
    by_namespace: Index<String>,
    by_cluster: Index<Key>,
    by_secret: Index<Key>,
}

/// Indexes of Metal3Machines by namespace, Cluster and host, and of those without a host.
#[derive(Debug, Default)]
pub struct MachineIndexes {
    by_namespace: Index<String>,
    by_cluster: Index<Key>,
    by_host: Index<Key>,
    without_host: Index<String>,
}

/// Index of hosts by consumer.
#[derive(Debug, Default)]
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
fn consumer(host: &BareMetalHost) -> Option<Key> {
    let consumer = host.spec.consumer_ref.as_ref()?;
    let (namespace, name) = (consumer.namespace.clone()?, consumer.name.clone()?);
    let is_metal3_machine = crate::machine::facts::is_machine(consumer, &namespace, &name);
    // A consumer in another namespace is ignored: references do not cross namespaces.
    (is_metal3_machine && host.metadata.namespace.as_ref() == Some(&namespace)).then_some(Key { namespace, name })
}

fn old_and_new<'a, K, T>(change: &Change<'a, K>, read: impl Fn(&'a K) -> Option<T>) -> Vec<T> {
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

/// The fields that decide whether a machine can claim a host.
fn claim_relevant_fields(host: &BareMetalHost) -> impl PartialEq + '_ {
    let meta = &host.metadata;
    let state = matches!(
        host.status.provisioning.state,
        ProvisioningState::Available | ProvisioningState::Ready
    );
    let desired = (
        &host.spec.consumer_ref,
        &host.spec.image,
        &host.spec.custom_deploy,
        &host.spec.externally_provisioned,
    );
    let health = (host.status.operational_status, host.status.error_message.is_empty());
    (
        &meta.labels,
        &meta.annotations,
        meta.deletion_timestamp.is_some(),
        state,
        desired,
        health,
    )
}

impl Caches {
    pub(crate) fn related_keys(&self) -> RelatedKeys {
        RelatedKeys {
            machines: self.metal3_machines.indexes(),
            metal3_clusters: self.metal3_clusters.indexes(),
        }
    }
}

impl RelatedKeys {
    /// The machines to reconcile after a change of a host: its consumer, those that name it, and those without a host.
    pub(crate) fn machines_of_host(&self, change: &Change<'_, BareMetalHost>) -> BTreeSet<Key> {
        let mut keys: BTreeSet<Key> = old_and_new(change, consumer).into_iter().collect();
        let Some(host) = change.key() else { return keys };
        self.machines.read(|machines| {
            keys.extend(machines.by_host.get(&host).cloned());
            // An unreadable host may belong to any machine.
            if change.became_readable() || matches!(change, Change::Unreadable { .. }) {
                keys.extend(machines.by_namespace.get(&host.namespace).cloned());
            } else if !change.is_same(|old, new| claim_relevant_fields(old) == claim_relevant_fields(new)) {
                keys.extend(machines.without_host.get(&host.namespace).cloned());
            }
        });
        keys
    }

    /// The machines of a Cluster, when a relevant field changed.
    pub(crate) fn machines_of_cluster(&self, change: &Change<'_, Cluster>) -> Vec<Key> {
        if change.is_same(is_cluster_unchanged) {
            return Vec::new();
        }
        let Some(cluster) = change.key() else { return Vec::new() };
        self.machines
            .read(|machines| machines.by_cluster.get(&cluster).cloned().collect())
    }

    /// The machines that may belong to a Metal3Cluster, when a relevant field changed.
    pub(crate) fn machines_of_metal3_cluster(&self, change: &Change<'_, Metal3Cluster>) -> Vec<Key> {
        let Some(key) = change.key() else { return Vec::new() };
        if change.is_same(is_same_for_machines) {
            return Vec::new();
        }
        self.machines
            .read(|machines| machines.by_namespace.get(&key.namespace).cloned().collect())
    }

    /// The Metal3Clusters to reconcile after a change of a Cluster: those that name it, and the one with the name of
    /// its infrastructure reference.
    pub(crate) fn metal3_clusters_of_cluster(&self, change: &Change<'_, Cluster>) -> Vec<Key> {
        if change.is_same(is_cluster_unchanged) {
            return Vec::new();
        }
        let Some(cluster) = change.key() else { return Vec::new() };
        let namesake = |cluster: &Cluster| {
            let name = &cluster.spec.infrastructure_ref.as_ref()?.name;
            is_namesake(name, cluster).then(|| Key::of(cluster).sibling(name))
        };
        let mut keys: BTreeSet<Key> = old_and_new(change, namesake).into_iter().collect();
        keys.extend(
            self.metal3_clusters
                .read(|ones| ones.by_cluster.get(&cluster).cloned().collect::<Vec<_>>()),
        );
        keys.into_iter().collect()
    }

    /// The Metal3Clusters whose endpoint is written to the Secret.
    pub(crate) fn metal3_clusters_of_secret(&self, change: &Change<'_, PartialObjectMeta<Secret>>) -> Vec<Key> {
        let Some(secret) = change.key() else { return Vec::new() };
        self.metal3_clusters
            .read(|ones| ones.by_secret.get(&secret).cloned().collect())
    }

    /// The Metal3Clusters that may wait for the machine's deletion or move: those of its Cluster. An unreadable machine
    /// may belong to any.
    pub(crate) fn metal3_clusters_of_machine(&self, change: &Change<'_, Metal3Machine>) -> Vec<Key> {
        let Some(key) = change.key() else { return Vec::new() };
        let may_concern_any = change.became_readable() || matches!(change, Change::Unreadable { .. });
        if may_concern_any {
            return self
                .metal3_clusters
                .read(|ones| ones.by_namespace.get(&key.namespace).cloned().collect());
        }
        let is_new = matches!(change, Change::Applied { old: None, .. });
        if is_new || change.is_same(is_same_cluster) {
            return Vec::new();
        }
        let cluster = |machine: &Metal3Machine| owner::cluster_of(&machine.metadata).map(|name| key.sibling(name));
        let clusters: BTreeSet<Key> = old_and_new(change, cluster).into_iter().collect();
        self.metal3_clusters.read(|ones| {
            let affected = clusters.iter().flat_map(|cluster| ones.by_cluster.get(cluster));
            affected.cloned().collect()
        })
    }
}

/// Whether a Metal3Cluster is equal for machines, which do not use the endpoint.
fn is_same_for_machines(old: &Metal3Cluster, new: &Metal3Cluster) -> bool {
    let spec = |one: &Metal3Cluster| Metal3ClusterSpec {
        control_plane_endpoint: None,
        ..one.spec.clone()
    };
    old.metadata.labels == new.metadata.labels && spec(old) == spec(new)
}

fn is_same_cluster(old: &Metal3Machine, new: &Metal3Machine) -> bool {
    owner::cluster_of(&old.metadata) == owner::cluster_of(&new.metadata)
        && old.spec.metal3_cluster_ref == new.spec.metal3_cluster_ref
        && old.status.metal3_cluster == new.status.metal3_cluster
}

fn is_cluster_unchanged(old: &Cluster, new: &Cluster) -> bool {
    old.spec == new.spec
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        && metal3_capi::progress::has_infrastructure(old) == metal3_capi::progress::has_infrastructure(new)
}

/// The Metal3Cluster of an endpoint claim, by the claim's name.
pub(crate) fn metal3_cluster_of_claim<K: Resource>(change: &Change<'_, K>) -> Option<Key> {
    let claim = change.key()?;
    object_of(&claim.name).map(|name| claim.sibling(name))
}

/// The Metal3Cluster of an address, by the claim in its spec.
pub(crate) fn metal3_cluster_of_address<K: Resource>(
    change: &Change<'_, K>,
    claim: impl Fn(&K) -> Option<&str>,
) -> Vec<Key> {
    old_and_new(change, |address| {
        let name = object_of(claim(address)?)?;
        Some(Key::of(address).sibling(name))
    })
}

/// The Metal3Machine that a Machine references.
pub(crate) fn machines_of_machine(change: &Change<'_, Machine>) -> Vec<Key> {
    old_and_new(change, |machine| {
        let reference = &machine.spec.infrastructure_ref;
        let is_metal3_machine = reference.kind == Metal3Machine::KIND && reference.api_group == Metal3Machine::GROUP;
        let namespace = machine.metadata.namespace.clone()?;
        is_metal3_machine.then(|| Key {
            namespace,
            name: reference.name.clone(),
        })
    })
}

/// The Metal3Machine of a Metal3Data: it has the name of the claim.
pub(crate) fn machines_of_data(change: &Change<'_, Metal3Data>) -> Vec<Key> {
    old_and_new(change, |data| {
        let name = data.spec.claim.as_ref()?.name.clone()?;
        Some(Key {
            namespace: data.metadata.namespace.clone()?,
            name,
        })
    })
}

/// The host that a machine has or has chosen.
pub(crate) fn host_of(machine: &Metal3Machine) -> Option<Key> {
    Some(Key::of(machine).sibling(named(machine)?))
}

impl Caches {
    /// The watches of all kinds that the controllers of clusters and machines read.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Machines> {
        WatchSet::new(config)
            .whole(&self.clusters)
            .whole(&self.machines)
            .whole(&self.metal3_clusters)
            .whole(&self.metal3_machines)
            .whole(&self.claims)
            .whole(&self.data)
            .whole(&self.hosts)
    }
}

#[cfg(test)]
mod tests;
