//! Infrastructure of a cloud with machines that needs a load balancer first: its endpoint is unknown at creation.
//! Conditions report the progress; the endpoint is written before `provisioned`.

use serde_json::json;

use crate::core::paused;
use crate::kinds::{CLUSTER, OPENSTACK_CLUSTER};
use crate::view::{Object, Snapshot, endpoint};
use crate::write::{Conditions, Write, add_finalizer, change, remove_finalizer, status};

const FINALIZER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";

pub(crate) fn reconcile(snapshot: &Snapshot, object: &Object) -> Vec<Write> {
    if object.owner(CLUSTER.kind).is_none() {
        return Vec::new();
    }
    if let Some(writes) = paused(snapshot, OPENSTACK_CLUSTER, object) {
        return writes;
    }
    if object.is_deleting() {
        return remove_finalizer(OPENSTACK_CLUSTER, object, FINALIZER)
            .into_iter()
            .collect();
    }
    let mut due = add_finalizer(OPENSTACK_CLUSTER, object, FINALIZER);
    let conditions = Conditions::of(object, snapshot.now).set("Paused", "False", "NotPaused", "");
    if !object.is_true("NetworkReady") {
        let conditions = conditions.set("NetworkReady", "True", "NetworkReady", "").set(
            "Ready",
            "False",
            "LoadBalancerPending",
            "the load balancer has no address",
        );
        due.extend(status(
            OPENSTACK_CLUSTER,
            object,
            json!({ "conditions": conditions.into_value() }),
        ));
        return due;
    }
    if endpoint(object).is_none() {
        let wanted = json!({ "spec": { "controlPlaneEndpoint": { "host": address(object), "port": 6443 } } });
        due.extend(change(OPENSTACK_CLUSTER, object, wanted));
        return due;
    }
    let conditions = conditions.set("Ready", "True", "Ready", "");
    let new_status = json!({ "initialization": { "provisioned": true }, "conditions": conditions.into_value() });
    due.extend(status(OPENSTACK_CLUSTER, object, new_status));
    due
}

/// The address of the load balancer, different for each cluster name.
fn address(object: &Object) -> String {
    let sum: u32 = object.name().bytes().map(u32::from).sum();
    format!(
        "203.0.113.{}",
        sum.checked_rem(200).unwrap_or_default().saturating_add(20)
    )
}
