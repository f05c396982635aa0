//! Performs one write as a request.

use http::{Method, Request};
use metal3_runtime::cache::Key;
use serde_json::{Map, Value, json};

use super::Parts;
use crate::kinds::{Kind, SECRET};
use crate::view::{Object, text_of};
use crate::write::{WorkloadChange, Write};

type Written = Option<(&'static Kind, Object)>;

/// Performs a write and returns the object from the response. A conflict or a missing object counts as done: the watch
/// reports the current state.
pub(crate) async fn perform(parts: &Parts, write: &Write) -> Result<Written, String> {
    let (kind, method, path, body) = match write {
        Write::Create(kind, object) => {
            let namespace = text_of(object.get("metadata").unwrap_or(&Value::Null), "namespace");
            (*kind, Method::POST, collection_path(kind, namespace), object.clone())
        }
        Write::Merge(kind, key, change) => (*kind, Method::PATCH, object_path(kind, key), change.clone()),
        Write::Status(kind, key, change) => {
            let path = format!("{}/status", object_path(kind, key));
            (*kind, Method::PATCH, path, change.clone())
        }
        Write::Delete(kind, key) => (*kind, Method::DELETE, object_path(kind, key), json!({})),
        Write::ClusterSecret(at, purpose, secret) => {
            let namespace = text_of(secret.get("metadata").unwrap_or(&Value::Null), "namespace");
            let mut secret = secret.clone();
            let texts = parts.workloads.secret_data(at, *purpose).into_iter();
            let texts: Map<String, Value> = texts.map(|(name, text)| (name.to_owned(), text.into())).collect();
            if let Some(members) = secret.as_object_mut() {
                members.insert("stringData".to_owned(), texts.into());
            }
            (SECRET, Method::POST, collection_path(SECRET, namespace), secret)
        }
        Write::Workload(at, change) => return write_to_workload(parts, at, change).await.map(|()| None),
    };
    let answer = send(&parts.client, method, &path, &body).await?;
    let object = answer.filter(|answer| text_of(answer, "kind") == kind.kind);
    Ok(object.map(|object| (kind, Object(object))))
}

/// Performs a change in a workload cluster.
async fn write_to_workload(parts: &Parts, at: &str, change: &WorkloadChange) -> Result<(), String> {
    if *change == WorkloadChange::Start {
        parts.workloads.start(at);
        return Ok(());
    }
    // A cluster that does not run has nothing to change.
    let Some(client) = parts.workloads.client(at, "cluster-api") else {
        return Ok(());
    };
    let node = |name: &str| format!("/api/v1/nodes/{name}");
    match change {
        WorkloadChange::Start => {}
        WorkloadChange::Stop => parts.workloads.stop(at),
        WorkloadChange::Node(name, change) => drop(send(&client, Method::PATCH, &node(name), change).await?),
        WorkloadChange::DeleteNode(name) => drop(send(&client, Method::DELETE, &node(name), &json!({})).await?),
        WorkloadChange::Objects(objects) => {
            for (path, object) in objects {
                drop(send(&client, Method::POST, path, object).await?);
            }
        }
        WorkloadChange::Token(token) => {
            let (id, secret) = token.split_once('.').unwrap_or((token, ""));
            let object = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
                "metadata": { "name": format!("bootstrap-token-{id}"), "namespace": "kube-system" },
                "stringData": { "token-id": id, "token-secret": secret },
            });
            let path = collection_path(SECRET, "kube-system");
            drop(send(&client, Method::POST, &path, &object).await?);
        }
    }
    Ok(())
}

async fn send(client: &kube::Client, method: Method, path: &str, body: &Value) -> Result<Option<Value>, String> {
    match request(client, method, path, body).await {
        Ok(answer) => Ok(Some(answer)),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Sends a request; a patch is a merge patch, and null is no body.
pub(crate) async fn request(
    client: &kube::Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let media = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = Some(body)
        .filter(|body| !body.is_null())
        .map(|body| body.to_string().into_bytes());
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, media)
        .body(bytes.unwrap_or_default())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn collection_path(kind: &Kind, namespace: &str) -> String {
    let root = if kind.group.is_empty() { "/api" } else { "/apis" };
    format!("{root}/{}/namespaces/{namespace}/{}", kind.api_version(), kind.plural)
}

fn object_path(kind: &Kind, key: &Key) -> String {
    format!("{}/{}", collection_path(kind, &key.namespace), key.name)
}
