//! Clusters: ownership, fields copied from infrastructure and control plane, and the order of deletion.

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use serde_json::{Map, Value, json};

use super::paused;
use crate::kinds::{CLUSTER, DEPLOYMENT, Kind, MACHINE, SET, find};
use crate::view::{Object, Snapshot, endpoint, reference};
use crate::write::{Conditions, Write, add_finalizer, adopt, change, delete, owner, remove_finalizer, status};

const FINALIZER: &str = "cluster.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "/spec/infrastructureRef";
const CONTROL_PLANE: &str = "/spec/controlPlaneRef";

pub(crate) fn reconcile(snapshot: &Snapshot, cluster: &Object) -> Vec<Write> {
    if let Some(writes) = paused(snapshot, CLUSTER, cluster) {
        return writes;
    }
    if cluster.is_deleting() {
        return reconcile_delete(snapshot, cluster);
    }
    let mut due = add_finalizer(CLUSTER, cluster, FINALIZER);
    let parts = [INFRASTRUCTURE, CONTROL_PLANE].map(|at| snapshot.referred(cluster, at));
    for part in parts.into_iter().flatten() {
        due.extend(find(part.kind()).and_then(|kind| belongs(kind, part, cluster)));
    }
    for deployment in snapshot.of_cluster(DEPLOYMENT, cluster) {
        due.extend(belongs(DEPLOYMENT, deployment, cluster));
    }
    due.extend(copy(snapshot, cluster));
    due
}

/// The endpoint of an object without empty fields.
fn stated(part: &Object) -> Option<Value> {
    let all = part.part("/spec/controlPlaneEndpoint");
    let is_said = |value: &Value| *value != json!("") && *value != json!(0);
    let set: Map<String, Value> = all
        .as_object()?
        .iter()
        .filter(|(_, value)| is_said(value))
        .map(|(member, value)| (member.clone(), value.clone()))
        .collect();
    (!set.is_empty()).then(|| set.into())
}

/// Sets an owner reference and the cluster label.
fn belongs(kind: &'static Kind, part: &Object, cluster: &Object) -> Option<Write> {
    let labels = [(CLUSTER_NAME_LABEL, cluster.name())];
    adopt(kind, part, owner(CLUSTER, cluster, false), &[], &labels)
}

/// Copies fields from the referenced objects and updates the status.
fn copy(snapshot: &Snapshot, cluster: &Object) -> Vec<Write> {
    let infrastructure = snapshot.referred(cluster, INFRASTRUCTURE);
    let control_plane = snapshot.referred(cluster, CONTROL_PLANE);
    let has_flag = |part: Option<&Object>, at: &str| part.is_some_and(|part| !part.is_deleting() && part.flag(at));
    let was = |at: &str| cluster.flag(at);
    // A provisioned cluster stays provisioned.
    let is_provisioned = was("/status/initialization/infrastructureProvisioned")
        || reference(cluster, INFRASTRUCTURE).is_none()
        || has_flag(infrastructure, "/status/initialization/provisioned")
        // The v1beta1 contract.
        || has_flag(infrastructure, "/status/ready");
    let is_initialized = was("/status/initialization/controlPlaneInitialized")
        || has_flag(control_plane, "/status/initialization/controlPlaneInitialized");
    let (mut due, mut is_reachable) = (Vec::new(), endpoint(cluster).is_some());
    if !is_reachable {
        // A port without a host is copied too, and completed later.
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
    let why = "the control plane is not initialized";
    let is_available = is_provisioned && is_initialized && control_plane.is_none_or(|part| part.is_true("Available"));
    let conditions = Conditions::of(cluster, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .mirror("InfrastructureReady", infrastructure, is_provisioned)
        .set_bool(
            "ControlPlaneInitialized",
            is_initialized,
            ("Initialized", "NotInitialized"),
            why,
        )
        .set_bool("Available", is_available, ("Available", "NotAvailable"), why);
    let domains = infrastructure.map_or(Value::Null, |part| part.part("/status/failureDomains"));
    let wanted = json!({
        "phase": phase, "conditions": conditions.into_value(), "failureDomains": domains,
        "observedGeneration": cluster.part("/metadata/generation"),
        "initialization": {
            "infrastructureProvisioned": is_provisioned,
            "controlPlaneInitialized": is_initialized,
        },
    });
    due.extend(status(CLUSTER, cluster, wanted));
    due
}

/// Deletes workers, then the control plane, then the infrastructure; each step waits for the previous one.
fn reconcile_delete(snapshot: &Snapshot, cluster: &Object) -> Vec<Write> {
    let phase = status(CLUSTER, cluster, json!({ "phase": "Deleting" }));
    let mut due: Vec<Write> = phase.into_iter().collect();
    let is_worker = |machine: &&Object| machine.label(CONTROL_PLANE_LABEL).is_none();
    let mut workers: Vec<(&'static Kind, &Object)> = Vec::new();
    for kind in [DEPLOYMENT, SET, MACHINE] {
        let all = snapshot.of_cluster(kind, cluster);
        workers.extend(all.into_iter().filter(is_worker).map(|object| (kind, object)));
    }
    if !workers.is_empty() {
        due.extend(workers.into_iter().filter_map(|(kind, object)| delete(kind, object)));
        return due;
    }
    for at in [CONTROL_PLANE, INFRASTRUCTURE] {
        if let Some((part, kind)) = snapshot
            .referred(cluster, at)
            .and_then(|part| Some((part, find(part.kind())?)))
        {
            due.extend(delete(kind, part));
            return due;
        }
        let left = snapshot.of_cluster(MACHINE, cluster);
        if !left.is_empty() {
            due.extend(left.into_iter().filter_map(|machine| delete(MACHINE, machine)));
            return due;
        }
    }
    due.extend(remove_finalizer(CLUSTER, cluster, FINALIZER));
    due
}
