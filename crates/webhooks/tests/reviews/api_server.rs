//! The API server's side of a review.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use base64::Engine as _;
use http_body_util::BodyExt as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::SystemClock;
use metal3_runtime::metrics::Metrics;
use metal3_webhooks::related_objects::{Observation, RelatedObjects};
use metal3_webhooks::router::{Callers, Instrumentation, router};
use metal3_webhooks::table::{Hook, SUITES, Suite, Task};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Known hosts and granted addresses.
#[derive(Default)]
pub(crate) struct KnownObjects {
    pub(crate) hosts: Vec<Arc<BareMetalHost>>,
    pub(crate) granted: Vec<String>,
}

impl RelatedObjects for KnownObjects {
    fn hosts(&self, _namespace: &str) -> Observation<Vec<Arc<BareMetalHost>>> {
        Observation::Known(self.hosts.clone())
    }

    fn granted(&self, _namespace: &str, _pool: &str) -> Observation<Vec<String>> {
        Observation::Known(self.granted.clone())
    }
}

/// Posts a body.
pub(crate) async fn post(
    related_objects: impl RelatedObjects + 'static,
    path: &str,
    body: Vec<u8>,
) -> (StatusCode, Vec<u8>) {
    post_and_count(related_objects, path, body, &Metrics::new()).await
}

/// Posts a body, counted in these metrics.
pub(crate) async fn post_and_count(
    related_objects: impl RelatedObjects + 'static,
    path: &str,
    body: Vec<u8>,
    metrics: &Metrics,
) -> (StatusCode, Vec<u8>) {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Body::from(body));
    let related_objects: Arc<dyn RelatedObjects> = Arc::new(related_objects);
    let suites = SUITES.map(|suite| (suite, Arc::clone(&related_objects)));
    let instrumentation = Instrumentation {
        metrics: metrics.servers(),
        clock: Arc::new(SystemClock::start()),
    };
    let response = router(&suites, &instrumentation, &Callers::Any)
        .oneshot(request.unwrap())
        .await
        .unwrap();
    let status = response.status();
    (
        status,
        response.into_body().collect().await.unwrap().to_bytes().to_vec(),
    )
}

/// Posts a review and decodes the response, which must match it.
pub(crate) async fn send_review(related_objects: impl RelatedObjects + 'static, path: &str, review: &Value) -> Value {
    let (status, body) = post(related_objects, path, review.to_string().into_bytes()).await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    let answer: Value = serde_json::from_slice(&body).unwrap();
    for member in ["apiVersion", "kind"] {
        assert_eq!(answer[member], review[member]);
    }
    assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
    answer["response"].clone()
}

/// The hook of a kind.
pub(crate) fn hook(task: Task, kind: &str) -> Hook {
    let mut hooks = SUITES.iter().flat_map(Suite::hooks);
    hooks
        .find(|hook| hook.task == task && hook.reviewer.kind == kind)
        .unwrap()
}

/// The review of a request, in the format of the API server.
pub(crate) fn review(hook: &Hook, operation: &str, old: Option<&Value>, new: Option<&Value>) -> Value {
    let reviewer = hook.reviewer;
    let object = new.or(old).unwrap_or(&Value::Null);
    let kind = json!({ "group": reviewer.group, "version": reviewer.version, "kind": reviewer.kind });
    let resource = json!({ "group": reviewer.group, "version": reviewer.version, "resource": reviewer.plural });
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "5f0a0d1e-0000-4000-8000-000000000001",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
            "operation": operation, "userInfo": { "username": "alice" },
            "object": new, "oldObject": old, "dryRun": false, "options": null,
        },
    })
}

/// The response of a hook to a request in the format of the API server.
pub(crate) async fn reviewed(
    related_objects: impl RelatedObjects + 'static,
    hook: &Hook,
    operation: &str,
    (old, new): (Option<&Value>, Option<&Value>),
) -> Value {
    send_review(related_objects, &hook.path(), &review(hook, operation, old, new)).await
}

/// The fields of a rejection.
pub(crate) fn fields(response: &Value) -> Vec<String> {
    let causes = response["status"]["details"]["causes"].as_array().into_iter().flatten();
    causes
        .map(|cause| cause["field"].as_str().unwrap().to_owned())
        .collect()
}

/// Applies the patch of a response.
pub(crate) fn patched(object: &Value, response: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = response.get("patch") {
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = base64::engine::general_purpose::STANDARD
            .decode(patch.as_str().unwrap())
            .unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
    }
    object
}
