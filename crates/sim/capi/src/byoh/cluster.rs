//! ByoCluster: ready as soon as it has an owner, even without a host in its endpoint, and without a condition. It is
//! deleted after the machines that are labelled with its name, as if the Cluster had the same name.

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::json;

use crate::kinds::{BYO_CLUSTER, BYO_MACHINE, CLUSTER};
use crate::view::{Object, Snapshot};
use crate::write::{Write, change, remove_finalizer, status};

const FINALIZER: &str = "byocluster.infrastructure.cluster.x-k8s.io";
/// Default port of an API server.
const PORT: i64 = 6443;

pub(crate) fn reconcile(snapshot: &Snapshot, object: &Object) -> Vec<Write> {
    if object.is_deleting() {
        let is_its = |machine: &Object| {
            machine.namespace() == object.namespace() && machine.label(CLUSTER_NAME_LABEL) == Some(object.name())
        };
        if snapshot.all(BYO_MACHINE).any(is_its) {
            return Vec::new();
        }
        return remove_finalizer(BYO_CLUSTER, object, FINALIZER).into_iter().collect();
    }
    if object.owner(CLUSTER.kind).is_none() {
        return Vec::new();
    }
    let port = object
        .number("/spec/controlPlaneEndpoint/port")
        .filter(|port| *port != 0);
    let stated = json!({
        "metadata": { "finalizers": protected(object) },
        "spec": { "controlPlaneEndpoint": { "port": port.unwrap_or(PORT) } },
    });
    // The v1beta1 contract has no further fields.
    let new_status = json!({ "ready": true });
    let all = [
        change(BYO_CLUSTER, object, stated),
        status(BYO_CLUSTER, object, new_status),
    ];
    all.into_iter().flatten().collect()
}

/// The finalizers, with the one of this provider.
fn protected(object: &Object) -> Vec<&str> {
    let mut all = object.finalizers();
    if !all.contains(&FINALIZER) {
        all.push(FINALIZER);
    }
    all
}
