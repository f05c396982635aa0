//! Machines: bootstrap data, infrastructure, Node, and the same backwards.

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use serde_json::{Map, Value, json};

use super::paused;
use crate::kinds::{CONTROL_PLANE, Kind, MACHINE, SET, find};
use crate::view::{Object, World, endpoint, reference};
use crate::write::{Conditions, Deed, Write, adopt, change, delete, owner, protect, release, status};

const FINALIZER: &str = "machine.cluster.x-k8s.io";
const BOOTSTRAP: &str = "/spec/bootstrap/configRef";
const INFRASTRUCTURE: &str = "/spec/infrastructureRef";
const PRE_DRAIN: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/";
const PRE_TERMINATE: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/";
/// Domains of labels that Nodes are given.
const SHARED_WITH_NODES: [&str; 3] = [
    "node-role.kubernetes.io",
    "node-restriction.kubernetes.io",
    "node.cluster.x-k8s.io",
];

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(MACHINE).flat_map(|machine| of(world, machine)).collect()
}

fn of(world: &World, machine: &Object) -> Vec<Write> {
    if let Some(writes) = paused(world, MACHINE, machine) {
        return writes;
    }
    if machine.is_going() {
        return end(world, machine);
    }
    let mut due: Vec<Write> = protect(MACHINE, machine, FINALIZER).into_iter().collect();
    let Some(cluster) = world.cluster_of(machine) else {
        return due;
    };
    let labels = [(CLUSTER_NAME_LABEL, cluster.name())];
    for at in [BOOTSTRAP, INFRASTRUCTURE] {
        let Some((part, kind)) = part(world, machine, at) else {
            continue;
        };
        let makers = [SET.kind, CONTROL_PLANE.kind];
        due.extend(adopt(kind, part, owner(MACHINE, machine, true), &makers, &labels));
    }
    due.extend(copy(world, machine, cluster));
    due
}

fn part<'a>(world: &'a World, machine: &'a Object, at: &str) -> Option<(&'a Object, &'static Kind)> {
    let part = world.referred(machine, at)?;
    Some((part, find(part.kind())?))
}

/// What is copied from the machine's parts, and how far it is.
fn copy(world: &World, machine: &Object, cluster: &Object) -> Vec<Write> {
    let config = world.referred(machine, BOOTSTRAP);
    let infrastructure = world.referred(machine, INFRASTRUCTURE);
    let mut spec = Map::new();
    let secret = config.filter(|config| config.flag("/status/initialization/dataSecretCreated"));
    if let Some(config) = secret {
        spec.insert(
            "bootstrap".to_owned(),
            json!({ "dataSecretName": config.text("/status/dataSecretName") }),
        );
    }
    let is_there = |part: &&Object| {
        // The second as the older contract says it.
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
    let node = node(world, machine, cluster);
    if let (Some(node), Some(at)) = (node, endpoint(cluster)) {
        due.extend(tell_node(machine, node).map(|change| Write::Site(at, Deed::Node(node.name().to_owned(), change))));
    }
    let phase = match (has_data, is_provisioned, node) {
        (_, true, Some(_)) => "Running",
        (_, true, None) => "Provisioned",
        (true, false, _) => "Provisioning",
        (false, false, _) => "Pending",
    };
    let is_ready = is_provisioned && node.is_some_and(|node| node.holds("Ready"));
    let waits = match node {
        None if is_provisioned => "waiting for a Node with this provider ID",
        None => "waiting for the infrastructure",
        Some(_) => "the Node is not ready",
    };
    let conditions = Conditions::of(machine, world.now)
        .say("Paused", "False", "NotPaused", "")
        .mirror("BootstrapConfigReady", config, has_data)
        .mirror("InfrastructureReady", infrastructure, is_provisioned)
        .judge("NodeReady", is_ready, ("NodeReady", "NodeNotReady"), waits)
        .judge("Ready", is_ready, ("Ready", "NotReady"), waits);
    let reached = json!({
        "phase": phase, "conditions": conditions.done(), "observedGeneration": machine.part("/metadata/generation"),
        "initialization": { "bootstrapDataSecretCreated": has_data, "infrastructureProvisioned": is_provisioned },
        "addresses": provisioned.map_or(Value::Null, |part| part.part("/status/addresses")),
        "failureDomain": provisioned.map_or(Value::Null, |part| part.part("/status/failureDomain")),
        "nodeRef": node.map_or_else(|| machine.part("/status/nodeRef"), |node| json!({ "name": node.name() })),
    });
    due.extend(status(MACHINE, machine, reached));
    due
}

/// The Node with the machine's provider ID.
fn node<'a>(world: &'a World, machine: &Object, cluster: &Object) -> Option<&'a Object> {
    let id = Some(machine.text("/spec/providerID")).filter(|id| !id.is_empty())?;
    let mut nodes = world.site_of(cluster)?.nodes.iter();
    nodes.find(|node| node.text("/spec/providerID") == id)
}

/// What a Node is told of its machine: where it comes from, shared labels, and that it is initialized.
fn tell_node(machine: &Object, node: &Object) -> Option<Value> {
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
    let is_first =
        |taint: &Value| taint.get("key").and_then(Value::as_str) == Some("node.cluster.x-k8s.io/uninitialized");
    let mut change = json!({ "metadata": {
        "labels": labels,
        "annotations": { "cluster.x-k8s.io/cluster-name": machine.text("/spec/clusterName"), "cluster.x-k8s.io/machine": machine.name() },
    } });
    if let Some(change) = change.as_object_mut().filter(|_| taints.iter().any(is_first)) {
        let left: Vec<&Value> = taints.iter().filter(|taint| !is_first(taint)).collect();
        change.insert("spec".to_owned(), json!({ "taints": left }));
    }
    crate::write::differs(node, &change).then_some(change)
}

/// Hooks, cordon, infrastructure, bootstrap, Node: each waits for the one before.
fn end(world: &World, machine: &Object) -> Vec<Write> {
    let told = |why: &str| {
        let conditions = Conditions::of(machine, world.now).say("Deleting", "True", "Deleting", why);
        status(
            MACHINE,
            machine,
            json!({ "phase": "Deleting", "conditions": conditions.done() }),
        )
    };
    if machine.has_annotation_of(PRE_DRAIN) {
        return told("waiting for hooks before the drain").into_iter().collect();
    }
    let cluster = world.cluster_of(machine);
    let at = cluster
        .filter(|cluster| needs_node_gone(world, cluster, machine))
        .and_then(endpoint);
    let node = cluster.and_then(|cluster| node(world, machine, cluster)).zip(at);
    let mut due: Vec<Write> = Vec::new();
    if let Some((node, at)) = node.as_ref().filter(|(node, _)| !node.flag("/spec/unschedulable")) {
        due.push(Write::Site(
            at.clone(),
            Deed::Node(node.name().to_owned(), json!({ "spec": { "unschedulable": true } })),
        ));
    }
    if machine.has_annotation_of(PRE_TERMINATE) {
        due.extend(told("waiting for hooks before the machine ends"));
        return due;
    }
    for (at, why) in [
        (INFRASTRUCTURE, "waiting for the infrastructure to go"),
        (BOOTSTRAP, "waiting for the bootstrap configuration to go"),
    ] {
        if let Some((part, kind)) = part(world, machine, at) {
            due.extend(told(why));
            due.extend(delete(kind, part));
            return due;
        }
    }
    match node {
        Some((node, at)) => due.push(Write::Site(at, Deed::DeleteNode(node.name().to_owned()))),
        None => due.extend(release(MACHINE, machine, FINALIZER)),
    }
    due
}

/// Whether the workload cluster outlives the machine.
fn needs_node_gone(world: &World, cluster: &Object, machine: &Object) -> bool {
    let control_plane = world.referred(cluster, "/spec/controlPlaneRef");
    let is_going = cluster.is_going() || control_plane.is_some_and(Object::is_going);
    let is_external = control_plane.is_some_and(|part| part.flag("/status/externalManagedControlPlane"));
    let mut others = world.of_cluster(MACHINE, cluster).into_iter();
    let remains = others
        .any(|other| other.label(CONTROL_PLANE_LABEL).is_some() && !other.is_going() && other.name() != machine.name());
    !is_going && (is_external || remains)
}
