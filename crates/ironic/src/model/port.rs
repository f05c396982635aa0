//! Network ports of a node, and port groups.

use metal3_domain::ids::NodeUuid;
use serde::Deserialize;

use super::{blank_is_none, null_is_default};

/// A network port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Port {
    /// Its UUID.
    pub uuid: String,
    /// The node of the port.
    pub node_uuid: NodeUuid,
    /// Its MAC address, in lower case.
    pub address: String,
    /// Whether it may boot from the network. Absent in short listings.
    #[serde(default)]
    pub pxe_enabled: Option<bool>,
}

/// A bond of ports.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PortGroup {
    /// Its UUID.
    pub uuid: String,
    /// Its name.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub name: Option<String>,
    /// Its MAC address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub address: Option<String>,
    /// The node of the group. Absent in short lists.
    #[serde(default)]
    pub node_uuid: Option<NodeUuid>,
    /// Whether its ports also work without the group.
    #[serde(default, deserialize_with = "null_is_default")]
    pub standalone_ports_supported: bool,
}
