//! The infrastructure: ready as soon as somebody owns it, even without a host in its endpoint, and without a condition. It
//! goes after the machines that are labelled with its name, as if every Cluster were called as its infrastructure is.

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::json;

use crate::kinds::{BYO_CLUSTER, BYO_MACHINE, CLUSTER};
use crate::view::{Object, World};
use crate::write::{Write, change, release, status};

const FINALIZER: &str = "byocluster.infrastructure.cluster.x-k8s.io";
/// The port of an API server where nobody names one.
const PORT: i64 = 6443;

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(BYO_CLUSTER).flat_map(|one| of(world, one)).collect()
}

fn of(world: &World, object: &Object) -> Vec<Write> {
    if object.is_going() {
        let is_its = |machine: &Object| {
            machine.namespace() == object.namespace() && machine.label(CLUSTER_NAME_LABEL) == Some(object.name())
        };
        if world.all(BYO_MACHINE).any(is_its) {
            return Vec::new();
        }
        return release(BYO_CLUSTER, object, FINALIZER).into_iter().collect();
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
    // The older contract says no more than that.
    let told = json!({ "ready": true });
    let all = [change(BYO_CLUSTER, object, stated), status(BYO_CLUSTER, object, told)];
    all.into_iter().flatten().collect()
}

/// The finalizers with ours.
fn protected(object: &Object) -> Vec<&str> {
    let mut all = object.finalizers();
    if !all.contains(&FINALIZER) {
        all.push(FINALIZER);
    }
    all
}
