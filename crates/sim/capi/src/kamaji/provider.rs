//! What the provider does in one pass: the writes of the real one, in its order.

use std::time::Duration;

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use serde_json::{Value, json};

use super::tenant;
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

/// Whether changes of it wake the provider: those of an annotated one are not even looked at.
pub(super) fn is_heard(plane: &Object) -> bool {
    plane.annotation(PAUSED_ANNOTATION).is_none()
}

/// One pass over a control plane.
pub(super) fn pass(world: &World, plane: &Object) -> Pass {
    let cluster = plane
        .owner(CLUSTER.kind)
        .and_then(|name| world.get(CLUSTER, plane.namespace(), name));
    let Some(cluster) = cluster.filter(|_| !plane.is_going() && is_heard(plane)) else {
        return ends(Vec::new(), Outcome::Rest);
    };
    let said = Conditions::of(plane, world.now);
    if cluster.flag("/spec/paused") {
        let said = said.say("Paused", "True", "Paused", "");
        let told = status(KAMAJI_CONTROL_PLANE, plane, json!({ "conditions": said.done() }));
        return ends(told.into_iter().collect(), Outcome::Rest);
    }
    let said = said
        .without("Paused")
        .say("TenantControlPlaneCreated", "True", "Succeeded", "");
    let Some(tenant) = world.get(TENANT, plane.namespace(), plane.name()) else {
        let made = Write::Create(TENANT, new_tenant(cluster, plane));
        return ends(vec![made], Outcome::Look(PAUSE));
    };
    let scaled = json!({ "spec": { "controlPlane": { "deployment": { "replicas": wanted(plane) } } } });
    let scaled = change(TENANT, tenant, scaled);
    let mut pass = go_on(world, (cluster, plane, tenant), said);
    pass.writes.splice(0..0, scaled);
    pass
}

const fn ends(writes: Vec<Write>, outcome: Outcome) -> Pass {
    Pass { writes, outcome }
}

fn wanted(plane: &Object) -> i64 {
    plane.number("/spec/replicas").unwrap_or(1)
}

/// The pass with a tenant that is as it was asked for.
fn go_on(world: &World, (cluster, plane, tenant): (&Object, &Object, &Object), said: Conditions) -> Pass {
    let address = tenant.text("/status/controlPlaneEndpoint");
    if address.is_empty() {
        let why = "the tenant has no address yet";
        let said = said.say("TenantControlPlaneAddressReady", "False", "Pending", why);
        return ends(tell(plane, said).into_iter().collect(), Outcome::Look(PAUSE));
    }
    let said = said.say("TenantControlPlaneAddressReady", "True", "Succeeded", "");
    let Some((host, port)) = host_and_port(address) else {
        let why = "the port is none that this provider reads";
        let said = said.say("ControlPlaneEndpointPatched", "False", "Pending", why);
        return ends(tell(plane, said).into_iter().collect(), Outcome::Fail);
    };
    let published = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } });
    let mut writes: Vec<Write> = change(KAMAJI_CONTROL_PLANE, plane, published).into_iter().collect();
    let said = said.say("ControlPlaneEndpointPatched", "True", "Succeeded", "");
    if let Err(why) = check(world, cluster, host, port) {
        let said = said.say("InfrastructureClusterPatched", "False", "Pending", why);
        writes.extend(tell(plane, said));
        return ends(writes, Outcome::Fail);
    }
    let said = said.say("InfrastructureClusterPatched", "True", "Succeeded", "");
    let at = endpoint(cluster).filter(|_| cluster.flag("/status/initialization/infrastructureProvisioned"));
    let was_initialized = plane.flag("/status/initialization/controlPlaneInitialized");
    match at {
        Some(_) if tenant::is_ready(tenant) => {
            let counted = tenant::replicas(tenant);
            // Its own address is in the kubeconfig, whatever the Cluster says.
            writes.extend(initialize(world, (cluster, plane), (said, address), counted));
            ends(writes, Outcome::Rest)
        }
        Some(_) if was_initialized => {
            writes.extend(falter(plane, said));
            ends(writes, Outcome::Look(PAUSE))
        }
        _ => {
            writes.extend(tell(plane, said));
            ends(writes, Outcome::Look(PAUSE))
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
        "spec": {
            "networkProfile": { "address": plane.part("/spec/network/serviceAddress"), "port": port },
            "controlPlane": {
                "deployment": { "replicas": wanted(plane) },
                "service": { "additionalMetadata": { "annotations": plane.part("/spec/network/serviceAnnotations") } },
            },
        },
    })
}

/// Read as the real one reads them: the port into sixteen bits of which one is a sign.
fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host, u16::try_from(port.parse::<i16>().ok()?).ok()?))
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
    let told = json!({
        "externalManagedControlPlane": true, "ready": is_ready, "version": plane.text("/status/version"),
        "conditions": said.done(),
    });
    status(KAMAJI_CONTROL_PLANE, plane, told)
}

/// The control plane was there, and is not for a moment.
fn falter(plane: &Object, said: Conditions) -> Vec<Write> {
    let why = "the tenant is not ready";
    let said =
        said.say("KamajiControlPlaneIsReady", "False", "Failed", why)
            .say("Available", "False", "NotAvailable", "");
    [json!({ "ready": false }), json!({ "conditions": said.done() })]
        .into_iter()
        .filter_map(|told| status(KAMAJI_CONTROL_PLANE, plane, told))
        .collect()
}

/// The control plane is there: five writes, one after the other.
fn initialize(
    world: &World,
    (cluster, plane): (&Object, &Object),
    (said, at): (Conditions, &str),
    replicas: i64,
) -> Vec<Write> {
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
