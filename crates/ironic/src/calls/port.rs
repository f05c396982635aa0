//! Ports and port groups.

use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use serde_json::json;

use super::NodeRef;
use crate::model::page::{self, Marker, Page};
use crate::model::port::{Port, PortGroup};
use crate::request::{Call, Effect, Method, change, order, read_with};

fn ports() -> Call<Page<Port>> {
    read_with("list ports", &["ports"], |body| page::decode("ports", body))
        .with_query("fields", "uuid,node_uuid,address,pxe_enabled")
}

/// A page of the ports of a node.
#[must_use]
pub fn of_node(node: &NodeRef, behind: Option<&Marker>) -> Call<Page<Port>> {
    let key = match node {
        NodeRef::Uuid(_) => "node_uuid",
        NodeRef::Name(_) => "node",
    };
    let call = ports().with_query(key, node.segment());
    match behind {
        Some(marker) => call.with_query("marker", marker.0.clone()),
        None => call,
    }
}

/// The port with a MAC address: at most one.
#[must_use]
pub fn with_address(address: &MacAddress) -> Call<Page<Port>> {
    ports().with_query("address", address.to_string())
}

/// Creates a port.
#[must_use]
pub fn create(node: &NodeUuid, address: &MacAddress, pxe_enabled: bool) -> Call<Port> {
    let body = json!({"node_uuid": node.as_str(), "address": address.to_string(), "pxe_enabled": pxe_enabled});
    change("create a port", Method::Post, &["ports"], Effect::Create, body)
}

/// Deletes a port.
#[must_use]
pub fn delete(uuid: &str) -> Call<()> {
    order("delete a port", Method::Delete, &["ports", uuid], Effect::Once)
}

/// The port groups of a node.
#[must_use]
pub fn groups_of_node(node: &NodeRef) -> Call<Page<PortGroup>> {
    read_with("list port groups", &["nodes", node.segment(), "portgroups"], |body| {
        page::decode("portgroups", body)
    })
}
