//! A Metal3Cluster with the endpoint of a control plane of another provider.

use std::time::Duration;

use serde_json::json;

use super::fixture::{CONTROL_PLANES, Fixture, HOST, wait};
use super::lines;

#[tokio::test(start_paused = true)]
async fn no_address_is_configured_and_objects_are_created_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let fixture = Fixture::start();
        let _program = fixture.program();
        for number in order {
            fixture.make(number).await;
            wait().await;
        }
        assert_eq!(fixture.ready().await.1, "WaitingForControlPlane", "{order:?}");
        fixture.server.reset_audit();
        fixture.publish(HOST).await;
        wait().await;
        let endpoint_and_status = [("patch metal3clusters", 1), ("patch metal3clusters/status", 1)];
        assert_eq!(fixture.writes(), lines(endpoint_and_status), "{order:?}");
        assert_eq!(fixture.host().await.as_deref(), Some(HOST));
        let marker =
            &fixture.metal3().await.metadata.annotations.unwrap()["infrastructure.cluster.x-k8s.io/derived-endpoint"];
        assert_eq!(marker, "ControlPlane;192.0.2.153:6443");
        fixture.set_check("True").await;
        fixture.copy_endpoint().await;
        wait().await;
        assert_eq!(fixture.ready().await.1, "EndpointFromControlPlane");
        fixture.server.reset_audit();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(fixture.writes(), lines([]), "{order:?}: an idle hour");
    }
}

#[tokio::test(start_paused = true)]
async fn control_plane_that_published_before_the_start_is_reported_idle_with_the_remedy() {
    let fixture = Fixture::start();
    fixture.make_all().await;
    fixture.publish(HOST).await;
    let _program = fixture.program();
    wait().await;
    assert_eq!(
        fixture.ready().await,
        ("True".to_owned(), "EndpointFromControlPlane".to_owned(), String::new())
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, _, message) = fixture.ready().await;
    assert_eq!(status, "True");
    assert!(message.contains("annotate kamajicontrolplane edge"), "{message}");
    fixture.set_check("True").await;
    wait().await;
    assert_eq!(fixture.ready().await.2, "");
}

#[tokio::test(start_paused = true)]
async fn fixed_endpoint_is_kept_when_its_source_changes_or_is_deleted() {
    let (fixture, _program) = Fixture::published().await;
    fixture.set_check("True").await;
    fixture.copy_endpoint().await;
    wait().await;
    let drifted = async || {
        let metal3 = fixture.metal3().await;
        let mut all = metal3.status.conditions.into_iter();
        let drifted = all.find(|one| one.type_ == "ControlPlaneEndpointDrifted").unwrap();
        let host = metal3.spec.control_plane_endpoint.unwrap().host.unwrap();
        format!("{host} {:?} {}", drifted.status, drifted.reason)
    };
    fixture.publish("192.0.2.9").await;
    wait().await;
    assert_eq!(drifted().await, format!("{HOST} True SourceChanged"));
    fixture.user.delete(CONTROL_PLANES, "kamajicontrolplanes/edge").await;
    wait().await;
    assert_eq!(drifted().await, format!("{HOST} Unknown SourceNotFound"));
}

#[tokio::test(start_paused = true)]
async fn kind_that_is_not_served_is_a_missing_source() {
    let fixture = Fixture::start();
    let _program = fixture.program();
    fixture.make(0).await;
    let object = json!({ "apiGroup": "odd.example.io", "kind": "Odd", "name": "odd" });
    fixture
        .metal3_cluster(json!({ "type": "ControlPlane", "objectRef": object }))
        .await;
    wait().await;
    let (status, reason, message) = fixture.ready().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SourceNotFound"));
    assert!(message.starts_with("Odd odd does not exist"), "{message}");
}
