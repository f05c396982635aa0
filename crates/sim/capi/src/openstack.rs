//! The infrastructure of a cloud with machines, which asks for a load balancer before it is ready: its endpoint is not
//! known when it is made. It says so by conditions, and writes the endpoint before it says that it is provisioned.

use serde_json::json;

use crate::core::paused;
use crate::kinds::{CLUSTER, OPENSTACK_CLUSTER};
use crate::view::{Object, World, endpoint};
use crate::write::{Conditions, Write, change, protect, release, status};

const FINALIZER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";

pub(crate) fn writes(world: &World) -> Vec<Write> {
    world
        .all(OPENSTACK_CLUSTER)
        .flat_map(|object| of(world, object))
        .collect()
}

fn of(world: &World, object: &Object) -> Vec<Write> {
    if object.owner(CLUSTER.kind).is_none() {
        return Vec::new();
    }
    if let Some(writes) = paused(world, OPENSTACK_CLUSTER, object) {
        return writes;
    }
    if object.is_going() {
        return release(OPENSTACK_CLUSTER, object, FINALIZER).into_iter().collect();
    }
    let mut due: Vec<Write> = protect(OPENSTACK_CLUSTER, object, FINALIZER).into_iter().collect();
    let conditions = Conditions::of(object, world.now).say("Paused", "False", "NotPaused", "");
    if !object.holds("NetworkReady") {
        let told = conditions.say("NetworkReady", "True", "NetworkReady", "").say(
            "Ready",
            "False",
            "LoadBalancerPending",
            "the load balancer has no address",
        );
        due.extend(status(OPENSTACK_CLUSTER, object, json!({ "conditions": told.done() })));
        return due;
    }
    if endpoint(object).is_none() {
        let balanced = json!({ "spec": { "controlPlaneEndpoint": { "host": address(object), "port": 6443 } } });
        due.extend(change(OPENSTACK_CLUSTER, object, balanced));
        return due;
    }
    let told = conditions.say("Ready", "True", "Ready", "");
    let told = json!({ "initialization": { "provisioned": true }, "conditions": told.done() });
    due.extend(status(OPENSTACK_CLUSTER, object, told));
    due
}

/// What the load balancer gives: another for each name.
fn address(object: &Object) -> String {
    let sum: u32 = object.name().bytes().map(u32::from).sum();
    format!(
        "203.0.113.{}",
        sum.checked_rem(200).unwrap_or_default().saturating_add(20)
    )
}
