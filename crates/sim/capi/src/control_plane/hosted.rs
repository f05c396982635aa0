//! A control plane without machines: its API server starts elsewhere as soon as the cluster has an endpoint.

use serde_json::json;

use super::secrets;
use crate::core::paused;
use crate::kinds::HOSTED_CONTROL_PLANE;
use crate::view::{Object, Snapshot, endpoint};
use crate::write::{Conditions, WorkloadChange, Write, add_finalizer, change, remove_finalizer, status};

const FINALIZER: &str = "hostedcontrolplane.controlplane.cluster.x-k8s.io";

pub(crate) fn reconcile(snapshot: &Snapshot, hosted: &Object) -> Vec<Write> {
    let Some(cluster) = snapshot.owning_cluster(hosted) else {
        return Vec::new();
    };
    if let Some(writes) = paused(snapshot, HOSTED_CONTROL_PLANE, hosted) {
        return writes;
    }
    let at = endpoint(cluster);
    if hosted.is_deleting() {
        let mut due: Vec<Write> = at
            .map(|at| Write::Workload(at, WorkloadChange::Stop))
            .into_iter()
            .collect();
        due.extend(remove_finalizer(HOSTED_CONTROL_PLANE, hosted, FINALIZER));
        return due;
    }
    let mut due = add_finalizer(HOSTED_CONTROL_PLANE, hosted, FINALIZER);
    let is_provisioned = cluster.flag("/status/initialization/infrastructureProvisioned");
    let Some(at) = at.filter(|_| is_provisioned) else {
        let why = "waiting for the cluster to have its infrastructure and an endpoint";
        due.extend(update_status(snapshot, hosted, Some(why)));
        return due;
    };
    let taken = json!({ "spec": { "controlPlaneEndpoint": cluster.part("/spec/controlPlaneEndpoint") } });
    due.extend(change(HOSTED_CONTROL_PLANE, hosted, taken));
    due.extend(secrets(snapshot, HOSTED_CONTROL_PLANE, hosted, cluster, &at));
    if snapshot.workloads.get(&at).is_some_and(|workload| workload.is_up) {
        due.extend(update_status(snapshot, hosted, None));
    } else {
        due.push(Write::Workload(at, WorkloadChange::Start));
    }
    due
}

fn update_status(snapshot: &Snapshot, hosted: &Object, waiting_for: Option<&str>) -> Option<Write> {
    let (is_up, why) = (waiting_for.is_none(), waiting_for.unwrap_or_default());
    let conditions = Conditions::of(hosted, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .set_bool("Ready", is_up, ("Ready", "NotReady"), why)
        .set_bool("Available", is_up, ("Available", "NotAvailable"), why);
    let new_status = json!({
        "initialization": { "controlPlaneInitialized": is_up }, "externalManagedControlPlane": true,
        "conditions": conditions.into_value(),
    });
    status(HOSTED_CONTROL_PLANE, hosted, new_status)
}
