//! Control planes: one whose machines are machines of the cluster, and two that run elsewhere.

mod hosted;
mod kubeadm;
mod managed;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::{Value, json};

use crate::bootstrap::SECRET_TYPE;
use crate::kinds::{Kind, SECRET};
use crate::view::{Object, World};
use crate::write::{Write, owner};

pub(crate) fn writes(world: &World) -> Vec<Write> {
    let mut due = kubeadm::writes(world);
    due.extend(hosted::writes(world));
    due.extend(managed::writes(world));
    due
}

/// The Secrets of a cluster that are not there yet.
pub(crate) fn secrets(world: &World, kind: &'static Kind, maker: &Object, cluster: &Object, at: &str) -> Vec<Write> {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": cluster.name(),
        "clusters": [{ "name": cluster.name(), "cluster": { "server": format!("https://{at}") } }],
        "users": [{ "name": "admin", "user": { "token": "simulated" } }],
        "contexts": [{ "name": cluster.name(), "context": { "cluster": cluster.name(), "user": "admin" } }],
    });
    let authority = json!({ "tls.crt": "simulated", "tls.key": "simulated" });
    let all = [
        ("kubeconfig", json!({ "value": kubeconfig.to_string() })),
        ("ca", authority),
    ];
    let missing = all
        .into_iter()
        .filter(|(purpose, _)| world.secret(cluster, purpose).is_none());
    missing
        .map(|(purpose, data)| Write::Create(SECRET, secret(kind, maker, cluster, purpose, &data)))
        .collect()
}

fn secret(kind: &'static Kind, maker: &Object, cluster: &Object, purpose: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "stringData": data,
        "metadata": {
            "name": format!("{}-{purpose}", cluster.name()), "namespace": cluster.namespace(),
            "labels": { CLUSTER_NAME_LABEL: cluster.name() }, "ownerReferences": [owner(kind, maker, true)],
        },
    })
}
