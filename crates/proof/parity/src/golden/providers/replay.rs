//! Simulators in which the recorded user actions are repeated.

use std::sync::Arc;

use anyhow::{Context, Result};
use http::Method;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sandbox::world::{NAMESPACE, Setup, World, collection, version_of};
use metal3_sim_capi::view::{Object, endpoint};
use metal3_sim_capi::workload::WorkloadServers as _;
use serde_json::{Map, Value, json};

use super::recording::Recording;
use super::script::UserAction;
use crate::values::text;

const MERGE: &str = "application/merge-patch+json";

/// Simulators without automatic actions of the user.
pub(super) fn world() -> Result<World> {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let setup = Setup {
        automated: false,
        ..Setup::real_time(1, clock)
    };
    Ok(World::start(&setup)?)
}

/// Performs a user action.
pub(super) async fn action(world: &World, recording: &Recording, action: UserAction) -> Result<()> {
    match action {
        UserAction::Create(kind, name, state) => create(world, recording.object(kind, name, state)?, &[]).await,
        UserAction::CreateWith(kind, name, state, with) => {
            create(world, recording.object(kind, name, state)?, with).await
        }
        UserAction::Spec(kind, name, state) => {
            let recorded = recording.object(kind, name, state)?;
            patch(world, recorded, &json!({ "spec": recorded.get("spec") })).await
        }
        UserAction::Annotate(kind, name, key, value) => {
            let change = json!({ "metadata": { "annotations": { key: value } } });
            patch(world, recording.first(kind, name)?, &change).await
        }
        UserAction::Pause(name, pauses) => {
            let change = json!({ "spec": { "paused": pauses } });
            patch(world, recording.first("Cluster", name)?, &change).await
        }
        UserAction::Delete(kind, name) => {
            let path = path(recording.first(kind, name)?)?;
            world
                .send(Method::DELETE, &path, "application/json", &json!({}))
                .await?;
            Ok(())
        }
        UserAction::Balance(state) => {
            let service = recording.object("Service", "", state)?;
            let path = format!(
                "/api/v1/namespaces/{NAMESPACE}/services/{}/status",
                text(service, "/metadata/name")
            );
            let change = json!({ "status": service.get("status") });
            world.send(Method::PATCH, &path, MERGE, &change).await?;
            Ok(())
        }
        UserAction::ControlPlane(cluster, state) => control_plane(world, recording, cluster, state).await,
        UserAction::Workload(cluster, state) => workload(world, recording, cluster, state).await,
    }
}

/// Creates a recorded object without fields of other writers.
async fn create(world: &World, recorded: &Value, with: &[(&str, &str)]) -> Result<()> {
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
    let workload = world.workloads.at(&at).context("the workload cluster does not run")?;
    let name = text(recording.object("ByoHost", "", state)?, "/metadata/name");
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
    let request = http::Request::post("/api/v1/nodes")
        .header("content-type", "application/json")
        .body(node.to_string().into_bytes())?;
    workload.client("user").request::<Value>(request).await?;
    Ok(())
}

async fn patch(world: &World, of: &Value, change: &Value) -> Result<()> {
    world.send(Method::PATCH, &path(of)?, MERGE, change).await?;
    Ok(())
}

/// Path of the object with this kind and name.
fn path(of: &Value) -> Result<String> {
    let kind = text(of, "/kind");
    let version = version_of(kind).with_context(|| format!("unknown kind {kind}"))?;
    let place = collection(&version, kind, NAMESPACE).map_err(anyhow::Error::msg)?;
    Ok(format!("{place}/{}", text(of, "/metadata/name")))
}
