//! Write faults while joining, resolving, writing back, detaching and deleting.

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_harness::State;
use serde_json::json;

use super::super::faults::{Others, Scenario, ScenarioStep};
use super::super::steps::{delete, edit, make};
use super::fixture::{cluster_owner, cluster_spec, endpoint, make_control_plane, set_endpoint};
use crate::data::reconciler::tests::lab::User;
use crate::tests::sweep;

const MARKER: &str = "infrastructure.cluster.x-k8s.io/derived-endpoint";

/// A step of a user or another program.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A Cluster whose infrastructure is of this kind, with another finalizer, and its control plane.
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
    /// The Cluster is deleted.
    DeleteCluster,
}

impl ScenarioStep for Step {
    async fn perform(self, client: &kube::Client) {
        let user = User(client.clone());
        match self {
            Self::Cluster(infrastructure) => {
                let meta = json!({ "finalizers": ["cluster.cluster.x-k8s.io"] });
                let cluster = json!({ "metadata": meta, "spec": cluster_spec(infrastructure) });
                make::<Cluster>(client, "edge", cluster).await;
                make_control_plane(&user).await;
            }
            Self::Primary => {
                let object = json!({
                    "metadata": { "ownerReferences": [cluster_owner(&user).await] },
                    "spec": { "controlPlaneEndpointSource": { "type": "ControlPlane" } },
                });
                make::<Metal3Cluster>(client, "edge", object).await;
            }
            Self::Secondary => {
                let object = json!({ "spec": { "clusterName": "edge" } });
                make::<Metal3Cluster>(client, "edge-site", object).await;
            }
            Self::Publish(host) => set_endpoint(&user, host).await,
            Self::Fix(host) => edit::<Cluster>(client, "edge", endpoint(host)).await,
            Self::Detach => {
                let leave = json!({ "metadata": { "annotations": { "infrastructure.cluster.x-k8s.io/detach": "" } } });
                edit::<Metal3Cluster>(client, "edge-site", leave).await;
            }
            Self::Delete => delete::<Metal3Cluster>(client, "edge").await,
            Self::DeleteCluster => delete::<Cluster>(client, "edge").await,
        }
    }

    fn kinds(_: Others) -> Vec<String> {
        vec![State::path::<Metal3Cluster>(), State::path::<Cluster>()]
    }

    /// A derived endpoint is marked in the same write, and there is at most one owner.
    fn violations(state: &State, _: Others) -> Vec<String> {
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

    /// Each Metal3Cluster with its endpoint, marker, owners, number of finalizers, and role.
    fn end(state: &State) -> Vec<String> {
        let line = |object: Metal3Cluster| {
            let meta = &object.metadata;
            let host = object.spec.control_plane_endpoint.as_ref();
            let host = host.and_then(|one| one.host.clone()).unwrap_or_default();
            let marker = meta.annotations.as_ref().and_then(|all| all.get(MARKER));
            let owners = meta.owner_references.iter().flatten();
            let owners: Vec<&str> = owners.map(|owner| owner.name.as_str()).collect();
            format!(
                "{} {host} {} {owners:?} {} {:?}",
                meta.name.clone().unwrap_or_default(),
                marker.cloned().unwrap_or_default(),
                meta.finalizers.iter().flatten().count(),
                object.status.role
            )
        };
        state.of::<Metal3Cluster>().into_iter().map(line).collect()
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
        others: Others::None,
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
        others: Others::None,
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
        others: Others::None,
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
        others: Others::None,
    })
    .await;
}
