//! The infrastructure of hosts that are brought along: ready as soon as somebody owns it, even without a host in its
//! endpoint, and without a condition. It goes at once: machines of its own are not here.

use serde_json::json;

use crate::kinds::{BYO_CLUSTER, CLUSTER};
use crate::view::{Object, World};
use crate::write::{Write, change, release, status};

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
