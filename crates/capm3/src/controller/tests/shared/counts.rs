//! What the endpoint of somebody else costs, and that it costs nobody who does not ask for it.

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use serde_json::json;

use super::lines;
use super::scene::{HOST, World, settle};

#[tokio::test(start_paused = true)]
async fn endpoint_of_the_control_plane_is_taken_in_one_pass_and_one_write_beside_the_status() {
    let world = World::start();
    let _program = world.program();
    for which in 0..3 {
        world.make(which).await;
    }
    settle().await;
    let passes = world.passes();
    world.server.reset_audit();
    let spec = json!({ "spec": { "controlPlaneEndpoint": { "host": HOST, "port": 6443 } } });
    let params = PatchParams::default();
    world
        .control_planes()
        .patch("edge", &params, &Patch::Merge(spec))
        .await
        .unwrap();
    settle().await;
    assert_eq!(world.passes() - passes, 1);
    let expected = lines([("patch metal3clusters", 1), ("patch metal3clusters/status", 1)]);
    assert_eq!(world.requests(), expected, "nothing is read for it either");
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_is_typed_is_served_with_the_same_requests_as_before_there_was_anything_else() {
    let world = World::start();
    let _program = world.program();
    world.make(2).await;
    world.make(0).await;
    let clusters: Api<Cluster> = Api::default_namespaced(world.user.clone());
    let uid = clusters.get("edge").await.unwrap().metadata.uid;
    let owner = json!([{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "edge", "uid": uid }]);
    let endpoint = json!({ "host": HOST, "port": 6443 });
    let object = json!({
        "metadata": { "name": "edge", "ownerReferences": owner }, "spec": { "controlPlaneEndpoint": endpoint },
    });
    let object: Metal3Cluster = serde_json::from_value(object).unwrap();
    settle().await;
    let passes = world.passes();
    world
        .metal3_clusters()
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    settle().await;
    world.core().await;
    settle().await;
    world.publish("192.0.2.9").await;
    settle().await;
    let finalizer_and_status = [("patch metal3clusters", 1), ("patch metal3clusters/status", 1)];
    assert_eq!(world.writes(), lines(finalizer_and_status));
    assert_eq!(
        world.passes() - passes,
        3,
        "the object, what was written, and the Cluster's endpoint"
    );
    let requests = world.requests();
    let foreign = requests.keys().find(|what| {
        ["controlplane", "nonresource", "configmaps", "get "]
            .iter()
            .any(|one| what.contains(one))
    });
    assert_eq!(
        foreign, None,
        "nothing of others is read, nor is asked for what is served"
    );
    let status = world.metal3_clusters().get("edge").await.unwrap().status;
    let types: Vec<String> = status.conditions.into_iter().map(|one| one.type_).collect();
    assert_eq!(types, ["Paused", "BaremetalInfrastructureReady", "Ready"]);
    assert_eq!((status.role, status.control_plane_endpoint), (None, None));
}
