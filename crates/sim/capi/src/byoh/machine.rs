//! A machine on a host that is brought along.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, PAUSED_ANNOTATION};
use serde_json::{Map, Value, json};

use super::{ENDPOINT, LEAVES, REGISTRY, TAKEN_BY, VERSION};
use crate::kinds::{BYO_CLUSTER, BYO_HOST, BYO_MACHINE, MACHINE};
use crate::view::{Object, World, endpoint};
use crate::write::{Conditions, Deed, Write, change, protect, release, status};

const FINALIZER: &str = "byomachine.infrastructure.cluster.x-k8s.io";
const CONDITION: &str = "BYOHostReady";

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(BYO_MACHINE).flat_map(|machine| of(world, machine)).collect()
}

fn of(world: &World, machine: &Object) -> Vec<Write> {
    let host = host(world, machine);
    if machine.is_going() {
        let mark = host.and_then(|host| annotate(host, LEAVES, &json!("")));
        return mark
            .into_iter()
            .chain(release(BYO_MACHINE, machine, FINALIZER))
            .collect();
    }
    let owner = machine.owner(MACHINE.kind);
    let owner = owner.and_then(|name| world.get(MACHINE, machine.namespace(), name));
    let Some((owner, cluster)) = owner.and_then(|owner| Some((owner, world.cluster_of(owner)?))) else {
        return Vec::new();
    };
    // By the name alone, whatever the kind is.
    let named = cluster.text("/spec/infrastructureRef/name");
    let Some(infrastructure) = world.get(BYO_CLUSTER, machine.namespace(), named) else {
        return Vec::new();
    };
    let is_paused = cluster.flag("/spec/paused") || machine.annotation(PAUSED_ANNOTATION).is_some();
    let wanted = if is_paused { json!("") } else { Value::Null };
    let mut due: Vec<Write> = host
        .and_then(|host| annotate(host, PAUSED_ANNOTATION, &wanted))
        .into_iter()
        .collect();
    if is_paused {
        due.extend(say(world, machine, "False", "ClusterOrResourcePaused"));
        return due;
    }
    let data = owner.text("/spec/bootstrap/dataSecretName");
    match (host, data, free(world, machine)) {
        (Some(host), ..) => due.extend(serve(world, machine, host, cluster)),
        (None, "", _) => due.extend(say(world, machine, "False", "WaitingForBootstrapDataSecret")),
        (None, _, None) => due.extend(say(world, machine, "False", "BYOHostsUnavailable")),
        (None, _, Some(host)) => due.push(take(host, machine, owner, infrastructure)),
    }
    due.extend(protect(BYO_MACHINE, machine, FINALIZER));
    due
}

fn taken_by(machine: &Object) -> String {
    format!("{}.{}", machine.namespace(), machine.name())
}

/// The host that the machine has.
fn host<'a>(world: &'a World, machine: &Object) -> Option<&'a Object> {
    let name = taken_by(machine);
    let mut all = world.all(BYO_HOST);
    all.find(|host| host.label(TAKEN_BY) == Some(&name) && host.annotation(LEAVES).is_none())
}

/// A host that nobody has, with the labels that the machine asks for.
fn free<'a>(world: &'a World, machine: &Object) -> Option<&'a Object> {
    let wanted = machine.part("/spec/selector/matchLabels");
    let fits = |host: &Object| {
        let all = wanted.as_object().into_iter().flatten();
        all.into_iter().all(|(key, value)| host.label(key) == value.as_str())
    };
    let mut all = world.all(BYO_HOST);
    all.find(|host| {
        let is_free = host.label(TAKEN_BY).is_none() && host.at("/status/machineRef").is_none();
        host.namespace() == machine.namespace() && is_free && !host.is_going() && fits(host)
    })
}

/// All that a host is told, in one write, on the version that was found free: another machine may be after it.
fn take(host: &Object, machine: &Object, owner: &Object, infrastructure: &Object) -> Write {
    let told = [
        (ENDPOINT, infrastructure.part("/spec/controlPlaneEndpoint/host")),
        (VERSION, owner.part("/spec/version")),
        (REGISTRY, infrastructure.part("/spec/bundleLookupBaseRegistry")),
    ];
    let annotations: Map<String, Value> = told.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let secret = json!({
        "kind": "Secret", "name": owner.text("/spec/bootstrap/dataSecretName"), "namespace": machine.namespace(),
    });
    let labels = json!({ TAKEN_BY: taken_by(machine), CLUSTER_NAME_LABEL: owner.text("/spec/clusterName") });
    let version = host.part("/metadata/resourceVersion");
    let change = json!({
        "metadata": { "resourceVersion": version, "labels": labels, "annotations": annotations },
        "spec": { "bootstrapSecret": secret },
    });
    Write::Merge(BYO_HOST, host.key(), change)
}

/// What is done with a host of its own, until the Node of that name has an ID, and so has the machine.
fn serve(world: &World, machine: &Object, host: &Object, cluster: &Object) -> Vec<Write> {
    let taken = json!({ "machineRef": {
        "apiVersion": BYO_MACHINE.api_version(), "kind": BYO_MACHINE.kind, "name": machine.name(),
        "namespace": machine.namespace(), "uid": machine.uid(),
    } });
    if let Some(told) = status(BYO_HOST, host, taken) {
        return vec![told];
    }
    let nodes = world.site_of(cluster).map(|site| site.nodes.as_slice());
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
        due.push(Write::Site(at, Deed::Node(node.name().to_owned(), named.clone())));
    }
    due.extend(say(world, machine, "True", ""));
    due.extend(change(BYO_MACHINE, machine, named));
    due.extend(status(BYO_MACHINE, machine, json!({ "ready": true })));
    due
}

/// The host's name, and six characters that the next machine on it does not have.
fn provider_id(machine: &Object, host: &Object) -> String {
    let mut hasher = DefaultHasher::new();
    machine.uid().hash(&mut hasher);
    let digits = format!("{:016x}", hasher.finish());
    let short: String = digits.chars().take(6).collect();
    format!("byoh://{}/{short}", host.name())
}

fn say(world: &World, machine: &Object, holds: &str, reason: &str) -> Option<Write> {
    let said = Conditions::of(machine, world.now).say_older(CONDITION, holds, reason);
    status(BYO_MACHINE, machine, json!({ "conditions": said.done() }))
}

fn annotate(host: &Object, key: &str, value: &Value) -> Option<Write> {
    change(BYO_HOST, host, json!({ "metadata": { "annotations": { key: value } } }))
}
