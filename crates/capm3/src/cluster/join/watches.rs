//! The Metal3Clusters to reconcile after a change that a look at the workload cluster may follow.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_capi::owner;
use metal3_capi::workload::kubeconfig;
use metal3_runtime::cache::{Change, Key};

use super::has_control_plane;
use crate::controller::caches::{RelatedKeys, old_and_new};

impl RelatedKeys {
    /// Those of a Cluster whose control plane was initialized.
    pub(crate) fn metal3_clusters_of_control_plane(&self, change: &Change<'_, Cluster>) -> Vec<Key> {
        if change.is_same(|old, new| has_control_plane(old) == has_control_plane(new)) {
            return Vec::new();
        }
        self.metal3_clusters_in(change.key())
    }

    /// Those of the Cluster whose kubeconfig is in the Secret.
    pub(crate) fn metal3_clusters_of_kubeconfig(&self, change: &Change<'_, PartialObjectMeta<Secret>>) -> Vec<Key> {
        let cluster = change.key().and_then(|secret| {
            let name = secret.name.strip_suffix(kubeconfig::SUFFIX)?;
            Some(secret.sibling(name))
        });
        self.metal3_clusters_in(cluster)
    }

    /// Those of the Cluster of a Machine that appeared, or has another bootstrap configuration.
    pub(crate) fn metal3_clusters_of_bootstrap(&self, change: &Change<'_, Machine>) -> Vec<Key> {
        let bootstrap = |one: &Machine| {
            let kind = one.spec.bootstrap.config_ref.as_ref().map(|config| config.kind.clone());
            (one.spec.cluster_name.clone(), kind)
        };
        if change.is_same(|old, new| bootstrap(old) == bootstrap(new)) {
            return Vec::new();
        }
        let Some(key) = change.key() else { return Vec::new() };
        let clusters = old_and_new(change, |machine| Some(key.sibling(&machine.spec.cluster_name)));
        let clusters: BTreeSet<Key> = clusters.into_iter().collect();
        clusters
            .into_iter()
            .flat_map(|cluster| self.metal3_clusters_in(Some(cluster)))
            .collect()
    }

    /// Those of the Cluster of a Metal3Machine that got its owner.
    pub(crate) fn metal3_clusters_of_owned(&self, change: &Change<'_, Metal3Machine>) -> Vec<Key> {
        let owner_of = |one: &Metal3Machine| owner::first::<Machine>(&one.metadata).map(|owner| owner.name.clone());
        if change.is_same(|old, new| owner_of(old) == owner_of(new)) {
            return Vec::new();
        }
        let Some(key) = change.key() else { return Vec::new() };
        let cluster = |one: &Metal3Machine| owner::cluster_of(&one.metadata).map(|name| key.sibling(name));
        let clusters: BTreeSet<Key> = old_and_new(change, cluster).into_iter().collect();
        clusters
            .into_iter()
            .flat_map(|cluster| self.metal3_clusters_in(Some(cluster)))
            .collect()
    }

    fn metal3_clusters_in(&self, cluster: Option<Key>) -> Vec<Key> {
        let Some(cluster) = cluster else { return Vec::new() };
        self.metal3_clusters
            .read(|ones| ones.by_cluster.get(&cluster).cloned().collect())
    }
}
