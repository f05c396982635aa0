//! ByoMachine: a machine on a bring-your-own host.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, PAUSED_ANNOTATION};
use serde_json::{Map, Value, json};

use super::{CLEANUP_ANNOTATION, ENDPOINT, MACHINE_LABEL, REGISTRY, VERSION};
use crate::kinds::{BYO_CLUSTER, BYO_HOST, BYO_MACHINE, MACHINE};
use crate::view::{Object, Snapshot, endpoint};
use crate::write::{Conditions, WorkloadChange, Write, add_finalizer, change, remove_finalizer, status};

const FINALIZER: &str = "byomachine.infrastructure.cluster.x-k8s.io";
const CONDITION: &str = "BYOHostReady";

pub(crate) fn reconcile(snapshot: &Snapshot, machine: &Object) -> Vec<Write> {
    let host = host(snapshot, machine);
    if machine.is_deleting() {
        let mark = host.and_then(|host| annotate(host, CLEANUP_ANNOTATION, &json!("")));
        return mark
            .into_iter()
            .chain(remove_finalizer(BYO_MACHINE, machine, FINALIZER))
            .collect();
    }
    let owner = machine.owner(MACHINE.kind);
    let owner = owner.and_then(|name| snapshot.get(MACHINE, machine.namespace(), name));
    let Some((owner, cluster)) = owner.and_then(|owner| Some((owner, snapshot.cluster_of(owner)?))) else {
        return Vec::new();
    };
    // Looked up by name alone, whatever the kind.
    let named = cluster.text("/spec/infrastructureRef/name");
    let Some(infrastructure) = snapshot.get(BYO_CLUSTER, machine.namespace(), named) else {
        return Vec::new();
    };
    let is_paused = cluster.flag("/spec/paused") || machine.annotation(PAUSED_ANNOTATION).is_some();
    let wanted = if is_paused { json!("") } else { Value::Null };
    let mut due: Vec<Write> = host
        .and_then(|host| annotate(host, PAUSED_ANNOTATION, &wanted))
        .into_iter()
        .collect();
    if is_paused {
        due.extend(update_condition(snapshot, machine, "False", "ClusterOrResourcePaused"));
        return due;
    }
    let data = owner.text("/spec/bootstrap/dataSecretName");
    match (host, data, free(snapshot, machine)) {
        (Some(host), ..) => due.extend(provision(snapshot, machine, host, cluster)),
        (None, "", _) => due.extend(update_condition(
            snapshot,
            machine,
            "False",
            "WaitingForBootstrapDataSecret",
        )),
        (None, _, None) => due.extend(update_condition(snapshot, machine, "False", "BYOHostsUnavailable")),
        (None, _, Some(host)) => due.push(claim(host, machine, owner, infrastructure)),
    }
    due.extend(add_finalizer(BYO_MACHINE, machine, FINALIZER));
    due
}

fn machine_label(machine: &Object) -> String {
    format!("{}.{}", machine.namespace(), machine.name())
}

/// The host of the machine.
fn host<'a>(snapshot: &'a Snapshot, machine: &Object) -> Option<&'a Object> {
    let name = machine_label(machine);
    let mut all = snapshot.all(BYO_HOST);
    all.find(|host| host.label(MACHINE_LABEL) == Some(&name) && host.annotation(CLEANUP_ANNOTATION).is_none())
}

/// A free host with the labels that the machine selects.
fn free<'a>(snapshot: &'a Snapshot, machine: &Object) -> Option<&'a Object> {
    let wanted = machine.part("/spec/selector/matchLabels");
    let fits = |host: &Object| {
        let all = wanted.as_object().into_iter().flatten();
        all.into_iter().all(|(key, value)| host.label(key) == value.as_str())
    };
    let mut all = snapshot.all(BYO_HOST);
    all.find(|host| {
        let is_free = host.label(MACHINE_LABEL).is_none() && host.at("/status/machineRef").is_none();
        host.namespace() == machine.namespace() && is_free && !host.is_deleting() && fits(host)
    })
}

/// Claims a host in one write, with the observed resource version as precondition: another machine may claim it at the
/// same time.
fn claim(host: &Object, machine: &Object, owner: &Object, infrastructure: &Object) -> Write {
    let pairs = [
        (ENDPOINT, infrastructure.part("/spec/controlPlaneEndpoint/host")),
        (VERSION, owner.part("/spec/version")),
        (REGISTRY, infrastructure.part("/spec/bundleLookupBaseRegistry")),
    ];
    let annotations: Map<String, Value> = pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let secret = json!({
        "kind": "Secret", "name": owner.text("/spec/bootstrap/dataSecretName"), "namespace": machine.namespace(),
    });
    let labels = json!({ MACHINE_LABEL: machine_label(machine), CLUSTER_NAME_LABEL: owner.text("/spec/clusterName") });
    let version = host.part("/metadata/resourceVersion");
    let change = json!({
        "metadata": { "resourceVersion": version, "labels": labels, "annotations": annotations },
        "spec": { "bootstrapSecret": secret },
    });
    Write::Merge(BYO_HOST, host.key(), change)
}

/// Provisions a claimed host until its Node and the machine have a provider ID.
fn provision(snapshot: &Snapshot, machine: &Object, host: &Object, cluster: &Object) -> Vec<Write> {
    let taken = json!({ "machineRef": {
        "apiVersion": BYO_MACHINE.api_version(), "kind": BYO_MACHINE.kind, "name": machine.name(),
        "namespace": machine.namespace(), "uid": machine.uid(),
    } });
    if let Some(new_status) = status(BYO_HOST, host, taken) {
        return vec![new_status];
    }
    let nodes = snapshot.workload_of(cluster).map(|workload| workload.nodes.as_slice());
    let node = nodes.unwrap_or_default().iter().find(|node| node.name() == host.name());
    let Some((node, at)) = node.zip(endpoint(cluster)) else {
        return Vec::new();
    };
    let stated = machine.text("/spec/providerID");
    let id = if stated.is_empty() {
        provider_id(machine, host)
    } else {
        stated.to_owned()
    };
    let named = json!({ "spec": { "providerID": id } });
    let mut due = Vec::new();
    if node.text("/spec/providerID").is_empty() {
        due.push(Write::Workload(
            at,
            WorkloadChange::Node(node.name().to_owned(), named.clone()),
        ));
    }
    due.extend(update_condition(snapshot, machine, "True", ""));
    due.extend(change(BYO_MACHINE, machine, named));
    due.extend(status(BYO_MACHINE, machine, json!({ "ready": true })));
    due
}

/// The name of the host, and six characters that differ for the next machine on it.
fn provider_id(machine: &Object, host: &Object) -> String {
    let mut hasher = DefaultHasher::new();
    machine.uid().hash(&mut hasher);
    let digits = format!("{:016x}", hasher.finish());
    let short: String = digits.chars().take(6).collect();
    format!("byoh://{}/{short}", host.name())
}

fn update_condition(snapshot: &Snapshot, machine: &Object, holds: &str, reason: &str) -> Option<Write> {
    let conditions = Conditions::of(machine, snapshot.now).set_v1beta1(CONDITION, holds, reason);
    status(BYO_MACHINE, machine, json!({ "conditions": conditions.into_value() }))
}

fn annotate(host: &Object, key: &str, value: &Value) -> Option<Write> {
    change(BYO_HOST, host, json!({ "metadata": { "annotations": { key: value } } }))
}
