//! Control planes: one whose machines are machines of the cluster, and two that run elsewhere.

mod hosted;
mod kubeadm;
mod managed;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::{Value, json};

use crate::bootstrap::SECRET_TYPE;
use crate::kinds::Kind;
use crate::site::Purpose;
use crate::view::{Object, World};
use crate::write::{Write, owner};

/// Those of Cluster API itself.
pub(crate) fn writes(world: &World) -> Vec<Write> {
    kubeadm::writes(world)
}

/// Those of other providers.
pub(crate) fn others(world: &World) -> Vec<Write> {
    let mut due = hosted::writes(world);
    due.extend(managed::writes(world));
    due
}

/// The Secrets of a cluster that are not there yet. What stands in them is known where its API server runs.
pub(crate) fn secrets(world: &World, kind: &'static Kind, maker: &Object, cluster: &Object, at: &str) -> Vec<Write> {
    [Purpose::Kubeconfig, Purpose::Authority]
        .into_iter()
        .filter(|purpose| world.secret(cluster, purpose.name()).is_none())
        .map(|purpose| Write::Paper(at.to_owned(), purpose, secret(kind, maker, cluster, purpose)))
        .collect()
}

fn secret(kind: &'static Kind, maker: &Object, cluster: &Object, purpose: Purpose) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {
            "name": format!("{}-{}", cluster.name(), purpose.name()), "namespace": cluster.namespace(),
            "labels": { CLUSTER_NAME_LABEL: cluster.name() }, "ownerReferences": [owner(kind, maker, true)],
        },
    })
}
