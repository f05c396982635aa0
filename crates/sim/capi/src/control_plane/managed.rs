//! A control plane that a cloud runs: without machines, with an endpoint that nobody gave it.
//!
//! Providers of such control planes differ in when they say it, so `spec.says` is one of `Before` (before they are
//! initialized, as the contract wants it), `After`, and `Never`: then the Cluster is told, and nobody else.

use serde_json::json;

use super::secrets;
use crate::core::paused;
use crate::kinds::{CLUSTER, MANAGED_CONTROL_PLANE};
use crate::view::{Object, World, endpoint};
use crate::write::{Conditions, Deed, Write, change, protect, release, status};

const FINALIZER: &str = "managedcontrolplane.controlplane.cluster.x-k8s.io";
/// Clouds have names instead of addresses, and the port of the web.
const PORT: i64 = 443;

pub(super) fn writes(world: &World) -> Vec<Write> {
    world
        .all(MANAGED_CONTROL_PLANE)
        .flat_map(|one| of(world, one))
        .collect()
}

fn of(world: &World, plane: &Object) -> Vec<Write> {
    let owner = plane.owner(CLUSTER.kind);
    let Some(cluster) = owner.and_then(|name| world.get(CLUSTER, plane.namespace(), name)) else {
        return Vec::new();
    };
    if let Some(writes) = paused(world, MANAGED_CONTROL_PLANE, plane) {
        return writes;
    }
    let host = format!("{}.managed.example", plane.name());
    let at = format!("{host}:{PORT}");
    if plane.is_going() {
        let stopped = Write::Site(at, Deed::Stop);
        return std::iter::once(stopped)
            .chain(release(MANAGED_CONTROL_PLANE, plane, FINALIZER))
            .collect();
    }
    let mut due: Vec<Write> = protect(MANAGED_CONTROL_PLANE, plane, FINALIZER).into_iter().collect();
    if !world.sites.get(&at).is_some_and(|site| site.is_up) {
        due.push(Write::Site(at, Deed::Start));
        return due;
    }
    let said = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": PORT } } });
    let (ours, theirs) = (
        change(MANAGED_CONTROL_PLANE, plane, said.clone()),
        change(CLUSTER, cluster, said),
    );
    let is_initialized = plane.flag("/status/initialization/controlPlaneInitialized");
    match plane.text("/spec/says") {
        "After" if is_initialized => due.extend(ours),
        "Never" if is_initialized && endpoint(cluster).is_none() => due.extend(theirs),
        "Before" if ours.is_some() => {
            due.extend(ours);
            return due;
        }
        _ => {}
    }
    due.extend(secrets(world, MANAGED_CONTROL_PLANE, plane, cluster, &at));
    due.extend(tell(world, plane));
    due
}

fn tell(world: &World, plane: &Object) -> Option<Write> {
    let conditions = Conditions::of(plane, world.now)
        .say("Paused", "False", "NotPaused", "")
        .say("Ready", "True", "Ready", "")
        .say("Available", "True", "Available", "");
    let told = json!({
        "initialization": { "controlPlaneInitialized": true }, "externalManagedControlPlane": true,
        "conditions": conditions.done(),
    });
    status(MANAGED_CONTROL_PLANE, plane, told)
}
