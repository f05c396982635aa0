//! A Cluster down to its hosts, with what each object waits for.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::cluster::{Cluster, Machine, MachineDeployment};
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde::Serialize;
use serde_json::Value;

use super::host::HostRow;
use crate::chain::{Link, State};
use crate::index::Index;
use crate::listed::Listed;
use crate::object::ObjectId;
use crate::order;
use crate::read::Read;
use crate::values::name;
use crate::walk::cluster::is_control_plane;
use crate::walk::{Walk, explain};

const DEPLOYMENT_LABEL: &str = "cluster.x-k8s.io/deployment-name";

/// One object, and those below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// The object.
    pub object: ObjectId,
    /// Whether it waits, and who acts.
    pub state: State,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Whether it may be younger.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// What else is known of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<&'static str, String>,
    /// The objects below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// The objects below the machines of a Cluster.
struct Parts {
    namespace: String,
    metal3_machines: Arc<Listed<Metal3Machine>>,
    claims: Arc<Listed<Metal3DataClaim>>,
    data: Arc<Listed<Metal3Data>>,
    ip_claims: Arc<Listed<IPClaim>>,
    addresses: Arc<Listed<IPAddress>>,
    hosts: Arc<Listed<BareMetalHost>>,
}

/// The tree of a Cluster, with the state of the Cluster.
pub(super) fn tree(walk: &mut Walk<'_>, cluster: &str) -> (State, Option<Node>) {
    let of_cluster = Some(cluster);
    let deployments = listed::<MachineDeployment>(walk, of_cluster);
    let machines = listed::<Machine>(walk, of_cluster);
    let mut parts = Parts {
        namespace: String::new(),
        metal3_machines: listed(walk, of_cluster),
        claims: listed(walk, None),
        data: listed(walk, None),
        ip_claims: listed(walk, None),
        addresses: listed(walk, None),
        hosts: listed(walk, None),
    };
    let Ok(found) = walk.find::<Cluster>(cluster) else {
        return (State::Unknown, None);
    };
    let Some(cluster) = found else {
        return (State::Absent, None);
    };
    parts.namespace = cluster.metadata.namespace.clone().unwrap_or_default();
    let mut root = node(walk, ObjectId::of::<Cluster>(name(&cluster.metadata)));
    if let Some(reference) = &cluster.spec.infrastructure_ref {
        let id = ObjectId::foreign(&reference.api_group, &reference.kind, &reference.name);
        root.children.push(node(walk, id));
    }
    let (control, workers): (Vec<&Machine>, Vec<&Machine>) =
        by_name(&machines).into_iter().partition(|one| is_control_plane(one));
    let control: Vec<Node> = control
        .into_iter()
        .map(|machine| machine_node(walk, machine, &parts))
        .collect();
    match &cluster.spec.control_plane_ref {
        Some(reference) => {
            let id = ObjectId::foreign(&reference.api_group, &reference.kind, &reference.name);
            root.children.push(Node {
                children: control,
                ..node(walk, id)
            });
        }
        None => root.children.extend(control),
    }
    root.children.extend(worker_nodes(walk, &workers, &deployments, &parts));
    (root.state, Some(root))
}

/// The MachineDeployments with their machines, then the machines without one.
fn worker_nodes(
    walk: &mut Walk<'_>,
    workers: &[&Machine],
    deployments: &Listed<MachineDeployment>,
    parts: &Parts,
) -> Vec<Node> {
    let of_deployments = Index::of(
        workers
            .iter()
            .map(|machine| (deployment_of(machine).unwrap_or_default(), *machine)),
    );
    let mut nodes = Vec::new();
    for deployment in by_name(deployments) {
        let deployment = name(&deployment.metadata);
        let own = of_deployments.all(deployment);
        let children = own.map(|machine| machine_node(walk, machine, parts));
        let children = children.collect();
        let id = ObjectId::of::<MachineDeployment>(deployment);
        nodes.push(Node {
            children,
            ..node(walk, id)
        });
    }
    let known = Index::of(deployments.iter().map(|one| (name(&one.metadata), ())));
    let others = of_deployments.entries().iter();
    let others = others.filter(|(deployment, _)| known.first(*deployment).is_none());
    let mut others: Vec<&Machine> = others.map(|(_, machine)| *machine).collect();
    sort_by_name(&mut others);
    nodes.extend(others.into_iter().map(|machine| machine_node(walk, machine, parts)));
    nodes
}

fn deployment_of(machine: &Machine) -> Option<&str> {
    machine
        .metadata
        .labels
        .as_ref()?
        .get(DEPLOYMENT_LABEL)
        .map(String::as_str)
}

/// The objects of a kind; none while they are not known, which the report names.
fn listed<K: Kind>(walk: &mut Walk<'_>, cluster: Option<&str>) -> Arc<Listed<K>> {
    walk.each(&Read::list::<K>(cluster)).unwrap_or_default()
}

/// The objects in the order of names.
fn by_name<K: Kind>(listed: &Listed<K>) -> Vec<&K> {
    let mut found: Vec<&K> = listed.iter().collect();
    sort_by_name(&mut found);
    found
}

fn sort_by_name<K: Kind>(found: &mut [&K]) {
    order::sort_by(found, |a, b| name(a.meta()).cmp(name(b.meta())));
}

/// An object with what it waits for itself.
fn node(walk: &mut Walk<'_>, object: ObjectId) -> Node {
    let (state, first) = match explain(&object, walk.snapshot) {
        Ok(explanation) => {
            for not_read in explanation.not_read {
                walk.note(not_read);
            }
            (explanation.state, explanation.chain.into_iter().next())
        }
        Err(wanted) => {
            walk.wanted.extend(wanted);
            (State::Unknown, None)
        }
    };
    let first: Option<Link> = first.filter(|link| link.object == object);
    Node {
        object,
        state,
        title: first.as_ref().map(|link| link.title.clone()),
        reason: first.as_ref().and_then(|link| link.reason.clone()),
        message: first.as_ref().map(|link| link.message.clone()).unwrap_or_default(),
        since: first.as_ref().and_then(|link| link.since),
        at_most: first.is_some_and(|link| link.at_most),
        details: BTreeMap::new(),
        children: Vec::new(),
    }
}

fn machine_node(walk: &mut Walk<'_>, machine: &Machine, parts: &Parts) -> Node {
    let mut node_of = node(walk, ObjectId::of::<Machine>(name(&machine.metadata)));
    if let Some(found) = &machine.status.node_ref {
        node_of.details.insert("node", found.name.clone());
    }
    if let Some(version) = &machine.spec.version {
        node_of.details.insert("version", version.clone());
    }
    let reference = &machine.spec.infrastructure_ref;
    let id = ObjectId::foreign(&reference.api_group, &reference.kind, &reference.name);
    let found = parts.metal3_machines.named(&parts.namespace, &id.name);
    let found = found.filter(|_| id.is::<Metal3Machine>());
    let mut infrastructure = node(walk, id);
    if let Some(found) = found {
        infrastructure.children = below(walk, found, parts);
    }
    node_of.children.push(infrastructure);
    node_of
}

/// Data, addresses and host of a machine.
fn below(walk: &mut Walk<'_>, machine: &Metal3Machine, parts: &Parts) -> Vec<Node> {
    let mut nodes = Vec::new();
    let claim = parts.claims.named(&parts.namespace, name(&machine.metadata));
    if let Some(claim) = claim {
        let mut claim_node = node(walk, ObjectId::of::<Metal3DataClaim>(name(&claim.metadata)));
        let rendered = claim.status.rendered_data.as_ref().and_then(|one| one.name.as_deref());
        let data = rendered.and_then(|rendered| parts.data.named(&parts.namespace, rendered));
        claim_node
            .children
            .extend(data.map(|data| data_node(walk, data, parts)));
        nodes.push(claim_node);
    }
    let annotations = machine.metadata.annotations.as_ref();
    let key = annotations.and_then(|all| all.get(HOST_ANNOTATION));
    if let Some(host) = key.and_then(|key| key.rsplit('/').next()) {
        let found = parts.hosts.named(&parts.namespace, host);
        let mut host_node = node(walk, ObjectId::of::<BareMetalHost>(host));
        host_node.details = found.map(host_details).unwrap_or_default();
        nodes.push(host_node);
    }
    nodes
}

fn data_node(walk: &mut Walk<'_>, data: &Metal3Data, parts: &Parts) -> Node {
    let mut data_node = node(walk, ObjectId::of::<Metal3Data>(name(&data.metadata)));
    let uid = data.metadata.uid.as_deref();
    let mut claims: Vec<&IPClaim> = parts.ip_claims.owned_by(uid).collect();
    sort_by_name(&mut claims);
    for claim in claims {
        let mut claim_node = node(walk, ObjectId::of::<IPClaim>(name(&claim.metadata)));
        let granted = claim
            .status
            .address
            .as_ref()
            .and_then(|address| address.name.as_deref());
        let address = granted.and_then(|granted| parts.addresses.named(&parts.namespace, granted));
        if let Some(address) = address {
            claim_node.details.insert("address", address.spec.address.to_string());
        }
        data_node.children.push(claim_node);
    }
    data_node
}

fn host_details(host: &BareMetalHost) -> BTreeMap<&'static str, String> {
    let row = HostRow::of(host);
    let mut details = BTreeMap::new();
    details.insert("state", row.state);
    details.insert("power", super::text::power(row.online, row.powered_on));
    details.extend(row.bmc.map(|bmc| ("bmc", bmc)));
    details.extend(row.image.map(|image| ("image", image)));
    details.extend(disk(host).map(|disk| ("disk", disk)));
    details
}

/// The hints by which the disk is chosen: those in force, or those that are wanted.
fn disk(host: &BareMetalHost) -> Option<String> {
    let in_force = host.status.provisioning.root_device_hints.as_ref();
    let hints = serde_json::to_value(in_force.or(host.spec.root_device_hints.as_ref())?).ok()?;
    let hints = hints.as_object()?.iter().map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    });
    let hints: Vec<String> = hints.collect();
    Some(hints.join(" ")).filter(|hints| !hints.is_empty())
}
