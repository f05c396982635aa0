//! The Metal3Clusters to reconcile after a change of another object.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube_core::{PartialObjectMeta, Resource};
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_capi::owner;
use metal3_runtime::cache::{Change, Key};

use super::is_namesake;
use crate::controller::caches::{RelatedKeys, is_cluster_unchanged, old_and_new};
use crate::endpoint::pool::object_of;
use crate::machine::facts::{in_use, recorded};

impl RelatedKeys {
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

fn is_same_cluster(old: &Metal3Machine, new: &Metal3Machine) -> bool {
    owner::cluster_of(&old.metadata) == owner::cluster_of(&new.metadata)
        && old.spec.metal3_cluster_ref == new.spec.metal3_cluster_ref
        && old.status.metal3_cluster == new.status.metal3_cluster
        && in_use(old) == in_use(new)
        && recorded(old) == recorded(new)
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
