//! Conversion reviews.

use metal3_webhooks::related_objects::NoRelatedObjects;
use metal3_webhooks::router::CONVERSION_PATH;
use serde_json::{Value, json};

use crate::api_server::send_review;

fn review(desired: &str, objects: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": desired, "objects": objects },
    })
}

async fn converted(desired: &str, objects: &[Value]) -> Value {
    send_review(NoRelatedObjects, CONVERSION_PATH, &review(desired, objects)).await
}

fn object(version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": kind,
        "metadata": { "name": name, "namespace": "metal", "uid": name, "resourceVersion": "7" }, "spec": {},
    })
}

const HUB: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

#[tokio::test]
async fn a_list_of_mixed_kinds_and_versions_is_converted_in_its_order() {
    let mut objects = [
        object("v1beta1", "Metal3Machine", "a"),
        object("v1beta2", "Metal3Cluster", "b"),
        object("v1beta1", "Metal3DataTemplate", "c"),
    ];
    objects[2]["spec"] = json!({ "clusterName": "blue" });
    let response = converted(HUB, &objects).await;
    assert_eq!(response["result"], json!({ "status": "Success" }));
    let converted = response["convertedObjects"].as_array().unwrap();
    assert_eq!(converted.len(), objects.len());
    for (converted, object) in converted.iter().zip(&objects) {
        assert_eq!(converted["apiVersion"], HUB);
        assert_eq!(converted["kind"], object["kind"]);
        assert_eq!(converted["metadata"], object["metadata"], "metadata is passed through");
    }
}

#[tokio::test]
async fn objects_survive_a_round_trip_through_the_older_version() {
    let stored = object("v1beta2", "Metal3Machine", "a");
    let older = converted("infrastructure.cluster.x-k8s.io/v1beta1", std::slice::from_ref(&stored)).await;
    let back = converted(HUB, &[older["convertedObjects"][0].clone()]).await;
    assert_eq!(back["convertedObjects"][0], stored);
}

#[tokio::test]
async fn one_object_that_cannot_be_converted_fails_the_review_and_is_named() {
    let mut invalid = object("v1beta1", "Metal3Machine", "b");
    invalid["spec"] = json!({ "image": 7 });
    let bad = [
        (invalid, "spec:"),
        (object("v1alpha5", "Metal3Machine", "b"), "apiVersion:"),
        (object("v1beta1", "Metal3Thing", "b"), "kind:"),
        (
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "metal", "name": "b" } }),
            "apiVersion:",
        ),
        (json!(7), "apiVersion:"),
    ];
    for (bad, field) in bad {
        let objects = [object("v1beta1", "Metal3Machine", "a"), bad.clone()];
        let response = converted(HUB, &objects).await;
        assert_eq!(response["result"]["status"], "Failure", "{bad}");
        assert_eq!(response["convertedObjects"], json!([]), "{bad}");
        let message = response["result"]["message"].as_str().unwrap();
        assert!(message.starts_with("request.objects[1] ("), "{message}");
        assert!(message.contains(field), "{message}");
    }
}

#[tokio::test]
async fn an_unknown_version_and_missing_objects_are_errors() {
    let objects = [object("v1beta2", "Metal3Machine", "a")];
    let response = converted("infrastructure.cluster.x-k8s.io/v1", &objects).await;
    assert!(
        response["result"]["message"]
            .as_str()
            .unwrap()
            .contains("desiredAPIVersion:")
    );
    let mut review = review(HUB, &[]);
    review["request"]["objects"] = Value::Null;
    let response = send_review(NoRelatedObjects, CONVERSION_PATH, &review).await;
    assert!(
        response["result"]["message"]
            .as_str()
            .unwrap()
            .starts_with("request.objects:")
    );
}

#[tokio::test]
async fn kinds_with_one_version_are_returned_unchanged() {
    let pool = json!({ "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool", "metadata": { "name": "p" } });
    let response = converted("ipam.metal3.io/v1alpha1", std::slice::from_ref(&pool)).await;
    assert_eq!(response["convertedObjects"], json!([pool]));
}
