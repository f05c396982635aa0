//! What a Metal3Cluster does with the endpoint of a control plane that somebody else runs.

use std::time::Duration;

use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use super::lines;
use super::scene::{HOST, World, host, settle};

#[tokio::test(start_paused = true)]
async fn no_address_is_typed_and_objects_come_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let world = World::start();
        let _program = world.program();
        for which in order {
            world.make(which).await;
            settle().await;
        }
        assert_eq!(world.ready().await.1, "WaitingForControlPlane", "{order:?}");
        world.server.reset_audit();
        world.publish(HOST).await;
        settle().await;
        let endpoint_and_status = [("patch metal3clusters", 1), ("patch metal3clusters/status", 1)];
        assert_eq!(world.writes(), lines(endpoint_and_status), "{order:?}");
        let metal3 = world.metal3_clusters().get("edge").await.unwrap();
        assert_eq!(host(&metal3), Some(json!(HOST)));
        let marker = &metal3.metadata.annotations.unwrap()["infrastructure.cluster.x-k8s.io/derived-endpoint"];
        assert_eq!(marker, "ControlPlane;192.0.2.153:6443");
        world.check("True").await;
        world.core().await;
        settle().await;
        assert_eq!(world.ready().await.1, "EndpointFromControlPlane");
        world.server.reset_audit();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(world.writes(), lines([]), "{order:?}: a quiet hour");
    }
}

#[tokio::test(start_paused = true)]
async fn control_plane_that_published_while_nobody_looked_is_said_to_sleep_with_the_cure() {
    let world = World::start();
    for which in 0..3 {
        world.make(which).await;
    }
    world.publish(HOST).await;
    let _program = world.program();
    settle().await;
    assert_eq!(
        world.ready().await,
        ("True".to_owned(), "EndpointFromControlPlane".to_owned(), String::new())
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, _, message) = world.ready().await;
    assert_eq!(status, "True");
    assert!(message.contains("annotate kamajicontrolplane edge"), "{message}");
    world.check("True").await;
    settle().await;
    assert_eq!(world.ready().await.2, "");
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_is_fixed_stays_when_its_source_changes_or_goes() {
    let world = World::start();
    let _program = world.program();
    for which in 0..3 {
        world.make(which).await;
    }
    world.publish(HOST).await;
    settle().await;
    world.check("True").await;
    world.core().await;
    settle().await;
    let drifted = async || {
        let metal3 = world.metal3_clusters().get("edge").await.unwrap();
        let all = metal3.status.conditions.clone();
        let drifted = all
            .into_iter()
            .find(|one| one.type_ == "ControlPlaneEndpointDrifted")
            .unwrap();
        (host(&metal3), format!("{:?} {}", drifted.status, drifted.reason))
    };
    world.publish("192.0.2.9").await;
    settle().await;
    assert_eq!(drifted().await, (Some(json!(HOST)), "True SourceChanged".to_owned()));
    world
        .control_planes()
        .delete("edge", &DeleteParams::default())
        .await
        .unwrap();
    settle().await;
    assert_eq!(
        drifted().await,
        (Some(json!(HOST)), "Unknown SourceNotFound".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn kind_that_nobody_serves_is_a_source_that_does_not_exist() {
    let world = World::start();
    let _program = world.program();
    world.make(0).await;
    let source =
        json!({ "type": "ControlPlane", "objectRef": { "apiGroup": "odd.example.io", "kind": "Odd", "name": "odd" } });
    let object = json!({ "metadata": { "name": "edge" }, "spec": { "clusterName": "edge", "controlPlaneEndpointSource": source } });
    let object = serde_json::from_value(object).unwrap();
    world
        .metal3_clusters()
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    settle().await;
    let (status, reason, message) = world.ready().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SourceNotFound"));
    assert!(message.starts_with("Odd odd does not exist"), "{message}");
}
