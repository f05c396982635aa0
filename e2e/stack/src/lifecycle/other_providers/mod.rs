//! The providers that are combined with Metal3, next to the real Cluster API: those of `metal3-sim-capi`, as in the
//! simulated world. Their CRDs are installed like those of any provider, and they are clients of the API server.
//!
//! Their control planes run real API servers, started through [`WorkloadRegistry`]. The BYOH agents are part of the machine
//! simulator ([`byoh_agent`]).

pub(super) mod byoh_agent;
mod credentials;
mod workloads;

use std::sync::Arc;

use anyhow::Context;
use kube::config::Kubeconfig;
use metal3_api::cluster::names::CONTROL_PLANE_GROUP;
use metal3_domain::clock::SystemClock;
use metal3_sim_capi::program::{Parts, Providers};
use metal3_sim_capi::{kamaji, kinds, program};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::claims::stack::Stack;
use crate::pki::ADMIN;

pub(super) use credentials::{ControlPlanePki, Login};
pub(super) use workloads::WorkloadRegistry;

/// Dropping it stops them.
pub(super) struct OtherProviders {
    workloads: WorkloadRegistry,
    _runtime: Runtime,
}

impl OtherProviders {
    /// Installs their CRDs and starts them.
    pub(super) fn begin(stack: &Stack) -> anyhow::Result<Self> {
        install(stack)?;
        // Fails when a provider is already installed, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let workloads = WorkloadRegistry::new(runtime.handle());
        let kubeconfig = Kubeconfig::read_from(stack.places.kubeconfig(ADMIN))?;
        let parts = Parts {
            client: workloads::client(runtime.handle(), kubeconfig)?,
            workloads: Arc::new(workloads.clone()),
            clock: Arc::new(SystemClock::start()),
        };
        runtime.spawn(program::run(parts.clone(), Providers::Other));
        runtime.spawn(kamaji::run(parts.clone()));
        runtime.spawn(kamaji::balance(parts));
        Ok(Self {
            workloads,
            _runtime: runtime,
        })
    }

    pub(super) fn workloads(&self) -> &WorkloadRegistry {
        &self.workloads
    }
}

/// Whether they define a kind.
pub(super) fn has(kind: &str) -> bool {
    kinds::other_providers()
        .iter()
        .any(|definition| definition.kind == kind)
}

/// Whether they define a resource.
pub(super) fn has_resource(group: &str, plural: &str) -> bool {
    let all = kinds::other_providers();
    all.iter()
        .any(|definition| definition.group == group && definition.plural == plural)
}

fn install(stack: &Stack) -> anyhow::Result<()> {
    let all: Vec<Value> = kinds::other_providers()
        .iter()
        .map(metal3_api::crd::Definition::manifest)
        .collect();
    let args = ["apply", "--server-side"];
    stack.send(&args, &all).context("the kinds of other providers")?;
    for definition in &all {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let kind = format!("crd/{name}");
        stack.kubectl(&["wait", "--for=condition=Established", &kind, "--timeout=60s"])?;
    }
    stack.send(&args, &rights())
}

/// The permissions of a control plane provider: Cluster API's bootstrap provider reads the version of control planes.
fn rights() -> [Value; 2] {
    let (group, name) = ("rbac.authorization.k8s.io", "other-control-planes");
    let all = kinds::other_providers().into_iter();
    let planes: Vec<&str> = all
        .filter(|kind| kind.group == CONTROL_PLANE_GROUP)
        .map(|kind| kind.plural)
        .collect();
    let rule = json!({"apiGroups": [CONTROL_PLANE_GROUP], "resources": planes, "verbs": ["get", "list", "watch"]});
    let reader = json!({"kind": "ServiceAccount", "name": "capi-kubeadm-bootstrap-manager",
        "namespace": "capi-kubeadm-bootstrap-system"});
    [
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name}, "subjects": [reader]}),
    ]
}
