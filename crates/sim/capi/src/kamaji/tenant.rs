//! The control plane itself: it gets an address from a load balancer, starts in many small steps, and is ready. Whenever
//! the number of its replicas changes it is not, for a moment.

use std::time::Duration;

use serde_json::json;

use crate::kinds::{Kind, TENANT};
use crate::view::{Object, World, text_of};
use crate::write::{Deed, Write, owner, protect, release, status};

/// By which it is reached.
pub(super) const SERVICE: &Kind = &Kind {
    group: "",
    version: "v1",
    kind: "Service",
    plural: "services",
};
const FINALIZER: &str = "finalizer.kamaji.clastix.io";
/// Where it says how it is.
const STATE: &str = "/status/kubernetesResources/version/status";
const REPLICAS: &str = "/status/kubernetesResources/deployment/replicas";
/// Whatever needs nobody else.
const AT_ONCE: Duration = Duration::from_millis(30);
/// Certificates, kubeconfigs, addons: as many as were recorded, as far apart.
const STEPS: i64 = 20;
const STEP: Duration = Duration::from_millis(250);
/// From other replicas asked for until it does not know how it is, and from there until they are there.
const NOTICE: Duration = Duration::from_millis(150);
const SCALE: Duration = Duration::from_millis(480);

/// The address that a load balancer has given to a Service.
pub(super) fn balanced(service: &Object) -> Option<&str> {
    Some(service.text("/status/loadBalancer/ingress/0/ip")).filter(|address| !address.is_empty())
}

/// Whether it serves.
pub(super) fn is_ready(tenant: &Object) -> bool {
    tenant.text(STATE) == "Ready"
}

/// As how many replicas it serves.
pub(super) fn replicas(tenant: &Object) -> i64 {
    tenant.number(REPLICAS).unwrap_or_default()
}

/// What happens next to a tenant, and after which time. Nothing happens to one without an address before a load balancer
/// gives it one.
pub(super) fn next(world: &World, tenant: &Object) -> Option<(Duration, Vec<Write>)> {
    let at = tenant.text("/status/controlPlaneEndpoint");
    if tenant.is_going() {
        let stop = (!at.is_empty()).then(|| Write::Site(at.to_owned(), Deed::Stop));
        let gone = stop.into_iter().chain(release(TENANT, tenant, FINALIZER)).collect();
        return Some((STEP, gone));
    }
    let told = |what| status(TENANT, tenant, what).into_iter().collect::<Vec<_>>();
    if at.is_empty() {
        return reach(world, tenant);
    }
    let step = tenant.number("/status/step").unwrap_or_default();
    if step < STEPS {
        return Some((STEP, told(json!({ "step": step.saturating_add(1) }))));
    }
    let wanted = tenant.number("/spec/controlPlane/deployment/replicas").unwrap_or(1);
    let serves = |how: &str, replicas: i64| {
        told(json!({ "kubernetesResources": {
            "version": { "status": how }, "deployment": { "replicas": replicas },
        } }))
    };
    match tenant.text(STATE) {
        "Ready" if replicas(tenant) == wanted => None,
        "Ready" => Some((NOTICE, serves("Unknown", replicas(tenant)))),
        "Unknown" => Some((SCALE, serves("Ready", wanted))),
        _ => {
            let mut due = serves("Ready", wanted);
            due.insert(0, Write::Site(at.to_owned(), Deed::Start));
            Some((STEP, due))
        }
    }
}

/// The way to an address.
fn reach(world: &World, tenant: &Object) -> Option<(Duration, Vec<Write>)> {
    let Some(service) = world.get(SERVICE, tenant.namespace(), tenant.name()) else {
        let mut due: Vec<Write> = protect(TENANT, tenant, FINALIZER).into_iter().collect();
        due.push(Write::Create(SERVICE, service(tenant)));
        return Some((AT_ONCE, due));
    };
    let network = tenant.part("/spec/networkProfile");
    let chosen = Some(text_of(&network, "address")).filter(|host| !host.is_empty());
    let host = chosen.or_else(|| balanced(service))?;
    let endpoint = format!("{host}:{}", port(tenant));
    let told = status(TENANT, tenant, json!({ "controlPlaneEndpoint": endpoint }));
    Some((AT_ONCE, told.into_iter().collect()))
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
