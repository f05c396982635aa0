//! The owners of Machines: a MachineDeployment with its MachineSet, and a control plane.

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL};
use metal3_api::cluster::{KubeadmControlPlane, Machine, MachineDeployment, MachineSet};
use metal3_api::infrastructure::names::{FAILURE_DOMAIN_LABEL, NODE_REUSE_LABEL};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::steps::{CLUSTER, UserKind, cloned, edit, get, host, make, owned};

const DOMAIN: &str = "b";
const SET: &str = "workers-a";

fn machine_spec() -> Value {
    let reference = json!({
        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3MachineTemplate", "name": "workers",
    });
    json!({ "clusterName": CLUSTER, "infrastructureRef": reference })
}

fn rollout() -> Value {
    json!({ "strategy": { "rollingUpdate": { "maxSurge": 0 } } })
}

pub(super) async fn deployment(user: &kube::Client) {
    let template = json!({ "spec": machine_spec() });
    let spec = json!({ "clusterName": CLUSTER, "replicas": 1, "template": template, "rollout": rollout() });
    let deployment: MachineDeployment = make(user, "workers", json!({ "spec": spec })).await;
    let meta = json!({ "ownerReferences": owned(&deployment) });
    let spec = json!({ "clusterName": CLUSTER, "replicas": 1, "template": template });
    make::<MachineSet>(user, SET, json!({ "metadata": meta, "spec": spec })).await;
}

pub(super) async fn control_plane(user: &kube::Client) {
    let template = json!({ "spec": machine_spec() });
    let spec = json!({ "replicas": 1, "machineTemplate": template, "rollout": rollout() });
    make::<KubeadmControlPlane>(user, "plane", json!({ "spec": spec })).await;
}

pub(super) async fn worker(user: &kube::Client, name: &str) {
    let labels = json!({ CLUSTER_NAME_LABEL: CLUSTER, DEPLOYMENT_NAME_LABEL: "workers" });
    of_set::<MachineSet>(user, name, SET, labels).await;
}

pub(super) async fn master(user: &kube::Client, name: &str) {
    let labels = json!({ CLUSTER_NAME_LABEL: CLUSTER, CONTROL_PLANE_LABEL: "" });
    of_set::<KubeadmControlPlane>(user, name, "plane", labels).await;
}

/// A Machine of a MachineDeployment of the same name, in another Cluster.
pub(super) async fn namesake(user: &kube::Client, name: &str) {
    let labels = json!({ CLUSTER_NAME_LABEL: "other", DEPLOYMENT_NAME_LABEL: "workers" });
    let spec = json!({ "clusterName": "other", "bootstrap": {}, "infrastructureRef": {
        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name,
    } });
    make::<Machine>(user, name, json!({ "metadata": { "labels": labels }, "spec": spec })).await;
}

async fn of_set<K: UserKind>(user: &kube::Client, name: &str, owner: &str, labels: Value) {
    let owner: K = get(user, owner).await;
    let meta = json!({ "labels": labels, "ownerReferences": owned(&owner) });
    cloned(
        user,
        name,
        json!({ "metadata": meta, "spec": { "failureDomain": DOMAIN } }),
    )
    .await;
}

pub(super) async fn spare(user: &kube::Client, name: &str) {
    host(user, name).await;
    let labels = json!({ FAILURE_DOMAIN_LABEL: DOMAIN });
    edit::<BareMetalHost>(user, name, json!({ "metadata": { "labels": labels } })).await;
}

pub(super) async fn kept(user: &kube::Client, name: &str) {
    host(user, name).await;
    let labels = json!({ NODE_REUSE_LABEL: "md-workers" });
    edit::<BareMetalHost>(user, name, json!({ "metadata": { "labels": labels } })).await;
}
