//! The actors besides the controllers: users, Cluster API, the controllers of hosts and of data, one step at a time.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{NamespaceResourceScope, Resource};
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::crd::Definition;
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine, Metal3MachineTemplate,
};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::sets;
use crate::data::reconciler::tests::lab::{User, one_pool};

pub(super) const CLUSTER: &str = "edge";

/// The kinds of the server, in the stored version, with a control plane and an infrastructure of other providers. The
/// crate of the host controllers checks the rules of host changes.
pub(super) fn kinds() -> Vec<Definition> {
    const FOREIGN: [&str; 4] = ["KamajiControlPlane", "ByoCluster", "KubeadmControlPlane", "MachineSet"];
    const KINDS: [&str; 6] = [
        "metal3clusters",
        "metal3machines",
        "metal3machinetemplates",
        "metal3dataclaims",
        "metal3datas",
        "metal3datatemplates",
    ];
    let definitions = metal3_api::infrastructure::definitions().into_iter();
    let definitions = definitions.filter(|kind| KINDS.contains(&kind.plural));
    let hosts = metal3_api::metal3::definitions().into_iter();
    let hosts = hosts.filter(|kind| kind.plural == "baremetalhosts").map(|mut kind| {
        for version in &mut kind.versions {
            version.schema = || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        }
        kind
    });
    let foreign = metal3_sim_capi::kinds::definitions().into_iter();
    let foreign = foreign.filter(|kind| FOREIGN.contains(&kind.kind));
    let stored = |mut kind: Definition| {
        kind.versions.retain(|version| version.storage);
        kind.conversion = None;
        kind
    };
    definitions
        .chain(hosts)
        .chain(metal3_api::ipam::definitions())
        .map(stored)
        .chain(metal3_sim_cluster::cluster_api())
        .chain(foreign)
        .collect()
}

/// A step of an actor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A Cluster with its Metal3Cluster, created in time to be owned by it.
    Cluster,
    /// The Cluster is paused or resumed.
    Pause(bool),
    /// A data template with an address of a pool, and the pool.
    Template,
    /// A free host.
    Host(&'static str),
    /// A Machine with its Metal3Machine.
    Machine(&'static str),
    /// A Metal3MachineTemplate without a cleaning mode.
    MachineTemplate,
    /// The Metal3MachineTemplate gets this cleaning mode.
    Cleaning(&'static str),
    /// A Machine with its Metal3Machine, created from the Metal3MachineTemplate.
    Cloned(&'static str),
    /// The Metal3MachineTemplate sets `nodeReuse`.
    Reuse,
    /// A MachineDeployment of one machine of the Metal3MachineTemplate, without surge, with its MachineSet.
    Deployment,
    /// A control plane of one machine of the Metal3MachineTemplate, without surge.
    ControlPlane,
    /// The same as `Cloned`, owned by the MachineSet. It prefers another failure domain than that of most hosts.
    Worker(&'static str),
    /// The same, owned by the control plane.
    Master(&'static str),
    /// A free host in the failure domain that these machines prefer.
    Spare(&'static str),
    /// A host that a Go manager up to 1.13 kept for the MachineDeployment.
    Kept(&'static str),
    /// The claim of a machine is served, and the data are ready.
    Data(&'static str),
    /// A host reaches this state.
    State(&'static str, &'static str),
    /// A Metal3Machine is deleted.
    Delete(&'static str),
    /// The Metal3Cluster is deleted.
    DeleteCluster,
    /// The data of a machine are deleted with their claim.
    DataGoes(&'static str),
}

/// A namespaced kind that users create, change and delete.
pub(super) trait UserKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Serialize + DeserializeOwned + Debug
{
}

impl<K> UserKind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Serialize + DeserializeOwned + Debug
{
}

pub(super) async fn make<K: UserKind>(user: &kube::Client, name: &str, mut document: Value) -> K {
    document["metadata"]["name"] = json!(name);
    let status = document.as_object_mut().unwrap().remove("status").unwrap_or_default();
    let object: K = serde_json::from_value(document).unwrap();
    let api: Api<K> = Api::default_namespaced(user.clone());
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    if !status.is_null() {
        edit_status::<K>(user, name, json!({ "status": status })).await;
    }
    made
}

pub(super) async fn edit<K: UserKind>(user: &kube::Client, name: &str, change: Value) {
    let api: Api<K> = Api::default_namespaced(user.clone());
    api.patch(name, &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap();
}

pub(super) async fn edit_status<K: UserKind>(user: &kube::Client, name: &str, change: Value) {
    let api: Api<K> = Api::default_namespaced(user.clone());
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap();
}

pub(super) async fn get<K: UserKind>(user: &kube::Client, name: &str) -> K {
    let api: Api<K> = Api::default_namespaced(user.clone());
    api.get(name).await.unwrap()
}

pub(super) async fn delete<K: UserKind>(user: &kube::Client, name: &str) {
    let api: Api<K> = Api::default_namespaced(user.clone());
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

pub(super) fn owned<K: Resource<DynamicType = ()>>(owner: &K) -> Value {
    let meta = owner.meta();
    json!([{
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "controller": true,
        "name": meta.name, "uid": meta.uid,
    }])
}

impl Step {
    pub(super) async fn take(self, user: &kube::Client) {
        match self {
            Self::Cluster => cluster(user).await,
            Self::Pause(paused) => edit::<Cluster>(user, CLUSTER, json!({ "spec": { "paused": paused } })).await,
            Self::Template => {
                let user = User(user.clone());
                user.pool(4).await;
                user.template(one_pool()).await;
            }
            Self::Host(name) => host(user, name).await,
            Self::Machine(name) => machine(user, name).await,
            Self::MachineTemplate => {
                let image = json!({ "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256" });
                let spec = json!({ "template": { "spec": { "image": image } } });
                make::<Metal3MachineTemplate>(user, "workers", json!({ "spec": spec })).await;
            }
            Self::Cleaning(mode) => {
                let spec = json!({ "template": { "spec": { "automatedCleaningMode": mode } } });
                edit::<Metal3MachineTemplate>(user, "workers", json!({ "spec": spec })).await;
            }
            Self::Cloned(name) => cloned(user, name, json!({})).await,
            Self::Reuse => {
                edit::<Metal3MachineTemplate>(user, "workers", json!({ "spec": { "nodeReuse": true } })).await
            }
            Self::Deployment => sets::deployment(user).await,
            Self::ControlPlane => sets::control_plane(user).await,
            Self::Worker(name) => sets::worker(user, name).await,
            Self::Master(name) => sets::master(user, name).await,
            Self::Spare(name) => sets::spare(user, name).await,
            Self::Kept(name) => sets::kept(user, name).await,
            Self::Data(name) => data(user, name).await,
            Self::State(name, state) => {
                let provisioning = json!({ "state": state });
                edit_status::<BareMetalHost>(user, name, json!({ "status": { "provisioning": provisioning } })).await;
            }
            Self::Delete(name) => delete::<Metal3Machine>(user, name).await,
            Self::DeleteCluster => delete::<Metal3Cluster>(user, CLUSTER).await,
            Self::DataGoes(name) => delete::<Metal3Data>(user, &format!("template-{name}")).await,
        }
    }
}

async fn cluster(user: &kube::Client) {
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": CLUSTER });
    let spec = json!({ "infrastructureRef": reference });
    let status = json!({ "initialization": { "infrastructureProvisioned": true } });
    let cluster: Cluster = make(user, CLUSTER, json!({ "spec": spec, "status": status })).await;
    let endpoint = json!({ "host": "192.0.2.1", "port": 6443 });
    let meta = json!({ "ownerReferences": owned(&cluster) });
    make::<Metal3Cluster>(
        user,
        CLUSTER,
        json!({ "metadata": meta, "spec": { "controlPlaneEndpoint": endpoint } }),
    )
    .await;
}

pub(super) async fn host(user: &kube::Client, name: &str) {
    let bmc =
        json!({ "address": "redfish://192.0.2.7/redfish/v1/Systems/1", "credentialsName": format!("{name}-bmc") });
    let labels = json!({ "environment.metal3.io": "baremetal" });
    make::<Secret>(
        user,
        &format!("{name}-bmc"),
        json!({ "metadata": { "labels": labels } }),
    )
    .await;
    let status = json!({
        "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": false,
        "hardware": { "hostname": name, "nics": [{ "name": "eth0", "ip": "192.0.2.20" }] },
        "provisioning": { "state": "available", "ID": name, "image": { "url": "" } },
    });
    let spec = json!({ "online": false, "bmc": bmc });
    make::<BareMetalHost>(user, name, json!({ "spec": spec, "status": status })).await;
}

async fn machine(user: &kube::Client, name: &str) {
    machine_of(user, name, json!({ "dataTemplate": { "name": "tpl" } })).await;
}

/// A Machine with its Metal3Machine, whose valid spec gets this patch.
pub(super) async fn machine_of(user: &kube::Client, name: &str, change: Value) {
    annotated_machine(user, name, json!({}), change, json!({})).await;
}

/// A Machine with this patch, and its Metal3Machine, created from the Metal3MachineTemplate.
pub(super) async fn cloned(user: &kube::Client, name: &str, owner: Value) {
    let annotations = json!({
        "cluster.x-k8s.io/cloned-from-name": "workers",
        "cluster.x-k8s.io/cloned-from-groupkind": "Metal3MachineTemplate.infrastructure.cluster.x-k8s.io",
    });
    let data = json!({ "dataTemplate": { "name": "tpl" } });
    annotated_machine(user, name, annotations, data, owner).await;
}

pub(super) async fn annotated_machine(
    user: &kube::Client,
    name: &str,
    annotations: Value,
    change: Value,
    owner: Value,
) {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": CLUSTER });
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name });
    let bootstrap =
        json!({ "configRef": { "kind": "KubeadmConfig", "name": name }, "dataSecretName": format!("{name}-boot") });
    let spec = json!({ "clusterName": CLUSTER, "bootstrap": bootstrap, "infrastructureRef": reference });
    let mut document = json!({ "metadata": { "labels": labels }, "spec": spec });
    metal3_runtime::patch::apply(&owner, &mut document);
    let owner: Machine = make(user, name, document).await;
    let image = json!({ "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256", "checksumType": "sha256", "diskFormat": "raw" });
    let meta = json!({ "annotations": annotations, "labels": labels, "ownerReferences": owned(&owner) });
    let mut spec = json!({ "image": image });
    metal3_runtime::patch::apply(&change, &mut spec);
    make::<Metal3Machine>(user, name, json!({ "metadata": meta, "spec": spec })).await;
}

async fn data(user: &kube::Client, name: &str) {
    let claims: Api<Metal3DataClaim> = Api::default_namespaced(user.clone());
    let claim = claims.get(name).await.unwrap();
    let secret = |part: &str| json!({ "name": format!("{name}-{part}"), "namespace": "default" });
    let spec = json!({ "index": 0, "claim": { "name": name }, "metaData": secret("metadata"), "networkData": secret("networkdata") });
    let status = json!({ "ready": true });
    let meta = json!({ "ownerReferences": owned(&claim) });
    let made = format!("template-{name}");
    make::<Metal3Data>(user, &made, json!({ "metadata": meta, "spec": spec, "status": status })).await;
    edit_status::<Metal3DataClaim>(
        user,
        name,
        json!({ "status": { "renderedData": { "name": made, "namespace": "default" } } }),
    )
    .await;
}
