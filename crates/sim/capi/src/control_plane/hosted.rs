//! A control plane without machines: its API server runs elsewhere, as soon as the cluster has an endpoint.

use serde_json::json;

use super::secrets;
use crate::core::paused;
use crate::kinds::{CLUSTER, HOSTED_CONTROL_PLANE};
use crate::view::{Object, World, endpoint};
use crate::write::{Conditions, Deed, Write, change, protect, release, status};

const FINALIZER: &str = "hostedcontrolplane.controlplane.cluster.x-k8s.io";

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(HOSTED_CONTROL_PLANE).flat_map(|one| of(world, one)).collect()
}

fn of(world: &World, hosted: &Object) -> Vec<Write> {
    let Some(cluster) = hosted
        .owner(CLUSTER.kind)
        .and_then(|name| world.get(CLUSTER, hosted.namespace(), name))
    else {
        return Vec::new();
    };
    if let Some(writes) = paused(world, HOSTED_CONTROL_PLANE, hosted) {
        return writes;
    }
    let at = endpoint(cluster);
    if hosted.is_going() {
        let mut due: Vec<Write> = at.map(|at| Write::Site(at, Deed::Stop)).into_iter().collect();
        due.extend(release(HOSTED_CONTROL_PLANE, hosted, FINALIZER));
        return due;
    }
    let mut due: Vec<Write> = protect(HOSTED_CONTROL_PLANE, hosted, FINALIZER).into_iter().collect();
    let is_provisioned = cluster.flag("/status/initialization/infrastructureProvisioned");
    let Some(at) = at.filter(|_| is_provisioned) else {
        let why = "waiting for the cluster to have its infrastructure and an endpoint";
        due.extend(tell(world, hosted, Some(why)));
        return due;
    };
    let taken = json!({ "spec": { "controlPlaneEndpoint": cluster.part("/spec/controlPlaneEndpoint") } });
    due.extend(change(HOSTED_CONTROL_PLANE, hosted, taken));
    due.extend(secrets(world, HOSTED_CONTROL_PLANE, hosted, cluster, &at));
    if world.sites.get(&at).is_some_and(|site| site.is_up) {
        due.extend(tell(world, hosted, None));
    } else {
        due.push(Write::Site(at, Deed::Start));
    }
    due
}

fn tell(world: &World, hosted: &Object, waits: Option<&str>) -> Option<Write> {
    let (is_up, why) = (waits.is_none(), waits.unwrap_or_default());
    let conditions = Conditions::of(hosted, world.now)
        .say("Paused", "False", "NotPaused", "")
        .judge("Ready", is_up, ("Ready", "NotReady"), why)
        .judge("Available", is_up, ("Available", "NotAvailable"), why);
    let told = json!({
        "initialization": { "controlPlaneInitialized": is_up }, "externalManagedControlPlane": true,
        "conditions": conditions.done(),
    });
    status(HOSTED_CONTROL_PLANE, hosted, told)
}
