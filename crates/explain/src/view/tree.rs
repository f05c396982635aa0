//! A Cluster down to its hosts, with what each object waits for.

use std::collections::BTreeMap;

use metal3_api::cluster::{Cluster, Machine, MachineDeployment};
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde::Serialize;
use serde_json::Value;

use super::host::HostRow;
use crate::chain::{Link, State};
use crate::object::ObjectId;
use crate::snapshot::Read;
use crate::walk::cluster::is_control_plane;
use crate::walk::{Walk, explain, is_owned_by, name};

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
    /// What else is known of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<&'static str, String>,
    /// The objects below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// The objects of a Cluster, each list in the order of names.
struct Parts {
    machines: Vec<Machine>,
    metal3_machines: Vec<Metal3Machine>,
    claims: Vec<Metal3DataClaim>,
    data: Vec<Metal3Data>,
    ip_claims: Vec<IPClaim>,
    addresses: Vec<IPAddress>,
    hosts: Vec<BareMetalHost>,
}

/// The tree of a Cluster, with the state of the Cluster.
pub(super) fn tree(walk: &mut Walk<'_>, cluster: &str) -> (State, Option<Node>) {
    let of_cluster = Some(cluster);
    let deployments = listed::<MachineDeployment>(walk, of_cluster);
    let parts = Parts {
        machines: listed(walk, of_cluster),
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
    let mut root = node(walk, ObjectId::of::<Cluster>(name(&cluster.metadata)));
    if let Some(reference) = &cluster.spec.infrastructure_ref {
        let id = ObjectId::foreign(&reference.api_group, &reference.kind, &reference.name);
        root.children.push(node(walk, id));
    }
    let (control, workers): (Vec<&Machine>, Vec<&Machine>) =
        parts.machines.iter().partition(|one| is_control_plane(one));
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
    for deployment in &deployments {
        let deployment = name(&deployment.metadata);
        let own = workers
            .iter()
            .filter(|machine| deployment_of(machine) == Some(deployment));
        let children = own.map(|machine| machine_node(walk, machine, &parts)).collect();
        let id = ObjectId::of::<MachineDeployment>(deployment);
        root.children.push(Node {
            children,
            ..node(walk, id)
        });
    }
    let is_known = |machine: &Machine| {
        deployments
            .iter()
            .any(|deployment| deployment_of(machine) == Some(name(&deployment.metadata)))
    };
    let others = workers.iter().filter(|machine| !is_known(machine));
    let others: Vec<Node> = others.map(|machine| machine_node(walk, machine, &parts)).collect();
    root.children.extend(others);
    (root.state, Some(root))
}

fn deployment_of(machine: &Machine) -> Option<&str> {
    machine
        .metadata
        .labels
        .as_ref()?
        .get(DEPLOYMENT_LABEL)
        .map(String::as_str)
}

/// The objects of a kind in the order of names; none while they are not known, which the report names.
fn listed<K: metal3_api::kind::Kind>(walk: &mut Walk<'_>, cluster: Option<&str>) -> Vec<K> {
    let mut found: Vec<K> = walk.each(&Read::list::<K>(cluster)).unwrap_or_default();
    found.sort_by(|a, b| name(a.meta()).cmp(name(b.meta())));
    found
}

/// An object with what it waits for itself.
fn node(walk: &mut Walk<'_>, object: ObjectId) -> Node {
    let (state, first) = match explain(&object, walk.snapshot) {
        Ok(explanation) => {
            for not_read in explanation.not_read {
                if !walk.not_read.contains(&not_read) {
                    walk.not_read.push(not_read);
                }
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
        since: first.and_then(|link| link.since),
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
    let found = parts
        .metal3_machines
        .iter()
        .find(|one| id.is::<Metal3Machine>() && name(&one.metadata) == id.name);
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
    let claim = parts
        .claims
        .iter()
        .find(|claim| name(&claim.metadata) == name(&machine.metadata));
    if let Some(claim) = claim {
        let mut claim_node = node(walk, ObjectId::of::<Metal3DataClaim>(name(&claim.metadata)));
        let rendered = claim.status.rendered_data.as_ref().and_then(|one| one.name.as_deref());
        let data = parts.data.iter().find(|data| Some(name(&data.metadata)) == rendered);
        claim_node
            .children
            .extend(data.map(|data| data_node(walk, data, parts)));
        nodes.push(claim_node);
    }
    let annotations = machine.metadata.annotations.as_ref();
    let key = annotations.and_then(|all| all.get(HOST_ANNOTATION));
    if let Some(host) = key.and_then(|key| key.rsplit('/').next()) {
        let found = parts.hosts.iter().find(|one| name(&one.metadata) == host);
        let mut host_node = node(walk, ObjectId::of::<BareMetalHost>(host));
        host_node.details = found.map(host_details).unwrap_or_default();
        nodes.push(host_node);
    }
    nodes
}

fn data_node(walk: &mut Walk<'_>, data: &Metal3Data, parts: &Parts) -> Node {
    let mut data_node = node(walk, ObjectId::of::<Metal3Data>(name(&data.metadata)));
    let uid = data.metadata.uid.as_deref();
    for claim in parts.ip_claims.iter().filter(|claim| is_owned_by(&claim.metadata, uid)) {
        let mut claim_node = node(walk, ObjectId::of::<IPClaim>(name(&claim.metadata)));
        let granted = claim
            .status
            .address
            .as_ref()
            .and_then(|address| address.name.as_deref());
        let address = parts
            .addresses
            .iter()
            .find(|address| Some(name(&address.metadata)) == granted);
        if let Some(address) = address {
            claim_node.details.insert("address", address.spec.address.to_string());
        }
        data_node.children.push(claim_node);
    }
    data_node
}

fn host_details(host: &BareMetalHost) -> BTreeMap<&'static str, String> {
    let row = HostRow::of(host);
    let mut details = BTreeMap::from([
        ("state", row.state),
        ("power", super::text::power(row.online, row.powered_on)),
    ]);
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
