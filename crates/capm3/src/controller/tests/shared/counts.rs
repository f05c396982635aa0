//! The requests for the endpoint of another provider. Objects without one cost none of them.

use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use serde_json::json;

use super::super::steps::make;
use super::fixture::{Fixture, HOST, cluster_owner, endpoint, set_endpoint, wait};
use super::lines;

#[tokio::test(start_paused = true)]
async fn endpoint_of_the_control_plane_is_taken_in_one_reconcile_with_one_write_and_one_status() {
    let fixture = Fixture::start();
    let _program = fixture.program();
    fixture.make_all().await;
    wait().await;
    let reconciles = fixture.reconciles();
    fixture.server.reset_audit();
    set_endpoint(&fixture.user, HOST).await;
    wait().await;
    assert_eq!(fixture.reconciles() - reconciles, 1);
    let expected = lines([("patch metal3clusters", 1), ("patch metal3clusters/status", 1)]);
    assert_eq!(fixture.requests(), expected, "no additional read");
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_the_user_costs_no_request_for_other_sources() {
    let fixture = Fixture::start();
    let _program = fixture.program();
    fixture.make(2).await;
    fixture.make(0).await;
    let mut object = endpoint(HOST);
    object["metadata"] = json!({ "ownerReferences": [cluster_owner(&fixture.user).await] });
    wait().await;
    let reconciles = fixture.reconciles();
    make::<Metal3Cluster>(&fixture.user.0, "edge", object).await;
    wait().await;
    fixture.copy_endpoint().await;
    wait().await;
    fixture.publish("192.0.2.9").await;
    wait().await;
    let finalizer_and_status = [("patch metal3clusters", 1), ("patch metal3clusters/status", 1)];
    assert_eq!(fixture.writes(), lines(finalizer_and_status));
    assert_eq!(
        fixture.reconciles() - reconciles,
        3,
        "the object, its own writes, and the Cluster's endpoint"
    );
    let requests = fixture.requests();
    let foreign = requests.keys().find(|what| {
        ["controlplane", "nonresource", "configmaps", "get "]
            .iter()
            .any(|one| what.contains(one))
    });
    assert_eq!(foreign, None, "no source is read and nothing is discovered");
    let status = fixture.metal3().await.status;
    let types: Vec<String> = status.conditions.into_iter().map(|one| one.type_).collect();
    assert_eq!(types, ["Paused", "BaremetalInfrastructureReady", "Ready"]);
    assert_eq!((status.role, status.control_plane_endpoint), (None, None));
}
