//! Bootstrap with kubeadm: user data in a Secret, once the cluster has what it needs.
//!
//! The first machine of a control plane initializes the cluster; all others join with a token each. Tokens do not
//! expire here.

mod files;
mod ignition;
mod user_data;

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use serde_json::{Value, json};

use crate::core::paused;
use crate::kinds::{CONFIG, MACHINE, SECRET};
use crate::view::{Object, Snapshot, endpoint};
use crate::write::{Conditions, WorkloadChange, Write, owner, status};

pub(crate) use ignition::SCRIPT;
use user_data::{KubeadmCommand, token};

/// Type of the Secrets of Cluster API.
pub(crate) const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

pub(crate) fn reconcile(snapshot: &Snapshot, config: &Object) -> Vec<Write> {
    if let Some(writes) = paused(snapshot, CONFIG, config) {
        return writes;
    }
    let owner = config.owner(MACHINE.kind);
    let machine = owner.and_then(|name| snapshot.get(MACHINE, config.namespace(), name));
    let Some((machine, cluster)) = machine.and_then(|machine| Some((machine, snapshot.cluster_of(machine)?))) else {
        return Vec::new();
    };
    if config.is_deleting() || machine.is_deleting() {
        return Vec::new();
    }
    if snapshot.get(SECRET, config.namespace(), config.name()).is_some() {
        return update_status(snapshot, config, None).into_iter().collect();
    }
    let ready = kubeadm_command(snapshot, machine, cluster)
        .map_err(str::to_owned)
        .and_then(|(command, at)| Ok((command, at, files::with_content(snapshot, config)?)));
    match ready {
        Ok((command, at, files)) => make((config, files), cluster, &command, &at),
        Err(why) => update_status(snapshot, config, Some(&why)).into_iter().collect(),
    }
}

/// The kubeadm command of the machine and the endpoint of the cluster.
///
/// # Errors
/// The reason to wait.
fn kubeadm_command(
    snapshot: &Snapshot,
    machine: &Object,
    cluster: &Object,
) -> Result<(KubeadmCommand, String), &'static str> {
    if !cluster.flag("/status/initialization/infrastructureProvisioned") {
        return Err("waiting for the infrastructure of the cluster");
    }
    let at = endpoint(cluster).ok_or("waiting for the endpoint of the cluster")?;
    let is_control_plane = machine.label(CONTROL_PLANE_LABEL).is_some();
    if cluster.flag("/status/initialization/controlPlaneInitialized") {
        let is_up = snapshot.workloads.get(&at).is_some_and(|workload| workload.is_up);
        let why = "waiting for the API server of the workload cluster to make a token";
        return is_up
            .then_some((KubeadmCommand::Join { is_control_plane }, at))
            .ok_or(why);
    }
    let peers = snapshot.of_cluster(MACHINE, cluster);
    let mut peers = peers
        .iter()
        .filter(|peer| peer.label(CONTROL_PLANE_LABEL).is_some() && !peer.is_deleting());
    let is_first = peers.next().is_some_and(|first| first.uid() == machine.uid());
    if is_control_plane && is_first {
        Ok((KubeadmCommand::Init, at))
    } else {
        Err("waiting for the control plane to be initialized")
    }
}

fn make((config, files): (&Object, Vec<Value>), cluster: &Object, command: &KubeadmCommand, at: &str) -> Vec<Write> {
    let token = token(config.uid());
    let format = Some(config.text("/spec/format")).filter(|format| !format.is_empty());
    let format = format.unwrap_or("cloud-config");
    let text = user_data::write((config, files), cluster, command, at, &token);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {
            "name": config.name(), "namespace": config.namespace(), "labels": { CLUSTER_NAME_LABEL: cluster.name() },
            "ownerReferences": [owner(CONFIG, config, true)],
        },
        "stringData": { "value": text, "format": format },
    });
    let mut due = Vec::new();
    if matches!(command, KubeadmCommand::Join { .. }) {
        due.push(Write::Workload(at.to_owned(), WorkloadChange::Token(token)));
    }
    due.push(Write::Create(SECRET, secret));
    due
}

fn update_status(snapshot: &Snapshot, config: &Object, waiting_for: Option<&str>) -> Option<Write> {
    let is_done = waiting_for.is_none();
    let why = waiting_for.unwrap_or_default();
    let conditions = Conditions::of(config, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .set_bool("DataSecretAvailable", is_done, ("Available", "NotAvailable"), why)
        .set_bool("Ready", is_done, ("Ready", "NotReady"), why);
    let name = if is_done { json!(config.name()) } else { json!(null) };
    let new_status = json!({
        "dataSecretName": name, "initialization": { "dataSecretCreated": is_done },
        "observedGeneration": config.part("/metadata/generation"), "conditions": conditions.into_value(),
    });
    status(CONFIG, config, new_status)
}
