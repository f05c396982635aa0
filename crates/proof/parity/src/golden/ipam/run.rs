//! Runs one case: a cluster, the controller, and the steps of a user.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::view;
use crate::golden::data::controllers::start_addresses;
use crate::golden::server::{PutError, Resource, TestServer, run_paused};
use crate::values::{list, text};

/// Runs a case and returns the objects after each step and at the end.
pub(super) fn run_case(input: &Value, in_full: bool) -> Result<Value> {
    run_paused(run_steps(input, in_full))?
}

async fn run_steps(input: &Value, in_full: bool) -> Result<Value> {
    let mut server = TestServer::new()?;
    for namespace in ["metal", "elsewhere"] {
        server.namespace(namespace).await?;
    }
    put(&mut server, input, "/objects").await?;
    let mut controller = JoinSet::new();
    start_addresses(&server, &mut controller);
    server.settle(async |_| Ok(())).await?;
    let mut steps = Vec::new();
    for step in list(input, "/steps") {
        put(&mut server, step, "/apply").await?;
        for object in list(step, "/delete") {
            server.delete(&in_namespace(object)).await?;
        }
        for object in list(step, "/mergePatch") {
            let object = in_namespace(object);
            let path =
                Resource::of(&object)?.path(text(&object, "/metadata/namespace"), text(&object, "/metadata/name"));
            server
                .send("PATCH", &path, &json!({ "spec": object.get("spec") }))
                .await?;
        }
        server.settle(async |_| Ok(())).await?;
        steps.push(json!({ "claims": view::claims(&objects(&server).await?) }));
    }
    let objects = objects(&server).await?;
    let end = json!({ "addresses": view::addresses(&objects, in_full), "pools": view::pools(&objects) });
    Ok(json!({ "final": end, "steps": steps }))
}

async fn put(server: &mut TestServer, from: &Value, pointer: &str) -> Result<()> {
    for object in list(from, pointer).map(in_namespace) {
        match server.put(&[&object]).await {
            Ok(()) => {}
            Err(PutError::Rejected(why)) => bail!("the server rejects {object}: {why}"),
            Err(PutError::Other(error)) => return Err(error),
        }
    }
    Ok(())
}

/// The object with the namespace of the cases, unless it has another one.
fn in_namespace(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("namespace").or_insert_with(|| "metal".into());
    }
    object
}

/// All objects that are compared.
async fn objects(server: &TestServer) -> Result<Vec<Value>> {
    let kinds = [
        ("ipam.metal3.io", "v1alpha1", "IPPool"),
        ("ipam.metal3.io", "v1alpha1", "IPClaim"),
        ("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim"),
        ("ipam.metal3.io", "v1alpha1", "IPAddress"),
        ("ipam.cluster.x-k8s.io", "v1beta2", "IPAddress"),
        ("cluster.x-k8s.io", "v1beta2", "Cluster"),
    ];
    let mut objects = Vec::new();
    for (group, version, kind) in kinds {
        objects.extend(server.all(&Resource::new(group, version, kind), "").await?);
    }
    Ok(objects)
}
