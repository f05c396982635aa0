//! `naming/provider_id`: a machine's provider ID, and the Node that has or gets it.

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::AddressType;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capm3::node::{self, Found, NodeFacts, Trust, Wanted};
use metal3_domain::ids::Uid;
use metal3_domain::provider_id::MachineProviderId;
use serde_json::{Map, Value, json};

use super::rules;
use super::world::{World, items, text};
use crate::golden::case::Case;
use crate::golden::group::Group;

pub(super) const GROUP: Group = Group {
    name: "naming/provider_id",
    answer,
    expectation,
    rules: rules::PROVIDER_ID,
};

fn answer(case: &Case) -> Value {
    let world = World::of(case);
    let Some(mut machine) = world.all::<Metal3Machine>().pop() else {
        return json!("no Metal3Machine");
    };
    let operation = text(&case.input, "/operation");
    let mut shown = Map::new();
    let mut nodes: Map<String, Value> = items(&case.input, "workloadClusterNodes")
        .map(|node| {
            (
                text(node, "/metadata/name").to_owned(),
                text(node, "/spec/providerID").into(),
            )
        })
        .collect();
    let mut provisioned = false;
    match (node::provider_id(&machine), operation) {
        (Err(_), _) => {
            shown.insert("error".into(), true.into());
        }
        (Ok(id), "default") => machine.spec.provider_id = Some(id.to_string()),
        (Ok(_), "exists") if machine.spec.provider_id.is_none() => {
            shown.insert("done".into(), false.into());
        }
        (Ok(id), _) => {
            let stated = machine.spec.provider_id.clone().unwrap_or_default();
            let name = match look(case, &world, &machine, &id) {
                Ok(Found::Node { name, .. } | Found::Adopt { name }) => Some(name),
                Ok(Found::None) | Err(_) => None,
            };
            match name {
                Some(_) if operation == "exists" => {
                    shown.insert("done".into(), true.into());
                }
                Some(name) => {
                    nodes.insert(name, id.to_string().into());
                    if stated.is_empty() {
                        machine.spec.provider_id = Some(id.to_string());
                        provisioned = true;
                    }
                }
                None => {
                    shown.insert("waits".into(), true.into());
                }
            }
        }
    }
    shown.insert(
        "machineProviderID".into(),
        machine.spec.provider_id.unwrap_or_default().into(),
    );
    shown.insert("nodeProviderIDs".into(), nodes.into());
    shown.insert("provisioned".into(), provisioned.into());
    shown.into()
}

fn look(case: &Case, world: &World, machine: &Metal3Machine, id: &MachineProviderId) -> Result<Found, node::NodeError> {
    let host = world.all::<BareMetalHost>().pop().unwrap_or_default();
    let host_uid = host.metadata.uid.and_then(|uid| Uid::parse(uid).ok());
    let bootstrap = world.all::<Machine>().pop().unwrap_or_default().spec.bootstrap;
    let trust = match text(&case.input, "/operation") {
        "nodeLabel" if bootstrap.config_ref.is_some() => Trust::Label,
        "nodeLabel" | "hostname" => Trust::Hostname,
        _ => Trust::ProviderId,
    };
    let addresses = machine.status.addresses.iter();
    let hostnames = addresses.filter(|address| address.type_ == AddressType::Hostname);
    let hostnames: Vec<&str> = hostnames.map(|address| address.address.as_str()).collect();
    let nodes: Vec<NodeFacts<'_>> = items(&case.input, "workloadClusterNodes")
        .map(|node| NodeFacts {
            name: text(node, "/metadata/name"),
            provider_id: text(node, "/spec/providerID"),
            host_uid: text(node, "/metadata/labels/metal3.io~1uuid"),
            hostname: text(node, "/metadata/labels/kubernetes.io~1hostname"),
        })
        .collect();
    let wanted = Wanted {
        id,
        stated: "",
        host_uid: host_uid.as_ref(),
        hostnames: &hostnames,
        trust,
    };
    node::find(&wanted, &nodes)
}

/// An error that passes is a wait. `done: false` beside a wait says the same again.
fn expectation(case: &Case) -> Value {
    let mut expect = super::expectation(case);
    if let Value::Object(members) = &mut expect
        && members.remove("transient") == Some(Value::Bool(true))
    {
        members.remove("error");
        members.remove("done");
        members.insert("waits".into(), true.into());
    }
    expect
}
