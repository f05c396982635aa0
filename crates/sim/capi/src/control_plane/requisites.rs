//! What `kubeadm init` writes into a workload cluster for machines that join, except what the control plane lacks.

use serde_json::{Value, json};

use crate::write::WorkloadChange;

const RBAC: &str = "rbac.authorization.k8s.io";
/// The name by which a control plane lacks all of them.
const ALL: &str = "all";

/// Path of the collection, and the object.
type Requisite = (String, Value);

/// The objects that a control plane which lacks these names has.
pub(super) fn except(lacks: &[&str]) -> WorkloadChange {
    let is_there = |(_, object): &Requisite| {
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        !lacks.contains(&ALL) && !lacks.contains(&name)
    };
    WorkloadChange::Objects(requisites().into_iter().filter(is_there).collect())
}

fn requisites() -> Vec<Requisite> {
    let namespace = json!({ "metadata": { "name": "kube-public" } });
    let mut all = vec![("/api/v1/namespaces".to_owned(), namespace)];
    for (space, name, key) in [
        ("kube-public", "cluster-info", "kubeconfig"),
        ("kube-system", "kubeadm-config", "ClusterConfiguration"),
        ("kube-system", "kubelet-config", "kubelet"),
    ] {
        let map = json!({ "metadata": { "name": name, "namespace": space }, "data": { key: "simulated" } });
        all.push((format!("/api/v1/namespaces/{space}/configmaps"), map));
    }
    for (space, name) in [
        ("kube-public", "kubeadm:bootstrap-signer-clusterinfo"),
        ("kube-system", "kubeadm:nodes-kubeadm-config"),
        ("kube-system", "kubeadm:kubelet-config"),
    ] {
        let object = binding(name, Some(space), "Role");
        all.push((format!("/apis/{RBAC}/v1/namespaces/{space}/rolebindings"), object));
    }
    for name in [
        "kubeadm:kubelet-bootstrap",
        "kubeadm:node-autoapprove-bootstrap",
        "kubeadm:get-nodes",
    ] {
        let object = binding(name, None, "ClusterRole");
        all.push((format!("/apis/{RBAC}/v1/clusterrolebindings"), object));
    }
    let lease = json!({ "metadata": { "name": "kube-scheduler", "namespace": "kube-system" }, "spec": { "holderIdentity": "it" } });
    all.push((
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases".to_owned(),
        lease,
    ));
    all
}

fn binding(name: &str, namespace: Option<&str>, role: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "apiGroup": RBAC, "kind": role, "name": name },
        "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": "system:bootstrappers:kubeadm:default-node-token" }],
    })
}
