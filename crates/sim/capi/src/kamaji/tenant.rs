//! TenantControlPlane: it gets an address from a load balancer, starts in many small steps, and becomes ready. A change
//! of its replicas makes it unready for a moment.

use std::time::Duration;

use serde_json::json;

use crate::kinds::{Kind, TENANT};
use crate::view::{Object, Snapshot, text_of};
use crate::write::{WorkloadChange, Write, add_finalizer, owner, remove_finalizer, status};

/// Service of the tenant.
pub(super) const SERVICE: &Kind = &Kind {
    group: "",
    version: "v1",
    kind: "Service",
    plural: "services",
};
const FINALIZER: &str = "finalizer.kamaji.clastix.io";
/// Field of its state.
const STATE: &str = "/status/kubernetesResources/version/status";
const REPLICAS: &str = "/status/kubernetesResources/deployment/replicas";
/// Delay of steps that depend on no other component.
const IMMEDIATE: Duration = Duration::from_millis(30);
/// Number and interval of the recorded steps: certificates, kubeconfigs, addons.
const STEPS: i64 = 20;
const STEP: Duration = Duration::from_millis(250);
/// Delay from a change of the replicas until the state is `Unknown`, and from there until they are ready.
const NOTICE: Duration = Duration::from_millis(150);
const SCALE: Duration = Duration::from_millis(480);

/// The address that a load balancer has assigned to a Service.
pub(super) fn load_balancer_ip(service: &Object) -> Option<&str> {
    Some(service.text("/status/loadBalancer/ingress/0/ip")).filter(|address| !address.is_empty())
}

/// Whether it is ready.
pub(super) fn is_ready(tenant: &Object) -> bool {
    tenant.text(STATE) == "Ready"
}

/// Its ready replicas.
pub(super) fn replicas(tenant: &Object) -> i64 {
    tenant.number(REPLICAS).unwrap_or_default()
}

/// The next step of a tenant and its delay. A tenant without an address waits for the load balancer.
pub(super) fn next(snapshot: &Snapshot, tenant: &Object) -> Option<(Duration, Vec<Write>)> {
    let at = tenant.text("/status/controlPlaneEndpoint");
    if tenant.is_deleting() {
        let stop = (!at.is_empty()).then(|| Write::Workload(at.to_owned(), WorkloadChange::Stop));
        let gone = stop
            .into_iter()
            .chain(remove_finalizer(TENANT, tenant, FINALIZER))
            .collect();
        return Some((STEP, gone));
    }
    let patch_status = |what| status(TENANT, tenant, what).into_iter().collect::<Vec<_>>();
    if at.is_empty() {
        return expose(snapshot, tenant);
    }
    let step = tenant.number("/status/step").unwrap_or_default();
    if step < STEPS {
        return Some((STEP, patch_status(json!({ "step": step.saturating_add(1) }))));
    }
    let wanted = tenant.number("/spec/controlPlane/deployment/replicas").unwrap_or(1);
    let state = |name: &str, replicas: i64| {
        patch_status(json!({ "kubernetesResources": {
            "version": { "status": name }, "deployment": { "replicas": replicas },
        } }))
    };
    match tenant.text(STATE) {
        "Ready" if replicas(tenant) == wanted => None,
        "Ready" => Some((NOTICE, state("Unknown", replicas(tenant)))),
        "Unknown" => Some((SCALE, state("Ready", wanted))),
        _ => {
            let mut due = state("Ready", wanted);
            due.insert(0, Write::Workload(at.to_owned(), WorkloadChange::Start));
            Some((STEP, due))
        }
    }
}

/// Creates the Service and takes its address.
fn expose(snapshot: &Snapshot, tenant: &Object) -> Option<(Duration, Vec<Write>)> {
    let Some(service) = snapshot.get(SERVICE, tenant.namespace(), tenant.name()) else {
        let mut due = add_finalizer(TENANT, tenant, FINALIZER);
        due.push(Write::Create(SERVICE, service(tenant)));
        return Some((IMMEDIATE, due));
    };
    let network = tenant.part("/spec/networkProfile");
    let chosen = Some(text_of(&network, "address")).filter(|host| !host.is_empty());
    let host = chosen.or_else(|| load_balancer_ip(service))?;
    let endpoint = format!("{host}:{}", port(tenant));
    let write = status(TENANT, tenant, json!({ "controlPlaneEndpoint": endpoint }));
    Some((IMMEDIATE, write.into_iter().collect()))
}

fn service(tenant: &Object) -> serde_json::Value {
    json!({
        "apiVersion": SERVICE.api_version(), "kind": SERVICE.kind,
        "metadata": {
            "name": tenant.name(), "namespace": tenant.namespace(),
            "annotations": tenant.part("/spec/controlPlane/service/additionalMetadata/annotations"),
            "ownerReferences": [owner(TENANT, tenant, true)],
        },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "kube-apiserver", "port": port(tenant) }] },
    })
}

fn port(tenant: &Object) -> i64 {
    tenant.number("/spec/networkProfile/port").unwrap_or(6443)
}
