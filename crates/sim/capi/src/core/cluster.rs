//! Clusters: what belongs to one, what is copied from its infrastructure and control plane, and in which order it goes.

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use serde_json::{Map, Value, json};

use super::paused;
use crate::kinds::{CLUSTER, DEPLOYMENT, Kind, MACHINE, SET, find};
use crate::view::{Object, World, endpoint, reference};
use crate::write::{Conditions, Write, adopt, change, delete, owner, protect, release, status};

const FINALIZER: &str = "cluster.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "/spec/infrastructureRef";
const CONTROL_PLANE: &str = "/spec/controlPlaneRef";

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(CLUSTER).flat_map(|cluster| of(world, cluster)).collect()
}

fn of(world: &World, cluster: &Object) -> Vec<Write> {
    if let Some(writes) = paused(world, CLUSTER, cluster) {
        return writes;
    }
    if cluster.is_going() {
        return end(world, cluster);
    }
    let mut due: Vec<Write> = protect(CLUSTER, cluster, FINALIZER).into_iter().collect();
    let parts = [INFRASTRUCTURE, CONTROL_PLANE].map(|at| world.referred(cluster, at));
    for part in parts.into_iter().flatten() {
        due.extend(find(part.kind()).and_then(|kind| belongs(kind, part, cluster)));
    }
    for deployment in world.of_cluster(DEPLOYMENT, cluster) {
        due.extend(belongs(DEPLOYMENT, deployment, cluster));
    }
    due.extend(copy(world, cluster));
    due
}

/// What an object says of its endpoint, without what is empty.
fn stated(part: &Object) -> Option<Value> {
    let all = part.part("/spec/controlPlaneEndpoint");
    let is_said = |value: &Value| *value != json!("") && *value != json!(0);
    let said: Map<String, Value> = all
        .as_object()?
        .iter()
        .filter(|(_, value)| is_said(value))
        .map(|(member, value)| (member.clone(), value.clone()))
        .collect();
    (!said.is_empty()).then(|| said.into())
}

/// A plain owner reference and the label.
fn belongs(kind: &'static Kind, part: &Object, cluster: &Object) -> Option<Write> {
    let labels = [(CLUSTER_NAME_LABEL, cluster.name())];
    adopt(kind, part, owner(CLUSTER, cluster, false), &[], &labels)
}

/// What is copied, and how far the cluster is.
fn copy(world: &World, cluster: &Object) -> Vec<Write> {
    let infrastructure = world.referred(cluster, INFRASTRUCTURE);
    let control_plane = world.referred(cluster, CONTROL_PLANE);
    let says = |part: Option<&Object>, at: &str| part.is_some_and(|part| !part.is_going() && part.flag(at));
    let was = |at: &str| cluster.flag(at);
    // Once provisioned, for ever.
    let is_provisioned = was("/status/initialization/infrastructureProvisioned")
        || reference(cluster, INFRASTRUCTURE).is_none()
        || says(infrastructure, "/status/initialization/provisioned")
        // As the older contract says it.
        || says(infrastructure, "/status/ready");
    let is_initialized = was("/status/initialization/controlPlaneInitialized")
        || says(control_plane, "/status/initialization/controlPlaneInitialized");
    let (mut due, mut is_reachable) = (Vec::new(), endpoint(cluster).is_some());
    if !is_reachable {
        // What has a port and no host is copied, too, and completed later.
        let from_infrastructure = infrastructure.filter(|part| is_provisioned && stated(part).is_some());
        let from_control_plane = control_plane.filter(|part| is_initialized && stated(part).is_some());
        if let Some(stated) = from_infrastructure.or(from_control_plane).and_then(stated) {
            let copied = json!({ "spec": { "controlPlaneEndpoint": stated } });
            is_reachable = endpoint(&Object(copied.clone())).is_some();
            due.extend(change(CLUSTER, cluster, copied));
        }
    }
    let refers = [INFRASTRUCTURE, CONTROL_PLANE]
        .iter()
        .any(|at| reference(cluster, at).is_some());
    let phase = match (is_provisioned, is_reachable) {
        (true, true) => "Provisioned",
        _ if refers => "Provisioning",
        _ => "Pending",
    };
    let waits = "the control plane does not say yet that it is initialized";
    let is_available = is_provisioned && is_initialized && control_plane.is_none_or(|part| part.holds("Available"));
    let conditions = Conditions::of(cluster, world.now)
        .say("Paused", "False", "NotPaused", "")
        .mirror("InfrastructureReady", infrastructure, is_provisioned)
        .judge(
            "ControlPlaneInitialized",
            is_initialized,
            ("Initialized", "NotInitialized"),
            waits,
        )
        .judge("Available", is_available, ("Available", "NotAvailable"), waits);
    let domains = infrastructure.map_or(Value::Null, |part| part.part("/status/failureDomains"));
    let wanted = json!({
        "phase": phase, "conditions": conditions.done(), "failureDomains": domains,
        "observedGeneration": cluster.part("/metadata/generation"),
        "initialization": {
            "infrastructureProvisioned": is_provisioned,
            "controlPlaneInitialized": is_initialized,
        },
    });
    due.extend(status(CLUSTER, cluster, wanted));
    due
}

/// Workers, then the control plane, then the infrastructure: each waits for the one before.
fn end(world: &World, cluster: &Object) -> Vec<Write> {
    let says = status(CLUSTER, cluster, json!({ "phase": "Deleting" }));
    let mut due: Vec<Write> = says.into_iter().collect();
    let is_worker = |machine: &&Object| machine.label(CONTROL_PLANE_LABEL).is_none();
    let mut workers: Vec<(&'static Kind, &Object)> = Vec::new();
    for kind in [DEPLOYMENT, SET, MACHINE] {
        let all = world.of_cluster(kind, cluster);
        workers.extend(all.into_iter().filter(is_worker).map(|object| (kind, object)));
    }
    if !workers.is_empty() {
        due.extend(workers.into_iter().filter_map(|(kind, object)| delete(kind, object)));
        return due;
    }
    for at in [CONTROL_PLANE, INFRASTRUCTURE] {
        if let Some((part, kind)) = world
            .referred(cluster, at)
            .and_then(|part| Some((part, find(part.kind())?)))
        {
            due.extend(delete(kind, part));
            return due;
        }
        let left = world.of_cluster(MACHINE, cluster);
        if !left.is_empty() {
            due.extend(left.into_iter().filter_map(|machine| delete(MACHINE, machine)));
            return due;
        }
    }
    due.extend(release(CLUSTER, cluster, FINALIZER));
    due
}
