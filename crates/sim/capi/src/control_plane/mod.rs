//! Control planes: one with machines of the cluster, and two that run elsewhere.

pub(crate) mod hosted;
pub(crate) mod kubeadm;
pub(crate) mod managed;
mod requisites;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::{Value, json};

use crate::bootstrap::SECRET_TYPE;
use crate::kinds::Kind;
use crate::view::{Object, Snapshot};
use crate::workload::Purpose;
use crate::write::{Write, owner};

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
