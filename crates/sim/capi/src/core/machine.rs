//! Machines: bootstrap data, infrastructure, Node; deletion in the reverse order.

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use serde_json::{Map, Value, json};

use super::paused;
use crate::kinds::{CONTROL_PLANE, Kind, MACHINE, SET, find};
use crate::view::{Object, Snapshot, endpoint, reference};
use crate::write::{
    Conditions, WorkloadChange, Write, add_finalizer, adopt, change, delete, owner, remove_finalizer, status,
};

const FINALIZER: &str = "machine.cluster.x-k8s.io";
const BOOTSTRAP: &str = "/spec/bootstrap/configRef";
const INFRASTRUCTURE: &str = "/spec/infrastructureRef";
const PRE_DRAIN: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/";
const PRE_TERMINATE: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/";
/// Domains of labels that are copied to Nodes.
const SHARED_WITH_NODES: [&str; 3] = [
    "node-role.kubernetes.io",
    "node-restriction.kubernetes.io",
    "node.cluster.x-k8s.io",
];

pub(crate) fn reconcile(snapshot: &Snapshot, machine: &Object) -> Vec<Write> {
    if let Some(writes) = paused(snapshot, MACHINE, machine) {
        return writes;
    }
    if machine.is_deleting() {
        return reconcile_delete(snapshot, machine);
    }
    let mut due = add_finalizer(MACHINE, machine, FINALIZER);
    let Some(cluster) = snapshot.cluster_of(machine) else {
        return due;
    };
    let labels = [(CLUSTER_NAME_LABEL, cluster.name())];
    for at in [BOOTSTRAP, INFRASTRUCTURE] {
        let Some((part, kind)) = part(snapshot, machine, at) else {
            continue;
        };
        let creators = [SET.kind, CONTROL_PLANE.kind];
        due.extend(adopt(kind, part, owner(MACHINE, machine, true), &creators, &labels));
    }
    due.extend(copy(snapshot, machine, cluster));
    due
}

fn part<'a>(snapshot: &'a Snapshot, machine: &'a Object, at: &str) -> Option<(&'a Object, &'static Kind)> {
    let part = snapshot.referred(machine, at)?;
    Some((part, find(part.kind())?))
}

/// Copies fields from the referenced objects and updates the status.
fn copy(snapshot: &Snapshot, machine: &Object, cluster: &Object) -> Vec<Write> {
    let config = snapshot.referred(machine, BOOTSTRAP);
    let infrastructure = snapshot.referred(machine, INFRASTRUCTURE);
    let mut spec = Map::new();
    let secret = config.filter(|config| config.flag("/status/initialization/dataSecretCreated"));
    if let Some(config) = secret {
        spec.insert(
            "bootstrap".to_owned(),
            json!({ "dataSecretName": config.text("/status/dataSecretName") }),
        );
    }
    let is_there = |part: &&Object| {
        // `ready` is the v1beta1 contract.
        let is_ready = part.flag("/status/initialization/provisioned") || part.flag("/status/ready");
        is_ready && !part.text("/spec/providerID").is_empty()
    };
    let provisioned = infrastructure.filter(is_there);
    if let Some(infrastructure) = provisioned {
        spec.insert("providerID".to_owned(), infrastructure.part("/spec/providerID"));
    }
    let mut due: Vec<Write> = change(MACHINE, machine, json!({ "spec": spec })).into_iter().collect();
    let has_data =
        reference(machine, BOOTSTRAP).is_none() || !machine.text("/spec/bootstrap/dataSecretName").is_empty();
    let is_provisioned = machine.flag("/status/initialization/infrastructureProvisioned") || provisioned.is_some();
    let node = node(snapshot, machine, cluster);
    if let (Some(node), Some(at)) = (node, endpoint(cluster)) {
        due.extend(
            node_patch(machine, node)
                .map(|change| Write::Workload(at, WorkloadChange::Node(node.name().to_owned(), change))),
        );
    }
    let phase = match (has_data, is_provisioned, node) {
        (_, true, Some(_)) => "Running",
        (_, true, None) => "Provisioned",
        (true, false, _) => "Provisioning",
        (false, false, _) => "Pending",
    };
    let is_ready = is_provisioned && node.is_some_and(|node| node.is_true("Ready"));
    let why = match node {
        None if is_provisioned => "waiting for a Node with this provider ID",
        None => "waiting for the infrastructure",
        Some(_) => "the Node is not ready",
    };
    let conditions = Conditions::of(machine, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .mirror("BootstrapConfigReady", config, has_data)
        .mirror("InfrastructureReady", infrastructure, is_provisioned)
        .set_bool("NodeReady", is_ready, ("NodeReady", "NodeNotReady"), why)
        .set_bool("Ready", is_ready, ("Ready", "NotReady"), why);
    let reached = json!({
        "phase": phase, "conditions": conditions.into_value(), "observedGeneration": machine.part("/metadata/generation"),
        "initialization": { "bootstrapDataSecretCreated": has_data, "infrastructureProvisioned": is_provisioned },
        "addresses": provisioned.map_or(Value::Null, |part| part.part("/status/addresses")),
        "failureDomain": provisioned.map_or(Value::Null, |part| part.part("/status/failureDomain")),
        "nodeRef": node.map_or_else(|| machine.part("/status/nodeRef"), |node| json!({ "name": node.name() })),
    });
    due.extend(status(MACHINE, machine, reached));
    due
}

/// The Node with the machine's provider ID.
fn node<'a>(snapshot: &'a Snapshot, machine: &Object, cluster: &Object) -> Option<&'a Object> {
    let id = Some(machine.text("/spec/providerID")).filter(|id| !id.is_empty())?;
    let mut nodes = snapshot.workload_of(cluster)?.nodes.iter();
    nodes.find(|node| node.text("/spec/providerID") == id)
}

/// Patch of a Node: its origin, shared labels, and removal of the `uninitialized` taint.
fn node_patch(machine: &Object, node: &Object) -> Option<Value> {
    let shared = |key: &str| {
        let domain = key.split('/').next().unwrap_or_default();
        SHARED_WITH_NODES
            .iter()
            .any(|known| domain == *known || domain.ends_with(&format!(".{known}")))
    };
    let labels = machine.part("/metadata/labels");
    let labels = labels.as_object().cloned().unwrap_or_default();
    let labels: Map<String, Value> = labels.into_iter().filter(|(key, _)| shared(key)).collect();
    let taints = node.part("/spec/taints");
    let taints: Vec<Value> = taints.as_array().cloned().unwrap_or_default();
    let is_uninitialized =
        |taint: &Value| taint.get("key").and_then(Value::as_str) == Some("node.cluster.x-k8s.io/uninitialized");
    let mut change = json!({ "metadata": {
        "labels": labels,
        "annotations": { "cluster.x-k8s.io/cluster-name": machine.text("/spec/clusterName"), "cluster.x-k8s.io/machine": machine.name() },
    } });
    if let Some(change) = change.as_object_mut().filter(|_| taints.iter().any(is_uninitialized)) {
        let left: Vec<&Value> = taints.iter().filter(|taint| !is_uninitialized(taint)).collect();
        change.insert("spec".to_owned(), json!({ "taints": left }));
    }
    crate::write::differs(node, &change).then_some(change)
}

/// Hooks, cordon, infrastructure, bootstrap, Node: each step waits for the previous one.
fn reconcile_delete(snapshot: &Snapshot, machine: &Object) -> Vec<Write> {
    let deleting = |why: &str| {
        let conditions = Conditions::of(machine, snapshot.now).set("Deleting", "True", "Deleting", why);
        status(
            MACHINE,
            machine,
            json!({ "phase": "Deleting", "conditions": conditions.into_value() }),
        )
    };
    if machine.has_annotation_of(PRE_DRAIN) {
        return deleting("waiting for hooks before the drain").into_iter().collect();
    }
    let cluster = snapshot.cluster_of(machine);
    let at = cluster
        .filter(|cluster| needs_node_gone(snapshot, cluster, machine))
        .and_then(endpoint);
    let node = cluster.and_then(|cluster| node(snapshot, machine, cluster)).zip(at);
    let mut due: Vec<Write> = Vec::new();
    if let Some((node, at)) = node.as_ref().filter(|(node, _)| !node.flag("/spec/unschedulable")) {
        due.push(Write::Workload(
            at.clone(),
            WorkloadChange::Node(node.name().to_owned(), json!({ "spec": { "unschedulable": true } })),
        ));
    }
    if machine.has_annotation_of(PRE_TERMINATE) {
        due.extend(deleting("waiting for hooks before termination"));
        return due;
    }
    for (at, why) in [
        (INFRASTRUCTURE, "waiting for the deletion of the infrastructure"),
        (BOOTSTRAP, "waiting for the deletion of the bootstrap configuration"),
    ] {
        if let Some((part, kind)) = part(snapshot, machine, at) {
            due.extend(deleting(why));
            due.extend(delete(kind, part));
            return due;
        }
    }
    match node {
        Some((node, at)) => due.push(Write::Workload(at, WorkloadChange::DeleteNode(node.name().to_owned()))),
        None => due.extend(remove_finalizer(MACHINE, machine, FINALIZER)),
    }
    due
}

/// Whether the workload cluster remains after the deletion of the machine.
fn needs_node_gone(snapshot: &Snapshot, cluster: &Object, machine: &Object) -> bool {
    let control_plane = snapshot.referred(cluster, "/spec/controlPlaneRef");
    let is_deleting = cluster.is_deleting() || control_plane.is_some_and(Object::is_deleting);
    let is_external = control_plane.is_some_and(|part| part.flag("/status/externalManagedControlPlane"));
    let mut others = snapshot.of_cluster(MACHINE, cluster).into_iter();
    let remains = others.any(|other| {
        other.label(CONTROL_PLANE_LABEL).is_some() && !other.is_deleting() && other.name() != machine.name()
    });
    !is_deleting && (is_external || remains)
}
