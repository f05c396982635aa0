//! The caches that the controllers share, and whom a change concerns.
//!
//! A host that can be taken wakes the machines of its namespace that wait for one, so nothing polls. Whom a change of one
//! kind concerns in another is asked of [`SharedIndexes`]: inside a cache nobody looks into a cache.

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

use crate::cluster::{cluster_name, is_namesake};
use crate::endpoint::pool::object_of;
use crate::endpoint::render;
use crate::machine::facts::{associated, named};

/// What the controllers watch. Clones share it.
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

/// Which machines and Metal3Clusters a change of something else concerns, from inside any cache.
#[derive(Debug, Clone)]
pub(super) struct Ties {
    machines: SharedIndexes<MachineIndexes>,
    metal3_clusters: SharedIndexes<ClusterIndexes>,
}

/// Which Metal3Clusters belong to a Cluster, which are in a namespace, and which have their endpoint in a Secret.
#[derive(Debug, Default)]
pub struct ClusterIndexes {
    near: Index<String>,
    of_cluster: Index<Key>,
    of_secret: Index<Key>,
}

/// Which Metal3Machines belong to a Cluster, which are in a namespace, which name a host, and which have none.
#[derive(Debug, Default)]
pub struct MachineIndexes {
    near: Index<String>,
    of_cluster: Index<Key>,
    of_host: Index<Key>,
    without_host: Index<String>,
}

/// Which hosts a machine has.
#[derive(Debug, Default)]
pub struct HostIndexes {
    of_consumer: Index<Key>,
}

impl Indexes<Metal3Cluster> for ClusterIndexes {
    fn replace(&mut self, key: &Key, old: Option<&Metal3Cluster>, new: Option<&Metal3Cluster>) {
        let namespace = |_: &Metal3Cluster| key.namespace.clone();
        self.near.replace(key, old.map(namespace), new.map(namespace));
        let cluster = |one: &Metal3Cluster| Some(key.sibling(cluster_name(one)?));
        self.of_cluster
            .replace(key, old.and_then(cluster), new.and_then(cluster));
        let secret = |one: &Metal3Cluster| Some(key.sibling(&render::asked(one)?.secret_name));
        self.of_secret.replace(key, old.and_then(secret), new.and_then(secret));
    }
}

impl Indexes<Metal3Machine> for MachineIndexes {
    fn replace(&mut self, key: &Key, old: Option<&Metal3Machine>, new: Option<&Metal3Machine>) {
        let namespace = |_: &Metal3Machine| key.namespace.clone();
        self.near.replace(key, old.map(namespace), new.map(namespace));
        let cluster = |machine: &Metal3Machine| Some(key.sibling(owner::cluster_of(&machine.metadata)?));
        self.of_cluster
            .replace(key, old.and_then(cluster), new.and_then(cluster));
        self.of_host.replace(key, old.and_then(host_of), new.and_then(host_of));
        let waits = |machine: &Metal3Machine| {
            let meta = &machine.metadata;
            let is_ours = meta.finalizers.iter().flatten().any(|name| name == MACHINE_FINALIZER);
            // One that goes with our finalizer may have been given a host that it does not name.
            let is_idle = associated(machine).is_none() && (meta.deletion_timestamp.is_none() || is_ours);
            is_idle.then(|| key.namespace.clone())
        };
        self.without_host.replace(key, old.and_then(waits), new.and_then(waits));
    }
}

impl Indexes<BareMetalHost> for HostIndexes {
    fn replace(&mut self, key: &Key, old: Option<&BareMetalHost>, new: Option<&BareMetalHost>) {
        self.of_consumer
            .replace(key, old.and_then(consumer), new.and_then(consumer));
    }
}

impl HostIndexes {
    /// The hosts whose consumer a machine is.
    pub fn of_machine(&self, machine: &Key) -> impl Iterator<Item = &Key> + use<'_> {
        self.of_consumer.get(machine)
    }
}

/// The machine that has a host. Consumers of other kinds are not ours.
fn consumer(host: &BareMetalHost) -> Option<Key> {
    let consumer = host.spec.consumer_ref.as_ref()?;
    let (namespace, name) = (consumer.namespace.clone()?, consumer.name.clone()?);
    let is_ours = crate::machine::facts::is_machine(consumer, &namespace, &name);
    // The machine of another namespace is nobody's: references stay near.
    (is_ours && host.metadata.namespace.as_ref() == Some(&namespace)).then_some(Key { namespace, name })
}

fn both<'a, K, T>(change: &Change<'a, K>, read: impl Fn(&'a K) -> Option<T>) -> Vec<T> {
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

/// What of a host may make a machine take it.
fn attraction(host: &BareMetalHost) -> impl PartialEq + '_ {
    let meta = &host.metadata;
    let state = matches!(
        host.status.provisioning.state,
        ProvisioningState::Available | ProvisioningState::Ready
    );
    let wishes = (
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
        wishes,
        health,
    )
}

impl Caches {
    /// What leads from one cache to another.
    pub(super) fn ties(&self) -> Ties {
        Ties {
            machines: self.metal3_machines.indexes(),
            metal3_clusters: self.metal3_clusters.indexes(),
        }
    }
}

impl Ties {
    /// The machines that a change of a host concerns: who has it, who names it, and who waits for one.
    pub(super) fn machines_of_host(&self, change: &Change<'_, BareMetalHost>) -> BTreeSet<Key> {
        let mut keys: BTreeSet<Key> = both(change, consumer).into_iter().collect();
        let Some(host) = change.key() else { return keys };
        self.machines.read(|machines| {
            keys.extend(machines.of_host.get(&host).cloned());
            // While a host cannot be read it may be anybody's.
            if change.became_readable() || matches!(change, Change::Unreadable { .. }) {
                keys.extend(machines.near.get(&host.namespace).cloned());
            } else if !change.is_same(|old, new| attraction(old) == attraction(new)) {
                keys.extend(machines.without_host.get(&host.namespace).cloned());
            }
        });
        keys
    }

    /// The machines of a Cluster, where it changed in what they look at.
    pub(super) fn machines_of_cluster(&self, change: &Change<'_, Cluster>) -> Vec<Key> {
        if change.is_same(same_cluster) {
            return Vec::new();
        }
        let Some(cluster) = change.key() else { return Vec::new() };
        self.machines
            .read(|machines| machines.of_cluster.get(&cluster).cloned().collect())
    }

    /// The machines that may belong to a Metal3Cluster, where it changed in what they look at.
    pub(super) fn machines_of_metal3_cluster(&self, change: &Change<'_, Metal3Cluster>) -> Vec<Key> {
        let Some(key) = change.key() else { return Vec::new() };
        if change.is_same(same_to_machines) {
            return Vec::new();
        }
        self.machines
            .read(|machines| machines.near.get(&key.namespace).cloned().collect())
    }

    /// The Metal3Clusters that a Cluster concerns: those that say they belong to it, and one that it may use for its
    /// name.
    pub(super) fn metal3_clusters_of_cluster(&self, change: &Change<'_, Cluster>) -> Vec<Key> {
        if change.is_same(same_cluster) {
            return Vec::new();
        }
        let Some(cluster) = change.key() else { return Vec::new() };
        let namesake = |cluster: &Cluster| {
            let name = &cluster.spec.infrastructure_ref.as_ref()?.name;
            is_namesake(name, cluster).then(|| Key::of(cluster).sibling(name))
        };
        let mut keys: BTreeSet<Key> = both(change, namesake).into_iter().collect();
        keys.extend(
            self.metal3_clusters
                .read(|ones| ones.of_cluster.get(&cluster).cloned().collect::<Vec<_>>()),
        );
        keys.into_iter().collect()
    }

    /// The Metal3Clusters whose endpoint is to be in a Secret.
    pub(super) fn metal3_clusters_of_secret(&self, change: &Change<'_, PartialObjectMeta<Secret>>) -> Vec<Key> {
        let Some(secret) = change.key() else { return Vec::new() };
        self.metal3_clusters
            .read(|ones| ones.of_secret.get(&secret).cloned().collect())
    }

    /// The Metal3Clusters that may wait for a machine to go, or to belong to another: those of its Cluster. One that
    /// cannot be read may be anybody's.
    pub(super) fn metal3_clusters_of_machine(&self, change: &Change<'_, Metal3Machine>) -> Vec<Key> {
        let Some(key) = change.key() else { return Vec::new() };
        let is_anybodys = change.became_readable() || matches!(change, Change::Unreadable { .. });
        if is_anybodys {
            return self
                .metal3_clusters
                .read(|ones| ones.near.get(&key.namespace).cloned().collect());
        }
        let is_new = matches!(change, Change::Applied { old: None, .. });
        if is_new || change.is_same(same_ties) {
            return Vec::new();
        }
        let cluster = |machine: &Metal3Machine| owner::cluster_of(&machine.metadata).map(|name| key.sibling(name));
        let clusters: BTreeSet<Key> = both(change, cluster).into_iter().collect();
        self.metal3_clusters.read(|ones| {
            let of_them = clusters.iter().flat_map(|cluster| ones.of_cluster.get(cluster));
            of_them.cloned().collect()
        })
    }
}

/// Whether a Metal3Cluster is the same to machines: where the API server is reached is not their business.
fn same_to_machines(old: &Metal3Cluster, new: &Metal3Cluster) -> bool {
    let spec = |one: &Metal3Cluster| Metal3ClusterSpec {
        control_plane_endpoint: None,
        ..one.spec.clone()
    };
    old.metadata.labels == new.metadata.labels && spec(old) == spec(new)
}

/// Whether a machine says the same of where it belongs.
fn same_ties(old: &Metal3Machine, new: &Metal3Machine) -> bool {
    owner::cluster_of(&old.metadata) == owner::cluster_of(&new.metadata)
        && old.spec.metal3_cluster_ref == new.spec.metal3_cluster_ref
        && old.status.metal3_cluster == new.status.metal3_cluster
}

fn same_cluster(old: &Cluster, new: &Cluster) -> bool {
    old.spec == new.spec
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        && metal3_capi::progress::has_infrastructure(old) == metal3_capi::progress::has_infrastructure(new)
}

/// The Metal3Cluster whose endpoint a claim would be for, by its name.
pub(super) fn metal3_cluster_of_claim<K: Resource>(change: &Change<'_, K>) -> Option<Key> {
    let claim = change.key()?;
    object_of(&claim.name).map(|name| claim.sibling(name))
}

/// The same, by the claim that an address says it is for.
pub(super) fn metal3_cluster_of_address<K: Resource>(
    change: &Change<'_, K>,
    claim: impl Fn(&K) -> Option<&str>,
) -> Vec<Key> {
    both(change, |address| {
        let name = object_of(claim(address)?)?;
        Some(Key::of(address).sibling(name))
    })
}

/// The machine that a Machine is made of.
pub(super) fn machines_of_machine(change: &Change<'_, Machine>) -> Vec<Key> {
    both(change, |machine| {
        let reference = &machine.spec.infrastructure_ref;
        let is_ours = reference.kind == Metal3Machine::KIND && reference.api_group == Metal3Machine::GROUP;
        let namespace = machine.metadata.namespace.clone()?;
        is_ours.then(|| Key {
            namespace,
            name: reference.name.clone(),
        })
    })
}

/// The machine that asked for data.
pub(super) fn machines_of_data(change: &Change<'_, Metal3Data>) -> Vec<Key> {
    both(change, |data| {
        let name = data.spec.claim.as_ref()?.name.clone()?;
        Some(Key {
            namespace: data.metadata.namespace.clone()?,
            name,
        })
    })
}

/// The host that a machine has or is about to take, if it says so.
pub(super) fn host_of(machine: &Metal3Machine) -> Option<Key> {
    Some(Key::of(machine).sibling(named(machine)?))
}

#[cfg(test)]
mod tests;
