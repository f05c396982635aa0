//! Invalid requests, and requests without findings.

use metal3_webhooks::related_objects::NoRelatedObjects;
use metal3_webhooks::table::Task;
use serde_json::{Value, json};

use crate::api_server::{KnownObjects, hook, post, review, reviewed, send_review};

fn pool(spec: &Value) -> Value {
    json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool",
        "metadata": { "name": "rack", "namespace": "metal" }, "spec": spec,
    })
}

fn good() -> Value {
    pool(&json!({ "namePrefix": "rack", "pools": [{ "subnet": "192.0.2.0/24" }] }))
}

fn bad() -> Value {
    pool(&json!({ "namePrefix": "rack", "pools": [{ "prefix": 24 }] }))
}

/// The review of creating an invalid pool, with a change.
fn changed(change: fn(&mut Value)) -> Value {
    let mut review = review(&hook(Task::Validate, "IPPool"), "CREATE", None, Some(&bad()));
    change(&mut review["request"]);
    review
}

/// Name, change of the request, and parts of the message.
type InvalidRequest = (&'static str, fn(&mut Value), [&'static str; 2]);

#[tokio::test]
async fn invalid_requests_are_rejected_with_the_field_and_the_cure() {
    let table: [InvalidRequest; 9] = [
        (
            "no operation",
            |it| it["operation"] = Value::Null,
            ["request.operation:", "send "],
        ),
        (
            "CONNECT",
            |it| it["operation"] = "CONNECT".into(),
            ["request.operation:", "CREATE"],
        ),
        (
            "no resource",
            |it| it["resource"] = Value::Null,
            ["request.resource.group:", "set it"],
        ),
        (
            "another kind",
            |it| it["resource"]["resource"] = "ipclaims".into(),
            ["request.resource:", "ippools.v1alpha1"],
        ),
        (
            "another version",
            |it| it["resource"]["version"] = "v1".into(),
            ["request.resource:", "v1alpha1"],
        ),
        (
            "a scale",
            |it| it["subResource"] = "scale".into(),
            ["request.subResource:", "the object itself"],
        ),
        (
            "no object",
            |it| it["object"] = Value::Null,
            ["new object", "carries no"],
        ),
        (
            "a malformed object",
            |it| it["object"]["spec"]["pools"] = json!([7]),
            ["spec.pools[0]:", "write it as"],
        ),
        (
            "another object",
            |it| it["object"]["kind"] = "IPClaim".into(),
            ["kind:", "expected IPPool"],
        ),
    ];
    for (name, change, words) in table {
        let response = send_review(
            KnownObjects::default(),
            &hook(Task::Validate, "IPPool").path(),
            &changed(change),
        )
        .await;
        assert_eq!(response["allowed"], false, "{name}");
        let message = response["status"]["message"].as_str().unwrap();
        assert!(words.iter().all(|word| message.contains(word)), "{name}: {message}");
    }
}

#[tokio::test]
async fn malformed_objects_are_rejected_before_defaulting() {
    let hook = hook(Task::Mutate, "IPPool");
    let malformed = pool(&json!({ "namePrefix": 7 }));
    let response = reviewed(NoRelatedObjects, &hook, "UPDATE", (Some(&good()), Some(&malformed))).await;
    assert_eq!(response["allowed"], false);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("IPPool.ipam.metal3.io \"rack\" is invalid: spec.namePrefix:"),
        "{message}"
    );
}

#[tokio::test]
async fn writes_of_a_status_are_not_reviewed() {
    let review = changed(|it| it["subResource"] = "status".into());
    let response = send_review(NoRelatedObjects, &hook(Task::Validate, "IPPool").path(), &review).await;
    assert_eq!(response["allowed"], true);
}

#[tokio::test]
async fn deleting_a_pool_is_never_rejected_nor_mutated() {
    for task in [Task::Validate, Task::Mutate] {
        let hook = hook(task, "IPPool");
        let response = reviewed(NoRelatedObjects, &hook, "DELETE", (Some(&bad()), None)).await;
        assert_eq!(response["allowed"], true);
        assert_eq!(response.get("patch"), None);
    }
}

#[tokio::test]
async fn dry_run_is_handled_as_any_other_request() {
    for object in [good(), bad()] {
        let hook = hook(Task::Validate, "IPPool");
        let mut review = review(&hook, "CREATE", None, Some(&object));
        let wet = send_review(NoRelatedObjects, &hook.path(), &review).await;
        review["request"]["dryRun"] = true.into();
        assert_eq!(send_review(NoRelatedObjects, &hook.path(), &review).await, wet);
    }
}

#[tokio::test]
async fn no_defaults_to_set_is_no_patch() {
    let hook = hook(Task::Mutate, "IPPool");
    let response = reviewed(NoRelatedObjects, &hook, "CREATE", (None, Some(&good()))).await;
    assert_eq!(response["allowed"], true);
    assert_eq!((response.get("patch"), response.get("patchType")), (None, None));
}

#[tokio::test]
async fn several_findings_are_in_one_rejection() {
    let hook = hook(Task::Validate, "IPPool");
    let object = pool(&json!({ "namePrefix": "rack", "gateway": "x", "pools": [{ "prefix": 24 }] }));
    let response = reviewed(NoRelatedObjects, &hook, "CREATE", (None, Some(&object))).await;
    let message = response["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("[spec.pools[0]:") && message.contains(", spec.gateway:"),
        "{message}"
    );
}

#[tokio::test]
async fn an_object_without_a_name_is_reported_with_its_generate_name() {
    let hook = hook(Task::Validate, "IPPool");
    let mut object = bad();
    object["metadata"] = json!({ "generateName": "rack-" });
    let response = reviewed(NoRelatedObjects, &hook, "CREATE", (None, Some(&object))).await;
    assert_eq!(response["status"]["details"]["name"], "rack-");
}

#[tokio::test]
async fn mutating_hooks_that_only_older_go_managers_install_accept_and_change_nothing() {
    let kinds = [
        "Metal3ClusterTemplate",
        "Metal3Data",
        "Metal3DataClaim",
        "Metal3DataTemplate",
        "Metal3Machine",
        "Metal3MachineTemplate",
        "Metal3Remediation",
    ];
    for kind in kinds {
        let plural = format!("{}s", kind.to_lowercase());
        let group = "infrastructure.cluster.x-k8s.io";
        let object = json!({ "apiVersion": format!("{group}/v1beta1"), "kind": kind, "metadata": { "name": "a", "namespace": "metal" }, "spec": {} });
        let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": "CREATE", "resource": { "group": group, "version": "v1beta1", "resource": plural },
            "userInfo": {}, "object": object } });
        let path = format!(
            "/mutate-infrastructure-cluster-x-k8s-io-v1beta1-{}",
            kind.to_lowercase()
        );
        let (status, body) = post(NoRelatedObjects, &path, review.to_string().into_bytes()).await;
        let text = String::from_utf8_lossy(&body);
        assert_eq!(status, 200, "{path}: {text}");
        let response: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(response["response"]["allowed"], true, "{path}: {text}");
        assert!(response["response"]["patch"].is_null(), "{path}: {text}");
    }
}
