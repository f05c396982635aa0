//! Write faults while joining, resolving, writing back, detaching and deleting.

use std::future::pending;
use std::pin::Pin;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube_core::ApiResource;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_harness::{Instance, State, TestEnv};
use metal3_sim_cluster::Cluster as Server;
use serde_json::{Value, json};

use super::super::program::start;
use super::super::steps::kinds;
use super::fixture::foreign_kinds;
use crate::tests::sweep;

const MARKER: &str = "infrastructure.cluster.x-k8s.io/derived-endpoint";

/// A step of a user or another program.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A Cluster whose infrastructure is of this kind, and its control plane.
    Cluster(&'static str),
    /// A Metal3Cluster that the Cluster owns.
    Primary,
    /// A Metal3Cluster that joins the Cluster.
    Secondary,
    /// The control plane publishes its endpoint.
    Publish(&'static str),
    /// The Cluster gets an endpoint.
    Fix(&'static str),
    /// The Metal3Cluster gets the detach annotation.
    Detach,
    /// The Metal3Cluster is deleted.
    Delete,
    /// The Cluster is deleted, and has another finalizer.
    DeleteCluster,
}

fn endpoint(host: &str) -> Value {
    json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": 6443 } } })
}

fn control_planes(user: &kube::Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "controlplane.cluster.x-k8s.io".to_owned(),
        version: "v1alpha2".to_owned(),
        api_version: "controlplane.cluster.x-k8s.io/v1alpha2".to_owned(),
        kind: "KamajiControlPlane".to_owned(),
        plural: "kamajicontrolplanes".to_owned(),
    };
    Api::default_namespaced_with(user.clone(), &resource)
}

/// A Cluster with a finalizer of another program, and its control plane.
async fn make_cluster(user: &kube::Client, infrastructure: &str) {
    let post = PostParams::default();
    let clusters: Api<Cluster> = Api::default_namespaced(user.clone());
    let cluster = json!({
        "metadata": { "name": "edge", "finalizers": ["cluster.cluster.x-k8s.io"] },
        "spec": {
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": infrastructure, "name": "edge" },
            "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KamajiControlPlane", "name": "edge" },
        },
    });
    clusters
        .create(&post, &serde_json::from_value(cluster).unwrap())
        .await
        .unwrap();
    let plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha2", "kind": "KamajiControlPlane",
        "metadata": { "name": "edge" }, "spec": { "version": "1.33.0" },
    });
    let plane = serde_json::from_value(plane).unwrap();
    control_planes(user).create(&post, &plane).await.unwrap();
}

impl Step {
    async fn take(self, user: &kube::Client) {
        let clusters: Api<Cluster> = Api::default_namespaced(user.clone());
        let metal3: Api<Metal3Cluster> = Api::default_namespaced(user.clone());
        let (post, patch) = (PostParams::default(), PatchParams::default());
        match self {
            Self::Cluster(infrastructure) => make_cluster(user, infrastructure).await,
            Self::Primary => {
                let uid = clusters.get("edge").await.unwrap().metadata.uid;
                let owner =
                    json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "edge", "uid": uid });
                let object = json!({
                    "metadata": { "name": "edge", "ownerReferences": [owner] },
                    "spec": { "controlPlaneEndpointSource": { "type": "ControlPlane" } },
                });
                metal3
                    .create(&post, &serde_json::from_value(object).unwrap())
                    .await
                    .unwrap();
            }
            Self::Secondary => {
                let object = json!({ "metadata": { "name": "edge-site" }, "spec": { "clusterName": "edge" } });
                metal3
                    .create(&post, &serde_json::from_value(object).unwrap())
                    .await
                    .unwrap();
            }
            Self::Publish(host) => {
                let change = Patch::Merge(endpoint(host));
                control_planes(user).patch("edge", &patch, &change).await.unwrap();
            }
            Self::Fix(host) => drop(
                clusters
                    .patch("edge", &patch, &Patch::Merge(endpoint(host)))
                    .await
                    .unwrap(),
            ),
            Self::Detach => {
                let leave = json!({ "metadata": { "annotations": { "infrastructure.cluster.x-k8s.io/detach": "" } } });
                metal3.patch("edge-site", &patch, &Patch::Merge(leave)).await.unwrap();
            }
            Self::Delete => drop(metal3.delete("edge", &DeleteParams::default()).await.unwrap()),
            Self::DeleteCluster => drop(clusters.delete("edge", &DeleteParams::default()).await.unwrap()),
        }
    }
}

/// Stages of steps, and the final state: each Metal3Cluster with its endpoint, marker, owners and role.
struct Scenario {
    name: &'static str,
    stages: &'static [&'static [Step]],
    end: &'static [&'static str],
}

fn end(state: &State) -> Vec<String> {
    let line = |object: Metal3Cluster| {
        let meta = &object.metadata;
        let host = object
            .spec
            .control_plane_endpoint
            .as_ref()
            .and_then(|one| one.host.clone());
        let marker = meta.annotations.as_ref().and_then(|all| all.get(MARKER)).cloned();
        let owners: Vec<&str> = meta
            .owner_references
            .iter()
            .flatten()
            .map(|owner| owner.name.as_str())
            .collect();
        let finalizers = meta.finalizers.iter().flatten().count();
        format!(
            "{} {} {} {owners:?} {finalizers} {:?}",
            meta.name.clone().unwrap_or_default(),
            host.unwrap_or_default(),
            marker.unwrap_or_default(),
            object.status.role
        )
    };
    state.of::<Metal3Cluster>().into_iter().map(line).collect()
}

impl TestEnv for Scenario {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, server: &Server) {
        server.install(&kinds()).unwrap();
        server.install(&foreign_kinds()).unwrap();
    }

    fn stages(&self) -> usize {
        self.stages.len()
    }

    async fn stage(&self, stage: usize, user: kube::Client) {
        for step in self.stages[stage] {
            step.take(&user).await;
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock, false);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        vec![State::path::<Metal3Cluster>(), State::path::<Cluster>()]
    }

    /// A derived endpoint is marked in the same write, and there is at most one owner.
    fn violations(&self, state: &State) -> Vec<String> {
        let wrong = |object: &Metal3Cluster| {
            let marker = object.metadata.annotations.as_ref().and_then(|all| all.get(MARKER));
            let stated = object.spec.control_plane_endpoint.as_ref();
            let stated = stated.and_then(|one| Some(format!("{}:{}", one.host.as_ref()?, one.port?)));
            let marked = marker.and_then(|marker| Some(marker.split_once(';')?.1.to_owned()));
            let owners = object.metadata.owner_references.iter().flatten().count();
            stated != marked || owners > 1
        };
        let all = state.of::<Metal3Cluster>().into_iter().filter(wrong);
        all.map(|object| format!("{:?} {:?}", object.metadata, object.spec))
            .collect()
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let found = end(state);
        if found == self.end {
            Vec::new()
        } else {
            vec![format!("ends with {found:?}")]
        }
    }
}

#[tokio::test(start_paused = true)]
async fn joining_resolving_and_following_recover_from_every_write_fault() {
    let report = sweep(Scenario {
        name: "a Secondary joins, knows the endpoint early, and follows the Cluster",
        stages: &[
            &[Step::Cluster("ByoCluster"), Step::Secondary],
            &[Step::Publish("192.0.2.7")],
            &[Step::Fix("192.0.2.7")],
            &[Step::Fix("192.0.2.8")],
        ],
        end: &["edge-site 192.0.2.8 Cluster;192.0.2.8:6443 [\"edge\"] 1 Some(Secondary)"],
    })
    .await;
    assert!(report.effects.len() <= 9, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn detaching_recovers_from_every_write_fault() {
    sweep(Scenario {
        name: "a Secondary joins and leaves",
        stages: &[
            &[Step::Cluster("ByoCluster"), Step::Fix("192.0.2.7"), Step::Secondary],
            &[Step::Detach],
        ],
        end: &["edge-site 192.0.2.7 Cluster;192.0.2.7:6443 [] 0 Some(Unattached)"],
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn taking_the_endpoint_and_deletion_recover_from_every_write_fault() {
    sweep(Scenario {
        name: "a Primary takes the endpoint of the control plane, and goes",
        stages: &[
            &[Step::Cluster("Metal3Cluster"), Step::Primary],
            &[Step::Publish("192.0.2.7")],
            &[Step::Fix("192.0.2.7")],
            &[Step::Delete],
        ],
        end: &[],
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_secondary_with_its_cluster_recovers_from_every_write_fault() {
    sweep(Scenario {
        name: "a Secondary goes with its Cluster",
        stages: &[
            &[Step::Cluster("ByoCluster"), Step::Fix("192.0.2.7"), Step::Secondary],
            &[Step::DeleteCluster],
        ],
        end: &[],
    })
    .await;
}
