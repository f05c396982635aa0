//! Requests that the simulator does not support and therefore rejects.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use metal3_sim_cluster::{Cluster, Options};
use serde_json::{Value, json};

fn client() -> Client {
    Cluster::start(&Options::seeded(1)).client("tester")
}

/// A kind with one list.
fn definition(list_type: &str, more: &Value) -> Value {
    let mut properties = json!({
        "names": {"type": "array", "x-kubernetes-list-type": list_type, "items": {"type": "string"}},
    });
    properties
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let spec = json!({"type": "object", "properties": properties});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "wheels.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"kind": "Wheel", "plural": "wheels"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

async fn define(client: &Client, definition: &Value) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"spec": definition["spec"]}));
    let patched = api.patch("wheels.example.org", &PatchParams::default(), &patch).await;
    match patched {
        Err(Error::Api(status)) if status.code == 404 => {
            let definition = serde_json::from_value(definition.clone()).unwrap();
            api.create(&PostParams::default(), &definition).await.map(drop)
        }
        patched => patched.map(drop),
    }
}

async fn make_wheel(client: &Client) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Wheel"));
    let wheel = DynamicObject::new("a", &resource).data(json!({"spec": {"names": ["x"]}}));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    api.create(&PostParams::default(), &wheel).await.unwrap();
}

fn rejection(answer: Result<(), Error>) -> (u16, String) {
    match answer {
        Err(Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("not rejected: {other:?}"),
    }
}

#[tokio::test]
async fn changed_list_type_with_existing_objects_is_rejected() {
    let client = client();
    define(&client, &definition("atomic", &json!({}))).await.unwrap();
    make_wheel(&client).await;
    let (code, message) = rejection(define(&client, &definition("set", &json!({}))).await);
    assert_eq!(code, 501);
    assert!(message.contains("v1.spec.names"), "{message}");
    let other = json!({"size": {"type": "integer"}});
    define(&client, &definition("atomic", &other)).await.unwrap();
}

#[tokio::test]
async fn changed_list_type_without_objects_is_accepted() {
    let client = client();
    define(&client, &definition("atomic", &json!({}))).await.unwrap();
    define(&client, &definition("set", &json!({}))).await.unwrap();
    make_wheel(&client).await;
}

#[tokio::test]
async fn server_side_apply_of_a_secret_with_string_data_is_rejected() {
    let api: Api<Secret> = Api::namespaced(client(), "default");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}});
    let applied = api.patch("a", &PatchParams::apply("m"), &Patch::Apply(&secret)).await;
    let (code, message) = rejection(applied.map(drop));
    assert_eq!(code, 501);
    assert!(message.contains("stringData"), "{message}");
}

/// The real server closes the connection.
#[tokio::test]
async fn protobuf_body_of_a_custom_kind_is_rejected() {
    let client = client();
    define(&client, &definition("atomic", &json!({}))).await.unwrap();
    let request = http::Request::post("/apis/example.org/v1/namespaces/default/wheels")
        .header("content-type", "application/vnd.kubernetes.protobuf")
        .body(b"k8s\0".to_vec())
        .unwrap();
    let (code, message) = rejection(client.request_text(request).await.map(drop));
    assert_eq!(code, 415);
    assert!(message.contains("application/json"), "{message}");
}

#[tokio::test]
async fn logs_of_an_unknown_pod_are_not_found() {
    let request = http::Request::get("/api/v1/namespaces/default/pods/a/log");
    let answer = client().request_text(request.body(Vec::new()).unwrap()).await;
    let (code, message) = rejection(answer.map(drop));
    assert_eq!((code, message.as_str()), (404, "pods \"a\" not found"));
}
