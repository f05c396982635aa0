//! One reconcile of the provider: the writes of the real one, in its order.

use std::time::Duration;

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use serde_json::{Value, json};

use super::tenant;
use crate::control_plane::secrets;
use crate::kinds::{KAMAJI_CONTROL_PLANE, METAL3_CLUSTER, TENANT};
use crate::view::{Object, Snapshot, endpoint};
use crate::write::{Conditions, Write, change, owner, status};

/// Requeue delay while waiting.
const PAUSE: Duration = Duration::from_secs(1);

/// Result of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Wait for a change.
    Done,
    /// Requeue after this time.
    RequeueAfter(Duration),
    /// Failed: requeue with backoff.
    Failed,
}

/// Writes and result of one reconcile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    pub(super) outcome: Outcome,
}

/// Whether changes of it trigger a reconcile: an annotated object is ignored.
pub(super) fn is_watched(plane: &Object) -> bool {
    plane.annotation(PAUSED_ANNOTATION).is_none()
}

/// Plans one reconcile of a control plane.
pub(super) fn plan(snapshot: &Snapshot, plane: &Object) -> Plan {
    let cluster = snapshot.owning_cluster(plane);
    let Some(cluster) = cluster.filter(|_| !plane.is_deleting() && is_watched(plane)) else {
        return finish(Vec::new(), Outcome::Done);
    };
    let conditions = Conditions::of(plane, snapshot.now);
    if cluster.flag("/spec/paused") {
        let conditions = conditions.set("Paused", "True", "Paused", "");
        let write = status(
            KAMAJI_CONTROL_PLANE,
            plane,
            json!({ "conditions": conditions.into_value() }),
        );
        return finish(write.into_iter().collect(), Outcome::Done);
    }
    let conditions = conditions
        .without("Paused")
        .set("TenantControlPlaneCreated", "True", "Succeeded", "");
    let Some(tenant) = snapshot.get(TENANT, plane.namespace(), plane.name()) else {
        let made = Write::Create(TENANT, new_tenant(cluster, plane));
        return finish(vec![made], Outcome::RequeueAfter(PAUSE));
    };
    let scaled = json!({ "spec": { "controlPlane": { "deployment": { "replicas": wanted(plane) } } } });
    let scaled = change(TENANT, tenant, scaled);
    let mut plan = reconcile_tenant(snapshot, (cluster, plane, tenant), conditions);
    plan.writes.splice(0..0, scaled);
    plan
}

const fn finish(writes: Vec<Write>, outcome: Outcome) -> Plan {
    Plan { writes, outcome }
}

fn wanted(plane: &Object) -> i64 {
    plane.number("/spec/replicas").unwrap_or(1)
}

/// Continues with a tenant that has the requested replicas.
fn reconcile_tenant(
    snapshot: &Snapshot,
    (cluster, plane, tenant): (&Object, &Object, &Object),
    conditions: Conditions,
) -> Plan {
    let address = tenant.text("/status/controlPlaneEndpoint");
    if address.is_empty() {
        let why = "the tenant has no address yet";
        let conditions = conditions.set("TenantControlPlaneAddressReady", "False", "Pending", why);
        return finish(
            update_status(plane, conditions).into_iter().collect(),
            Outcome::RequeueAfter(PAUSE),
        );
    }
    let conditions = conditions.set("TenantControlPlaneAddressReady", "True", "Succeeded", "");
    let Some((host, port)) = host_and_port(address) else {
        let why = "the port is none that this provider reads";
        let conditions = conditions.set("ControlPlaneEndpointPatched", "False", "Pending", why);
        return finish(update_status(plane, conditions).into_iter().collect(), Outcome::Failed);
    };
    let published = json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } });
    let mut writes: Vec<Write> = change(KAMAJI_CONTROL_PLANE, plane, published).into_iter().collect();
    let conditions = conditions.set("ControlPlaneEndpointPatched", "True", "Succeeded", "");
    if let Err(why) = check(snapshot, cluster, host, port) {
        let conditions = conditions.set("InfrastructureClusterPatched", "False", "Pending", why);
        writes.extend(update_status(plane, conditions));
        return finish(writes, Outcome::Failed);
    }
    let conditions = conditions.set("InfrastructureClusterPatched", "True", "Succeeded", "");
    let at = endpoint(cluster).filter(|_| cluster.flag("/status/initialization/infrastructureProvisioned"));
    let was_initialized = plane.flag("/status/initialization/controlPlaneInitialized");
    match at {
        Some(_) if tenant::is_ready(tenant) => {
            let counted = tenant::replicas(tenant);
            // The kubeconfig has the address of the tenant, whatever the Cluster has.
            writes.extend(initialize(snapshot, (cluster, plane), (conditions, address), counted));
            finish(writes, Outcome::Done)
        }
        Some(_) if was_initialized => {
            writes.extend(mark_not_ready(plane, conditions));
            finish(writes, Outcome::RequeueAfter(PAUSE))
        }
        _ => {
            writes.extend(update_status(plane, conditions));
            finish(writes, Outcome::RequeueAfter(PAUSE))
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

/// The real provider parses the port as a signed 16-bit integer.
fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host, u16::try_from(port.parse::<i16>().ok()?).ok()?))
}

/// Whether the infrastructure of the Cluster has the same endpoint. It is read, never written.
fn check(snapshot: &Snapshot, cluster: &Object, host: &str, port: u16) -> Result<(), &'static str> {
    let Some(infrastructure) = snapshot.referred(cluster, "/spec/infrastructureRef") else {
        return Err("the infrastructure of the Cluster does not exist, or its kind is unknown");
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

fn update_status(plane: &Object, conditions: Conditions) -> Option<Write> {
    let is_ready = plane.flag("/status/ready");
    let new_status = json!({
        "externalManagedControlPlane": true, "ready": is_ready, "version": plane.text("/status/version"),
        "conditions": conditions.into_value(),
    });
    status(KAMAJI_CONTROL_PLANE, plane, new_status)
}

/// The control plane is temporarily not ready.
fn mark_not_ready(plane: &Object, conditions: Conditions) -> Vec<Write> {
    let why = "the tenant is not ready";
    let conditions = conditions.set("KamajiControlPlaneIsReady", "False", "Failed", why).set(
        "Available",
        "False",
        "NotAvailable",
        "",
    );
    [
        json!({ "ready": false }),
        json!({ "conditions": conditions.into_value() }),
    ]
    .into_iter()
    .filter_map(|new_status| status(KAMAJI_CONTROL_PLANE, plane, new_status))
    .collect()
}

/// The control plane is ready: five writes in sequence.
fn initialize(
    snapshot: &Snapshot,
    (cluster, plane): (&Object, &Object),
    (conditions, at): (Conditions, &str),
    replicas: i64,
) -> Vec<Write> {
    let counted = json!({
        "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "upToDateReplicas": replicas,
        "selector": format!("kamaji.clastix.io/name={}", plane.name()),
        "version": format!("v{}", plane.text("/spec/version").trim_start_matches('v')),
    });
    let done = conditions
        .set("KamajiControlPlaneIsInitialized", "True", "Succeeded", "")
        .set("KubeadmResourcesCreated", "True", "Succeeded", "")
        .set("KamajiControlPlaneIsReady", "True", "Succeeded", "")
        .set("Available", "True", "Available", "");
    let of_status = |new_status: Value| status(KAMAJI_CONTROL_PLANE, plane, new_status);
    let initialized =
        json!({ "initialization": { "controlPlaneInitialized": true }, "externalManagedControlPlane": true });
    let mut due: Vec<Write> = of_status(initialized).into_iter().collect();
    due.extend(of_status(counted));
    due.extend(secrets(snapshot, KAMAJI_CONTROL_PLANE, plane, cluster, at));
    due.extend(of_status(json!({ "ready": true })));
    due.extend(of_status(json!({ "conditions": done.into_value() })));
    due
}
