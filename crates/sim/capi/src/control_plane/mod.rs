//! Control planes: one with machines of the cluster, and two that run elsewhere.

mod hosted;
mod kubeadm;
mod managed;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::{Value, json};

use crate::bootstrap::SECRET_TYPE;
use crate::kinds::Kind;
use crate::view::{Object, Snapshot};
use crate::workload::Purpose;
use crate::write::{Write, owner};

/// Writes of the control plane of Cluster API itself.
pub(crate) fn writes(snapshot: &Snapshot) -> Vec<Write> {
    kubeadm::writes(snapshot)
}

/// Writes of the control planes of other providers.
pub(crate) fn other_providers(snapshot: &Snapshot) -> Vec<Write> {
    let mut due = hosted::writes(snapshot);
    due.extend(managed::writes(snapshot));
    due
}

/// Creates the missing Secrets of a cluster. Their content comes from the host of its API server.
pub(crate) fn secrets(
    snapshot: &Snapshot,
    kind: &'static Kind,
    creator: &Object,
    cluster: &Object,
    at: &str,
) -> Vec<Write> {
    [Purpose::Kubeconfig, Purpose::Authority]
        .into_iter()
        .filter(|purpose| snapshot.secret(cluster, purpose.name()).is_none())
        .map(|purpose| Write::ClusterSecret(at.to_owned(), purpose, secret(kind, creator, cluster, purpose)))
        .collect()
}

fn secret(kind: &'static Kind, creator: &Object, cluster: &Object, purpose: Purpose) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {
            "name": format!("{}-{}", cluster.name(), purpose.name()), "namespace": cluster.namespace(),
            "labels": { CLUSTER_NAME_LABEL: cluster.name() }, "ownerReferences": [owner(kind, creator, true)],
        },
    })
}
