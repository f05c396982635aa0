//! What the provider does in one pass: the writes of the real one, in its order.

use std::time::Duration;

use serde_json::{Value, json};

use crate::control_plane::secrets;
use crate::kinds::{CLUSTER, KAMAJI_CONTROL_PLANE, METAL3_CLUSTER, TENANT};
use crate::view::{Object, World, endpoint};
use crate::write::{Conditions, Write, change, owner, status};

/// Between looks at what is only waited for.
const PAUSE: Duration = Duration::from_secs(1);

/// How a pass ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is nothing to wait for but a change.
    Rest,
    /// Another look is due after this time.
    Look(Duration),
    /// It failed, and pauses the longer the more often.
    Fail,
}

/// The writes of one pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pass {
    pub(super) writes: Vec<Write>,
    pub(super) outcome: Outcome,
}

/// One pass over a control plane.
pub(super) fn pass(world: &World, plane: &Object) -> Pass {
    let cluster = plane
        .owner(CLUSTER.kind)
        .and_then(|name| world.get(CLUSTER, plane.namespace(), name));
    let Some(cluster) = cluster.filter(|_| !plane.is_going()) else {
        return Pass {
            writes: Vec::new(),
            outcome: Outcome::Rest,
        };
    };
    let said = Conditions::of(plane, world.now).say("TenantControlPlaneCreated", "True", "Succeeded", "");
    let Some(tenant) = world.get(TENANT, plane.namespace(), plane.name()) else {
        return Pass {
            writes: vec![Write::Create(TENANT, new_tenant(cluster, plane))],
            outcome: Outcome::Look(PAUSE),
        };
    };
    let Some((host, port)) = address(tenant) else {
        let why = "the tenant has no address yet";
        let said = said.say("TenantControlPlaneAddressReady", "False", "Pending", why);
        return Pass {
            writes: tell(plane, said).into_iter().collect(),
            outcome: Outcome::Look(PAUSE),
        };
    };
    let published = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } });
    let mut writes: Vec<Write> = change(KAMAJI_CONTROL_PLANE, plane, published).into_iter().collect();
    let said = said.say("TenantControlPlaneAddressReady", "True", "Succeeded", "").say(
        "ControlPlaneEndpointPatched",
        "True",
        "Succeeded",
        "",
    );
    if let Err(why) = check(world, cluster, host, port) {
        writes.extend(tell(
            plane,
            said.say("InfrastructureClusterPatched", "False", "Pending", why),
        ));
        return Pass {
            writes,
            outcome: Outcome::Fail,
        };
    }
    let said = said.say("InfrastructureClusterPatched", "True", "Succeeded", "");
    let at = endpoint(cluster).filter(|_| cluster.flag("/status/initialization/infrastructureProvisioned"));
    match at.filter(|_| tenant.flag("/status/ready")) {
        None => {
            writes.extend(tell(plane, said));
            Pass {
                writes,
                outcome: Outcome::Look(PAUSE),
            }
        }
        Some(at) => {
            writes.extend(initialize(world, cluster, plane, (said, &at)));
            Pass {
                writes,
                outcome: Outcome::Rest,
            }
        }
    }
}

fn new_tenant(cluster: &Object, plane: &Object) -> Value {
    let port = cluster.number("/spec/clusterNetwork/apiServerPort").unwrap_or(6443);
    json!({
        "apiVersion": TENANT.api_version(), "kind": TENANT.kind,
        "metadata": {
            "name": plane.name(), "namespace": plane.namespace(),
            "ownerReferences": [owner(KAMAJI_CONTROL_PLANE, plane, true)],
        },
        "spec": { "networkProfile": { "address": plane.part("/spec/network/serviceAddress"), "port": port } },
    })
}

fn address(tenant: &Object) -> Option<(&str, u16)> {
    let (host, port) = tenant.text("/status/controlPlaneEndpoint").rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

/// Whether the infrastructure of the Cluster says the same. It is looked at, and never written.
fn check(world: &World, cluster: &Object, host: &str, port: u16) -> Result<(), &'static str> {
    let Some(infrastructure) = world.referred(cluster, "/spec/infrastructureRef") else {
        return Err("the infrastructure of the Cluster is not there, or of no kind that is known");
    };
    if infrastructure.kind() != METAL3_CLUSTER.kind {
        return Err("the infrastructure of the Cluster is of a kind that is not supported");
    }
    let stated = infrastructure.text("/spec/controlPlaneEndpoint/host");
    let its_port = infrastructure.number("/spec/controlPlaneEndpoint/port");
    match (stated, its_port) {
        ("", _) => Err("the Metal3Cluster has no endpoint"),
        (other, _) if other != host => Err("the Metal3Cluster has another host"),
        (_, other) if other != Some(i64::from(port)) => Err("the Metal3Cluster has another port"),
        _ => Ok(()),
    }
}

fn tell(plane: &Object, said: Conditions) -> Option<Write> {
    let is_ready = plane.flag("/status/ready");
    let told = json!({ "externalManagedControlPlane": true, "ready": is_ready, "conditions": said.done() });
    status(KAMAJI_CONTROL_PLANE, plane, told)
}

/// The control plane is there: five writes, one after the other.
fn initialize(world: &World, cluster: &Object, plane: &Object, (said, at): (Conditions, &str)) -> Vec<Write> {
    let replicas = plane.number("/spec/replicas").unwrap_or(1);
    let counted = json!({
        "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "upToDateReplicas": replicas,
        "selector": format!("kamaji.clastix.io/name={}", plane.name()),
        "version": format!("v{}", plane.text("/spec/version").trim_start_matches('v')),
    });
    let done = said
        .say("KamajiControlPlaneIsInitialized", "True", "Succeeded", "")
        .say("KubeadmResourcesCreated", "True", "Succeeded", "")
        .say("KamajiControlPlaneIsReady", "True", "Succeeded", "")
        .say("Available", "True", "Available", "");
    let of_status = |told: Value| status(KAMAJI_CONTROL_PLANE, plane, told);
    let initialized =
        json!({ "initialization": { "controlPlaneInitialized": true }, "externalManagedControlPlane": true });
    let mut due: Vec<Write> = of_status(initialized).into_iter().collect();
    due.extend(of_status(counted));
    due.extend(secrets(world, KAMAJI_CONTROL_PLANE, plane, cluster, at));
    due.extend(of_status(json!({ "ready": true })));
    due.extend(of_status(json!({ "conditions": done.done() })));
    due
}
