//! Labels, owner reference and finalizer of a pool.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, GROUP};
use metal3_api::ipam::names::POOL_FINALIZER;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::Observed;
use serde_json::{Value, json};

use super::{Pause, Planner, PoolState, cluster_name};
use crate::names::PROVIDER_LABEL;

impl Planner<'_> {
    /// The missing metadata. A pool with a Cluster is labelled and owned even while the Cluster is paused: otherwise
    /// clusterctl move leaves it behind.
    pub(super) fn metadata(&self) -> Option<MergePatch> {
        let meta = &self.pool.metadata;
        let mut labels = meta.labels.clone().unwrap_or_default();
        let mut owners = meta.owner_references.clone().unwrap_or_default();
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        match &self.state {
            PoolState::Paused(Pause::ByAnnotation) | PoolState::Deleting | PoolState::Unknown => return None,
            PoolState::Serving if !finalizers.iter().any(|name| name == POOL_FINALIZER) => {
                finalizers.push(POOL_FINALIZER.to_owned());
            }
            PoolState::Serving | PoolState::Paused(Pause::ByCluster(_)) | PoolState::ClusterMissing(_) => {}
        }
        if let Some(name) = cluster_name(self.pool) {
            labels.insert(CLUSTER_NAME_LABEL.to_owned(), name.to_owned());
            labels.insert(PROVIDER_LABEL.0.to_owned(), PROVIDER_LABEL.1.to_owned());
            if let Observed::Present(cluster) = self.facts.index.cluster(&self.facts.key.namespace, name) {
                add_owner(&mut owners, name, &cluster.uid);
            }
        }
        let before = document(json!(meta.labels), json!(meta.owner_references), json!(meta.finalizers));
        let after = document(json!(labels), json!(owners), json!(finalizers));
        Changes::between(&before, &after)
            .main
            .map(|patch| patch.with_precondition(&self.version))
    }
}

/// Adds the Cluster as owner. A reference to a deleted Cluster of that name is replaced: otherwise the garbage
/// collector deletes the pool.
fn add_owner(owners: &mut Vec<OwnerReference>, name: &str, uid: &str) {
    let of_core = |api_version: &str| api_version.split_once('/').is_some_and(|(group, _)| group == GROUP);
    let same = owners
        .iter_mut()
        .find(|owner| owner.kind == "Cluster" && owner.name == name && of_core(&owner.api_version));
    match same {
        Some(owner) => uid.clone_into(&mut owner.uid),
        None => owners.push(OwnerReference {
            api_version: format!("{GROUP}/v1beta2"),
            kind: "Cluster".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            controller: Some(false),
            block_owner_deletion: None,
        }),
    }
}

fn document(labels: Value, owners: Value, finalizers: Value) -> Value {
    let filled = |value: Value| match &value {
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Object(members) if members.is_empty() => Value::Null,
        _ => value,
    };
    json!({ "metadata": {
        "labels": filled(labels),
        "ownerReferences": filled(owners),
        "finalizers": filled(finalizers),
    }})
}
