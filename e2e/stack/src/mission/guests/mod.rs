//! The providers that Metal3 is combined with, beside the real Cluster API: those of `metal3-sim-capi`, as they are on the
//! simulated world. Their kinds are installed like anybody's, and they work as clients of the API server.
//!
//! What their control planes run is real: [`Grounds`] has an API server start for each. The agents on hosts that are
//! brought along are part of what boots ([`brought`]).

pub(super) mod brought;
mod grounds;
mod papers;

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use metal3_api::cluster::names::CONTROL_PLANE_GROUP;
use metal3_sim_capi::program::{Cast, Parts};
use metal3_sim_capi::{kamaji, kinds, program};
use metal3_domain::clock::SystemClock;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::claims::world::World;
use crate::pki::ADMIN;

pub(super) use grounds::Grounds;
pub(super) use papers::{Login, Papers};

/// They work until this is dropped.
pub(super) struct Guests {
    grounds: Grounds,
    _runtime: Runtime,
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guests").finish_non_exhaustive()
    }
}

impl Guests {
    /// Installs their kinds, and has them work.
    pub(super) fn begin(world: &World) -> anyhow::Result<Self> {
        install(world)?;
        // Of two that install one, the second is told so; any will do.
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let grounds = Grounds::new(runtime.handle());
        let way_in = Kubeconfig::read_from(world.places.kubeconfig(ADMIN))?;
        let parts = Parts {
            client: client(runtime.handle(), way_in)?,
            sites: Arc::new(grounds.clone()),
            clock: Arc::new(SystemClock::start()),
        };
        runtime.spawn(program::run(parts.clone(), Cast::Beside));
        runtime.spawn(kamaji::run(parts.clone()));
        runtime.spawn(kamaji::balance(parts));
        Ok(Self {
            grounds,
            _runtime: runtime,
        })
    }

    pub(super) fn grounds(&self) -> &Grounds {
        &self.grounds
    }
}

/// A client of whoever the kubeconfig leads to.
fn client(runtime: &Handle, way_in: Kubeconfig) -> anyhow::Result<kube::Client> {
    runtime.block_on(async {
        let config = Config::from_custom_kubeconfig(way_in, &KubeConfigOptions::default()).await?;
        Ok(kube::Client::try_from(config)?)
    })
}

/// Whether a kind is one of theirs.
pub(super) fn has(kind: &str) -> bool {
    kinds::beside().iter().any(|definition| definition.kind == kind)
}

/// Whether a resource is one of theirs.
pub(super) fn has_resource(group: &str, plural: &str) -> bool {
    let all = kinds::beside();
    all.iter()
        .any(|definition| definition.group == group && definition.plural == plural)
}

fn install(world: &World) -> anyhow::Result<()> {
    let all: Vec<Value> = kinds::beside()
        .iter()
        .map(metal3_api::crd::Definition::manifest)
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string();
    let words = ["apply", "--server-side", "--filename", "-"];
    world
        .run("kubectl", &words, Some(&list))
        .context("the kinds of other providers")?;
    for definition in &all {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let kind = format!("crd/{name}");
        world.kubectl(&["wait", "--for=condition=Established", &kind, "--timeout=60s"])?;
    }
    let rights = json!({"apiVersion": "v1", "kind": "List", "items": rights()}).to_string();
    world.run("kubectl", &words, Some(&rights)).map(drop)
}

/// What a provider of control planes grants: the one of bootstrap data reads their version.
fn rights() -> [Value; 2] {
    let (group, name) = ("rbac.authorization.k8s.io", "other-control-planes");
    let all = kinds::beside().into_iter();
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
