//! Bodies that are no reviews, and rules that fail.

use std::sync::Arc;

use axum::http::StatusCode;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::metrics::Metrics;
use metal3_webhooks::related_objects::{NoRelatedObjects, Observation, RelatedObjects};
use metal3_webhooks::router::CONVERSION_PATH;
use metal3_webhooks::table::{SUITES, Suite, Task};
use serde_json::{Value, json};

use crate::api_server::{hook, post, post_and_count, review, reviewed};

fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    let of = |api_version: &str, kind: &str, request: &Value| {
        json!({ "apiVersion": api_version, "kind": kind, "request": request })
            .to_string()
            .into_bytes()
    };
    vec![
        ("nothing", Vec::new()),
        ("no text", vec![0xff, 0xfe, 0x00]),
        ("half a document", b"{\"apiVersion\":".to_vec()),
        ("null", b"null".to_vec()),
        ("a list", b"[]".to_vec()),
        ("deep nesting", nested(100_000)),
        ("another kind", of("v1", "Secret", &json!({ "uid": "u" }))),
        (
            "an older version",
            of("admission.k8s.io/v1beta1", "AdmissionReview", &json!({ "uid": "u" })),
        ),
        ("no request", of("admission.k8s.io/v1", "AdmissionReview", &Value::Null)),
        (
            "no uid",
            of(
                "admission.k8s.io/v1",
                "AdmissionReview",
                &json!({ "operation": "CREATE" }),
            ),
        ),
        (
            "a uid that is none",
            of("admission.k8s.io/v1", "AdmissionReview", &json!({ "uid": 7 })),
        ),
        (
            "no objects' uid",
            of("apiextensions.k8s.io/v1", "ConversionReview", &json!({ "uid": "" })),
        ),
    ]
}

#[tokio::test]
async fn bodies_that_are_no_reviews_are_bad_requests_with_a_message() {
    for path in [hook(Task::Validate, "IPPool").path(), CONVERSION_PATH.to_owned()] {
        for (name, body) in bodies() {
            let (status, body) = post(NoRelatedObjects, &path, body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {name}");
            let text = String::from_utf8(body).unwrap();
            assert!(
                text.contains("post a ") || text.contains("set it"),
                "{path} {name}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn any_json_in_place_of_an_object_is_rejected() {
    let invalid = [json!(7), json!("x"), json!([]), json!(true), json!({ "metadata": 7 })];
    let mut asked = 0;
    for hook in SUITES.iter().flat_map(Suite::hooks) {
        for object in &invalid {
            asked += 1;
            let response = reviewed(NoRelatedObjects, &hook, "CREATE", (None, Some(object))).await;
            assert_eq!(response["allowed"], false, "{} {object}", hook.path());
            assert!(!response["status"]["message"].as_str().unwrap().is_empty());
        }
    }
    assert!(asked > 100, "{asked}");
}

#[tokio::test]
async fn bodies_beyond_the_limit_are_not_read() {
    let (status, _) = post(
        NoRelatedObjects,
        &hook(Task::Validate, "IPPool").path(),
        vec![b' '; (7 << 20) + 1],
    )
    .await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, _) = post(NoRelatedObjects, CONVERSION_PATH, vec![b' '; (16 << 20) + 1]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn an_update_of_an_object_of_maximum_size_is_validated() {
    let mut object = json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool", "metadata": { "name": "p", "namespace": "n" },
        "spec": { "namePrefix": "p", "pools": [{ "subnet": "192.0.2.0/24" }] },
    });
    object["metadata"]["annotations"] = json!({ "large": "x".repeat(3 << 20) });
    let hook = hook(Task::Validate, "IPPool");
    let response = reviewed(NoRelatedObjects, &hook, "UPDATE", (Some(&object), Some(&object))).await;
    assert_eq!(response["allowed"], true);
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let (status, _) = post(NoRelatedObjects, "/validate-v1-secret", b"{}".to_vec()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// A rule with a defect.
struct Defect;

impl RelatedObjects for Defect {
    fn hosts(&self, _namespace: &str) -> Observation<Vec<Arc<BareMetalHost>>> {
        let none: [u8; 0] = [];
        Observation::Unknown(none[none.len()].to_string())
    }
}

#[tokio::test]
async fn a_rule_that_panics_rejects_only_its_request() {
    let hook = hook(Task::Validate, "HostNetworkAttachment");
    let attachment = json!({ "metadata": { "name": "storage", "namespace": "metal" } });
    let review = review(&hook, "DELETE", Some(&attachment), None);
    let metrics = Metrics::new();
    let (status, body) = post_and_count(Defect, &hook.path(), review.to_string().into_bytes(), &metrics).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    let counted = metrics.render();
    assert!(
        counted.contains("controller_runtime_webhook_panics_total 1"),
        "{counted}"
    );
    let request = format!("webhook=\"{}\",code=\"500\"", hook.path());
    assert!(counted.contains(&request), "{counted}");
    assert!(String::from_utf8(body).unwrap().contains("defect of the provider"));
}
