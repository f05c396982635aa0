//! What kubectl needs besides objects: OpenAPI documents, replicas as a subresource, logs, and defaults.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use http::{Method, Request};
use kube::Client;
use metal3_sim_cluster::{Cluster, Options};
use serde_json::{Value, json};

async fn send(client: &Client, method: Method, path: &str, media: &str, body: &Value) -> Result<Value, u16> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media);
    let request = request.body(body.to_string().into_bytes()).unwrap();
    match client.request(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

async fn get(client: &Client, path: &str) -> Result<Value, u16> {
    send(client, Method::GET, path, "application/json", &Value::Null).await
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "a", "image": "b:1" }] },
            },
        },
    })
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MERGE: &str = "application/merge-patch+json";

#[tokio::test]
async fn documents_describe_built_in_and_custom_kinds() {
    let cluster = Cluster::start(&Options::seeded(1));
    cluster.install(&metal3_api::catalog::definitions()).unwrap();
    let client = cluster.client("user");
    let places = get(&client, "/openapi/v3").await.unwrap();
    for (place, kind, member) in [
        ("api/v1", "io.k8s.api.core.v1.ConfigMap", "data"),
        ("apis/apps/v1", "io.k8s.api.apps.v1.Deployment", "spec"),
        ("apis/metal3.io/v1alpha1", "io.metal3.v1alpha1.BareMetalHost", "spec"),
    ] {
        let address = places["paths"][place]["serverRelativeURL"].as_str().unwrap().to_owned();
        let document = get(&client, &address).await.unwrap();
        let schema = &document["components"]["schemas"][kind];
        assert!(schema["properties"][member].is_object(), "{kind}");
        let paths = document["paths"].as_object().unwrap().values();
        let validated = |path: &Value| path["patch"]["parameters"][0]["name"] == "fieldValidation";
        assert!(paths.clone().count() > 0 && paths.clone().all(validated), "{place}");
    }
    assert_eq!(get(&client, "/openapi/v3/apis/none/v1").await, Err(404));
}

#[tokio::test]
async fn groups_are_discovered_in_one_document_by_clients_that_prefer_it() {
    let cluster = Cluster::start(&Options::seeded(1));
    cluster.install(&metal3_api::catalog::definitions()).unwrap();
    let client = cluster.client("user");
    let discover = async |path: &str, accept: &str| -> Value {
        let request = Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
        client.request(request).await.unwrap()
    };
    let in_one = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let document = discover("/apis", in_one).await;
    let groups = document["items"].as_array().unwrap();
    let group = groups
        .iter()
        .find(|group| group["metadata"]["name"] == "metal3.io")
        .unwrap();
    let resources = group["versions"][0]["resources"].as_array().unwrap();
    let hosts = resources
        .iter()
        .find(|one| one["resource"] == "baremetalhosts")
        .unwrap();
    let kind = json!({ "group": "metal3.io", "version": "v1alpha1", "kind": "BareMetalHost" });
    assert_eq!((&hosts["responseKind"], &hosts["scope"]), (&kind, &json!("Namespaced")));
    assert_eq!(hosts["subresources"][0]["subresource"], "status");
    assert_eq!(
        resources
            .iter()
            .filter(|one| one["resource"] == "baremetalhosts/status")
            .count(),
        0
    );
    assert_eq!(discover("/api", in_one).await["items"].as_array().unwrap().len(), 1);
    assert_eq!(discover("/apis", "application/json").await["kind"], "APIGroupList");
}

#[tokio::test]
async fn replicas_are_read_and_written_by_the_subresource() {
    let client = Cluster::start(&Options::seeded(1)).client("user");
    send(&client, Method::POST, DEPLOYMENTS, "application/json", &deployment())
        .await
        .unwrap();
    let path = format!("{DEPLOYMENTS}/web/scale");
    let scale = get(&client, &path).await.unwrap();
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]["selector"]),
        (&json!(1), &json!("app=web"))
    );
    let patch = json!({ "spec": { "replicas": 3 } });
    let scaled = send(&client, Method::PATCH, &path, MERGE, &patch).await.unwrap();
    assert_eq!(
        (&scaled["kind"], &scaled["spec"]["replicas"]),
        (&json!("Scale"), &json!(3))
    );
    let found = get(&client, &format!("{DEPLOYMENTS}/web")).await.unwrap();
    assert_eq!(
        (&found["spec"]["replicas"], &found["metadata"]["generation"]),
        (&json!(3), &json!(2))
    );
    // An old version, a negative number, and a kind without replicas.
    assert_eq!(
        send(&client, Method::PUT, &path, "application/json", &scale).await,
        Err(409)
    );
    let negative = json!({ "spec": { "replicas": -1 } });
    assert_eq!(send(&client, Method::PATCH, &path, MERGE, &negative).await, Err(422));
    assert_eq!(
        get(&client, "/api/v1/namespaces/default/configmaps/a/scale").await,
        Err(404)
    );
}

#[tokio::test]
async fn a_pod_without_a_node_has_an_empty_log_and_no_connections() {
    let client = Cluster::start(&Options::seeded(1)).client("user");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "a", "image": "b" }] },
    });
    let pods = "/api/v1/namespaces/default/pods";
    let made = send(&client, Method::POST, pods, "application/json", &pod)
        .await
        .unwrap();
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
    let request = Request::get(format!("{pods}/a/log")).body(Vec::new()).unwrap();
    assert_eq!(client.request_text(request).await.unwrap(), "");
    assert_eq!(
        send(
            &client,
            Method::POST,
            &format!("{pods}/a/exec"),
            "application/json",
            &json!({})
        )
        .await,
        Err(400)
    );
    assert_eq!(get(&client, &format!("{pods}/b/log")).await, Err(404));
    assert_eq!(get(&client, &format!("{pods}/a/log?container=none")).await, Err(400));
    let broken = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "c" },
        "spec": { "containers": [{ "name": "Upper", "image": "" }] },
    });
    assert_eq!(
        send(&client, Method::POST, pods, "application/json", &broken).await,
        Err(422)
    );
}

#[tokio::test]
async fn kubectl_takes_fields_over_from_its_applies_on_the_clients_side() {
    let client = Cluster::start(&Options::seeded(1)).client("user");
    let last = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1"}}"#;
    let made = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1", "b": "1" },
        "metadata": { "name": "a", "annotations": { "kubectl.kubernetes.io/last-applied-configuration": last } },
    });
    let maps = "/api/v1/namespaces/default/configmaps";
    send(
        &client,
        Method::POST,
        &format!("{maps}?fieldManager=kubectl-client-side-apply"),
        "application/json",
        &made,
    )
    .await
    .unwrap();
    let apply = async |data: Value| {
        let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data });
        let path = format!("{maps}/a?fieldManager=kubectl");
        send(&client, Method::PATCH, &path, "application/apply-patch+yaml", &config).await
    };
    // The configuration of the last apply has `a`, and not `b`.
    assert_eq!(apply(json!({ "b": "2" })).await, Err(409));
    let applied = apply(json!({ "a": "2" })).await.unwrap();
    let annotation = applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].as_str();
    assert!(
        applied["data"]["a"] == "2" && annotation.unwrap().contains(r#""a":"2""#),
        "{applied}"
    );
}

#[tokio::test]
async fn the_usual_namespaces_exist_and_some_stay() {
    let client = Cluster::start(&Options::seeded(1)).client("user");
    let list = get(&client, "/api/v1/namespaces").await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 4);
    let deleted = send(
        &client,
        Method::DELETE,
        "/api/v1/namespaces/default",
        "application/json",
        &json!({}),
    )
    .await;
    assert_eq!(deleted, Err(403));
}
