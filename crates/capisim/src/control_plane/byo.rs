//! The infrastructure of hosts that are brought along: ready as soon as somebody owns it, even without a host in its
//! endpoint, and without a condition. It goes at once: machines of its own are not here.

use serde_json::json;

use crate::kinds::{BYO_CLUSTER, CLUSTER};
use crate::view::{Object, World};
use crate::write::{Write, change, protect, release, status};

const FINALIZER: &str = "byocluster.infrastructure.cluster.x-k8s.io";
/// The port of an API server where nobody names one.
const PORT: i64 = 6443;

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(BYO_CLUSTER).flat_map(of).collect()
}

fn of(object: &Object) -> Vec<Write> {
    if object.is_going() {
        return release(BYO_CLUSTER, object, FINALIZER).into_iter().collect();
    }
    if object.owner(CLUSTER.kind).is_none() {
        return Vec::new();
    }
    let port = object.number("/spec/controlPlaneEndpoint/port").unwrap_or(PORT);
    let stated = json!({ "spec": { "controlPlaneEndpoint": { "port": port } } });
    let told = json!({ "ready": true, "initialization": { "provisioned": true } });
    let protected = protect(BYO_CLUSTER, object, FINALIZER);
    let all = [
        protected,
        change(BYO_CLUSTER, object, stated),
        status(BYO_CLUSTER, object, told),
    ];
    all.into_iter().flatten().collect()
}
