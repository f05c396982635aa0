//! A control plane that a cloud runs: without machines, with an endpoint that the cloud assigns.
//!
//! Providers differ in when they publish the endpoint, so `spec.says` is one of `Before` (before initialization, as the
//! contract requires), `After`, and `Never`: then only the Cluster gets it. `spec.lacks` names the objects for `kubeadm join` that the
//! cloud does not provide, or `all`.

use serde_json::{Value, json};

use super::{requisites, secrets};
use crate::core::paused;
use crate::kinds::{CLUSTER, MANAGED_CONTROL_PLANE};
use crate::view::{Object, Snapshot, endpoint};
use crate::write::{Conditions, WorkloadChange, Write, add_finalizer, change, remove_finalizer, status};

const FINALIZER: &str = "managedcontrolplane.controlplane.cluster.x-k8s.io";
/// Clouds assign host names and the HTTPS port.
const PORT: i64 = 443;

pub(crate) fn reconcile(snapshot: &Snapshot, plane: &Object) -> Vec<Write> {
    let Some(cluster) = snapshot.owning_cluster(plane) else {
        return Vec::new();
    };
    if let Some(writes) = paused(snapshot, MANAGED_CONTROL_PLANE, plane) {
        return writes;
    }
    let host = format!("{}.managed.example", plane.name());
    let at = format!("{host}:{PORT}");
    if plane.is_deleting() {
        let stopped = Write::Workload(at, WorkloadChange::Stop);
        return std::iter::once(stopped)
            .chain(remove_finalizer(MANAGED_CONTROL_PLANE, plane, FINALIZER))
            .collect();
    }
    let mut due = add_finalizer(MANAGED_CONTROL_PLANE, plane, FINALIZER);
    if !snapshot.workloads.get(&at).is_some_and(|workload| workload.is_up) {
        due.push(Write::Workload(at, WorkloadChange::Start));
        return due;
    }
    let assigned = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": PORT } } });
    let (on_plane, on_cluster) = (
        change(MANAGED_CONTROL_PLANE, plane, assigned.clone()),
        change(CLUSTER, cluster, assigned),
    );
    let is_initialized = plane.flag("/status/initialization/controlPlaneInitialized");
    match plane.text("/spec/says") {
        "After" if is_initialized => due.extend(on_plane),
        "Never" if is_initialized && endpoint(cluster).is_none() => due.extend(on_cluster),
        "Before" if on_plane.is_some() => {
            due.extend(on_plane);
            return due;
        }
        _ => {}
    }
    due.extend(secrets(snapshot, MANAGED_CONTROL_PLANE, plane, cluster, &at));
    let lacks = plane.part("/spec/lacks");
    let lacks = lacks.as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = lacks.iter().filter_map(Value::as_str).collect();
    let lacks = json!(lacks);
    if plane.at("/status/lacks") != Some(&lacks) {
        due.push(Write::Workload(at, requisites::except(&names)));
    }
    due.extend(update_status(snapshot, plane, &lacks));
    due
}

fn update_status(snapshot: &Snapshot, plane: &Object, lacks: &Value) -> Option<Write> {
    let conditions = Conditions::of(plane, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .set("Ready", "True", "Ready", "")
        .set("Available", "True", "Available", "");
    let new_status = json!({
        "initialization": { "controlPlaneInitialized": true }, "externalManagedControlPlane": true,
        "lacks": lacks,
        "conditions": conditions.into_value(),
    });
    status(MANAGED_CONTROL_PLANE, plane, new_status)
}
