//! A world of stand-ins in which a user does what was recorded.

use std::sync::Arc;

use anyhow::{Context, Result};
use http::Method;
use metal3_domain::clock::Clock;
use metal3_sandbox::world::{NAMESPACE, Setup, World, collection, version_of};
use metal3_runtime::clock::TimerClock;
use metal3_sim_capi::view::{Object, endpoint};
use metal3_sim_capi::workload::WorkloadServers as _;
use serde_json::{Map, Value, json};

use super::recording::Recording;
use super::script::Act;
use super::text;

const MERGE: &str = "application/merge-patch+json";

/// A world in which nobody does what the user did by hand in the recordings.
pub(super) fn world() -> Result<World> {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let setup = Setup {
        attended: false,
        ..Setup::unhurried(1, clock)
    };
    Ok(World::begin(&setup)?)
}

/// Does what the user did.
pub(super) async fn act(world: &World, recording: &Recording, act: Act) -> Result<()> {
    match act {
        Act::Make(kind, name, state) => make(world, recording.object(kind, name, state)?, &[]).await,
        Act::MakeWith(kind, name, state, with) => make(world, recording.object(kind, name, state)?, with).await,
        Act::Spec(kind, name, state) => {
            let recorded = recording.object(kind, name, state)?;
            patch(world, recorded, &json!({ "spec": recorded.get("spec") })).await
        }
        Act::Annotate(kind, name, key, value) => {
            let change = json!({ "metadata": { "annotations": { key: value } } });
            patch(world, recording.first(kind, name)?, &change).await
        }
        Act::Pause(name, pauses) => {
            let change = json!({ "spec": { "paused": pauses } });
            patch(world, recording.first("Cluster", name)?, &change).await
        }
        Act::Delete(kind, name) => {
            let path = path(recording.first(kind, name)?)?;
            world
                .send(Method::DELETE, &path, "application/json", &json!({}))
                .await?;
            Ok(())
        }
        Act::Balance(state) => {
            let service = recording.object("Service", "", state)?;
            let path = format!(
                "/api/v1/namespaces/{NAMESPACE}/services/{}/status",
                text(service, "/metadata/name")
            );
            let change = json!({ "status": service.get("status") });
            world.send(Method::PATCH, &path, MERGE, &change).await?;
            Ok(())
        }
        Act::ControlPlane(cluster, state) => control_plane(world, recording, cluster, state).await,
        Act::Workload(cluster, state) => workload(world, recording, cluster, state).await,
    }
}

/// Makes a recorded object without what others wrote into it.
async fn make(world: &World, recorded: &Value, with: &[(&str, &str)]) -> Result<()> {
    let kind = text(recorded, "/kind");
    let mut spec = recorded.get("spec").cloned().unwrap_or_else(|| json!({}));
    let others: &[&str] = match kind {
        "Cluster" => &["controlPlaneEndpoint", "paused"],
        "KamajiControlPlane" => &["controlPlaneEndpoint"],
        "ByoHost" => &["bootstrapSecret"],
        _ => &[],
    };
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|member, _| !others.contains(&member.as_str()));
    }
    let labels = recorded.pointer("/metadata/labels").and_then(Value::as_object);
    let labels: Map<String, Value> = labels.cloned().unwrap_or_default();
    let own = labels.into_iter().filter(|(key, _)| !key.contains("cluster.x-k8s.io"));
    let mut object = json!({
        "apiVersion": recorded.get("apiVersion"), "kind": kind, "spec": spec,
        "metadata": { "name": text(recorded, "/metadata/name"), "labels": own.collect::<Map<_, _>>() },
    });
    for (place, value) in with {
        let (parent, member) = place.rsplit_once('/').unwrap_or_default();
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
        let value = serde_json::from_str(value)?;
        parent
            .with_context(|| format!("{place}: there is nothing in {kind}"))?
            .insert(member.to_owned(), value);
    }
    Ok(world.apply(&object).await?)
}

async fn control_plane(world: &World, recording: &Recording, cluster: &str, state: &str) -> Result<()> {
    let plane = text(recording.first("Cluster", cluster)?, "/spec/controlPlaneRef/name");
    let machine = recording.object("ByoMachine", "", state)?;
    let template = text(machine, "/metadata/annotations/cluster.x-k8s.io~1cloned-from-name");
    let made_of =
        json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoMachineTemplate", "name": template });
    let all = [
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "ByoMachineTemplate",
            "metadata": { "name": template }, "spec": { "template": { "spec": {} } },
        }),
        json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": { "name": plane },
            "spec": {
                "replicas": 1, "version": text(recording.object("Machine", "", state)?, "/spec/version"),
                "machineTemplate": { "spec": { "infrastructureRef": made_of } }, "kubeadmConfigSpec": {},
            },
        }),
    ];
    for object in all {
        world.apply(&object).await?;
    }
    Ok(())
}

async fn workload(world: &World, recording: &Recording, cluster: &str, state: &str) -> Result<()> {
    let at = endpoint(&Object(recording.object("Cluster", cluster, state)?.clone()));
    let at = at.with_context(|| format!("{cluster} has no endpoint in state {state}"))?;
    world.workloads.start(&at);
    let site = world.workloads.at(&at).context("the workload cluster does not run")?;
    let name = text(recording.object("ByoHost", "", state)?, "/metadata/name");
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
    let request = http::Request::post("/api/v1/nodes")
        .header("content-type", "application/json")
        .body(node.to_string().into_bytes())?;
    site.client("user").request::<Value>(request).await?;
    Ok(())
}

async fn patch(world: &World, of: &Value, change: &Value) -> Result<()> {
    world.send(Method::PATCH, &path(of)?, MERGE, change).await?;
    Ok(())
}

/// Where the object of this kind and name is.
fn path(of: &Value) -> Result<String> {
    let kind = text(of, "/kind");
    let version = version_of(kind).with_context(|| format!("kind {kind}: nobody here knows it"))?;
    let place = collection(&version, kind, NAMESPACE).map_err(anyhow::Error::msg)?;
    Ok(format!("{place}/{}", text(of, "/metadata/name")))
}
